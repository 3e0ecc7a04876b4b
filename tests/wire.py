"""A client that is no more than a socket and the codec: tests say exactly what goes over the wire.

It retries nothing, follows nobody and believes nothing, so that what a test sees is what the broker did.
"""

from __future__ import annotations

import socket
import struct
from collections import deque
from types import TracebackType
from typing import Any

from ottla.protocol.apis import APIS, Api
from ottla.protocol.fields import Message
from ottla.protocol.headers import decode_response, encode_request

_API_OF: dict[type[Message], Api] = {api.request: api for api in APIS.values()}

TIMEOUT_SECONDS = 20  # far beyond any answer; a test that waits so long has failed


class PeerClosed(Exception):
    """The broker closed the connection."""


class WireClient:
    def __init__(self, address: str, client_id: str | None = "wire") -> None:
        host, _, port = address.rpartition(":")
        self.client_id = client_id
        self.socket = socket.create_connection((host, int(port)), timeout=TIMEOUT_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._expected: deque[tuple[int, Api, int]] = deque()  # correlation id, API and version of each
        self._correlation_id = 0

    def __enter__(self) -> WireClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    # -- messages ------------------------------------------------------------------------------------------

    def call(self, message: Message, version: int) -> Any:
        """The answer to `message`. Nothing else may be under way."""
        assert not self._expected
        self.send(message, version)
        return self.receive()

    def send(self, message: Message, version: int) -> None:
        """Without waiting for the answer, which `receive` gets in order."""
        self.socket.sendall(self.frame(message, version))

    def send_together(self, *messages: tuple[Message, int]) -> None:
        """Several requests in one piece, so that the broker sees them in one turn."""
        self.socket.sendall(b"".join(self.frame(message, version) for message, version in messages))

    def send_unanswered(self, message: Message, version: int) -> None:
        """A request that takes no place in the order of answers (Produce with acks=0)."""
        self.socket.sendall(self.frame(message, version))
        self._expected.pop()

    def frame(self, message: Message, version: int) -> bytes:
        """The request's bytes, its size first; its answer is expected from now on."""
        self._correlation_id += 1
        api = _API_OF[type(message)]
        self._expected.append((self._correlation_id, api, version))
        chunks = encode_request(api, version, self._correlation_id, self.client_id, message)
        return b"".join(bytes(chunk) for chunk in chunks)  # type: ignore[arg-type]

    def receive(self) -> Any:
        correlation_id, api, version = self._expected.popleft()
        answered_id, message = decode_response(api, version, self.receive_frame())
        assert answered_id == correlation_id, "answers come in the order of the requests"
        return message

    # -- bytes ---------------------------------------------------------------------------------------------

    def send_frame(self, body: bytes) -> None:
        self.socket.sendall(struct.pack(">i", len(body)) + body)

    def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._receive_exactly(4))
        return self._receive_exactly(size)

    def _receive_exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            try:
                part = self.socket.recv(count - len(data))
            except ConnectionResetError:
                part = b""
            if not part:
                raise PeerClosed(bytes(data))
            data += part
        return bytes(data)

    def is_closed_by_peer(self) -> bool:
        """Waits for the broker to close; False when it answers instead, or does nothing for a while."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False

    def is_silent(self, seconds: float) -> bool:
        """Whether nothing arrives for `seconds`."""
        self.socket.settimeout(seconds)
        try:
            self.socket.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(TIMEOUT_SECONDS)
        return False
