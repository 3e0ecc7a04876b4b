"""A small blocking ZooKeeper client: one connection, one session, one request at a time, no threads.

For the command line and for tests. It does not reconnect: when the connection is lost the session is too, and
every call says so. Applications use kazoo or another full client.
"""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

from ottla.model.errors import Malformed
from ottla.model.limits import FRAME_BYTES_MAX
from ottla.protocol.frames import FrameCutter
from ottla.protocol.zookeeper.headers import (
    NOTIFICATION_XID,
    PING_XID,
    ConnectRequest,
    ReplyHeader,
    decode_connect_response,
    encode_connect_request,
    encode_request,
)
from ottla.protocol.zookeeper.jute import decode, encode, reader
from ottla.protocol.zookeeper.operations import REQUESTS, RESPONSES, OpCode
from ottla.protocol.zookeeper.records import Acl, Stat, WatcherEvent

DEFAULT_PORT = 2181
OPEN_ACL = (Acl(31, "world", "anyone"),)
ANY_VERSION = -1
_AUTH_XID = -4
_RECEIVE_BYTES = 64 * 1024
_CODES = {
    -5: "the server does not understand the request",
    -6: "the server does not know the operation",
    -8: "a path or an argument is not valid",
    -101: "there is no such node",
    -102: "its access list does not allow that",
    -103: "it has another version",
    -108: "ephemeral nodes have no children",
    -110: "the node exists",
    -111: "it has children",
    -112: "the session has expired",
    -114: "the access list is not valid",
    -115: "the authentication was refused",
    -125: "a quota is exceeded",
}


class ZooKeeperError(Exception):
    """The server refused a request."""

    def __init__(self, code: int, subject: str) -> None:
        super().__init__(f"{subject}: {_CODES.get(code, f'error {code}')}")
        self.code = code

    @property
    def is_no_node(self) -> bool:
        return self.code == -101


class ConnectionLost(Exception):
    """Nobody answers, or not any more."""


class ZooKeeperClient:
    def __init__(self, host: str, port: int, *, timeout_ms: int = 10_000, session_timeout_ms: int = 10_000):
        self._address = f"{host}:{port}"
        self._timeout_seconds = timeout_ms / 1000
        self._xid = 0
        self._cutter = FrameCutter(FRAME_BYTES_MAX)
        self._frames: deque[memoryview] = deque()
        self._events: deque[tuple[WatcherEvent, int]] = deque()  # with the zxid of the change
        try:
            self._socket = socket.create_connection((host, port), self._timeout_seconds)
        except OSError as error:
            raise ConnectionLost(
                f"no ZooKeeper answers at {self._address}: {error.strerror or error}"
            ) from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._send(encode_connect_request(ConnectRequest(0, 0, session_timeout_ms, 0, bytes(16))))
        try:
            response = decode_connect_response(self._next_frame())
        except (ConnectionLost, Malformed) as error:
            raise ConnectionLost(
                f"what listens at {self._address} does not answer as a ZooKeeper does ({error})"
            ) from None
        self.session_id = response.session_id
        self.password = response.password
        self.session_timeout_ms = response.timeout_ms

    def close(self) -> None:
        """Ends the session, and with it the ephemeral nodes it made."""
        try:
            self.request(OpCode.CLOSE_SESSION)
        except ConnectionLost:
            pass
        finally:
            self._socket.close()

    def disconnect(self) -> None:
        """Leaves without a word; the session has its timeout to be taken up again."""
        self._socket.close()

    def __enter__(self) -> ZooKeeperClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # -- what can be asked ---------------------------------------------------------------------------------

    def get(self, path: str, *, watch: bool = False) -> tuple[bytes | None, Stat]:
        data, stat = self.request(OpCode.GET_DATA, path, watch)
        return data, stat

    def exists(self, path: str, *, watch: bool = False) -> Stat | None:
        try:
            (stat,) = self.request(OpCode.EXISTS, path, watch)
        except ZooKeeperError as error:
            if error.is_no_node:
                return None
            raise
        assert isinstance(stat, Stat)
        return stat

    def children(self, path: str, *, watch: bool = False) -> list[str]:
        names, _ = self.request(OpCode.GET_CHILDREN2, path, watch)
        return sorted(names)

    def create(
        self, path: str, data: bytes | None = b"", *, flags: int = 0, acl: Sequence[Acl] = OPEN_ACL
    ) -> str:
        """Flags: 1 ephemeral, 2 sequential. The path that was made, with its number if it has one."""
        (created,) = self.request(OpCode.CREATE, path, data, acl, flags)
        assert isinstance(created, str)
        return created

    def set(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> Stat:
        (stat,) = self.request(OpCode.SET_DATA, path, data, version)
        assert isinstance(stat, Stat)
        return stat

    def delete(self, path: str, version: int = ANY_VERSION) -> None:
        self.request(OpCode.DELETE, path, version)

    def acl(self, path: str) -> tuple[list[Acl], Stat]:
        acl, stat = self.request(OpCode.GET_ACL, path)
        return list(acl), stat

    def set_acl(self, path: str, acl: Sequence[Acl], version: int = ANY_VERSION) -> Stat:
        (stat,) = self.request(OpCode.SET_ACL, path, acl, version)
        assert isinstance(stat, Stat)
        return stat

    def add_auth(self, scheme: str, auth: bytes) -> None:
        self._exchange(_AUTH_XID, OpCode.AUTH, (0, scheme, auth), f"{scheme} authentication")

    def watch(self, path: str, *, recursive: bool = False) -> None:
        """Every change of the node from now on, and of what is below it, is among the `events`."""
        self.request(OpCode.ADD_WATCH, path, int(recursive))

    def events(self, for_seconds: float | None = None) -> Iterator[WatcherEvent]:
        """Events as they come; the session is kept alive in between."""
        end = None if for_seconds is None else time.monotonic() + for_seconds
        ping_seconds = self.session_timeout_ms / 3000
        while True:
            while self._events:
                yield self._events.popleft()[0]
            wait_seconds = ping_seconds if end is None else min(ping_seconds, end - time.monotonic())
            if wait_seconds <= 0:
                return
            frame = self._next_frame(wait_seconds, required=False)
            if frame is None:
                self._exchange(PING_XID, OpCode.PING, (), "ping")
            else:
                self._take(frame)

    def take_events(self) -> list[tuple[WatcherEvent, int]]:
        """What has come so far, without waiting: each with the zxid of its change."""
        events = list(self._events)
        self._events.clear()
        return events

    # -- requests ------------------------------------------------------------------------------------------

    def request(self, operation: OpCode, *fields: Any) -> tuple[Any, ...]:
        """Any operation with the fields of its request; the fields of the response."""
        self._xid += 1
        return self._exchange(self._xid, operation, fields, str(fields[0]) if fields else operation.name)

    def _exchange(
        self, xid: int, operation: OpCode, fields: tuple[Any, ...], subject: str
    ) -> tuple[Any, ...]:
        request_type = REQUESTS.get(operation)
        body = encode(request_type(*fields)) if request_type is not None else b""
        self._send(encode_request(xid, operation, body))
        while True:
            frame = self._next_frame()
            assert frame is not None
            header, position = reader(ReplyHeader)(frame, 0)
            if header.xid != xid:
                self._take(frame)
                continue
            if header.error:
                raise ZooKeeperError(header.error, subject)
            response_type = RESPONSES.get(operation)
            return decode(response_type, frame, position) if response_type is not None else ()

    def _take(self, frame: memoryview) -> None:
        """A frame that nobody waits for."""
        header, position = reader(ReplyHeader)(frame, 0)
        if header.xid == NOTIFICATION_XID:
            self._events.append((decode(WatcherEvent, frame, position), header.zxid))

    def _send(self, data: bytes) -> None:
        try:
            self._socket.settimeout(self._timeout_seconds)
            self._socket.sendall(data)
        except OSError as error:
            raise self._lost(error.strerror or str(error)) from None

    def _next_frame(self, wait_seconds: float | None = None, *, required: bool = True) -> Any:
        """The next whole frame. Without one in time: None, or ConnectionLost if it is required."""
        while not self._frames:
            try:
                self._socket.settimeout(wait_seconds or self._timeout_seconds)
                data = self._socket.recv(_RECEIVE_BYTES)
            except TimeoutError:
                if not required:
                    return None
                raise self._lost(f"no answer in {self._timeout_seconds:g} s") from None
            except OSError as error:
                raise self._lost(error.strerror or str(error)) from None
            if not data:
                raise self._lost("closed by the server")
            self._frames.extend(self._cutter.feed(data))
        return self._frames.popleft()

    def _lost(self, reason: str) -> ConnectionLost:
        return ConnectionLost(f"the connection to {self._address} is lost: {reason}")
