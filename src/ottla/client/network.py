"""Connections to brokers, driven by whoever calls `poll`: non-blocking sockets under one selector.

Not for several threads at once: the shells (`admin`, `producer`, `consumer`) hold a lock. Only `wake` may be
called from anywhere. A request that gets no answer in time closes its connection: answers come in order, so
nothing behind it could be answered either.
"""

from __future__ import annotations

import errno
import os
import selectors
import socket
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from ottla.client.addresses import Address
from ottla.client.conversation import Call, Conversation, Phase
from ottla.client.errors import (
    AuthenticationFailed,
    ClientError,
    Closed,
    ConnectionFailed,
    CorruptAnswer,
    Disconnected,
    TimedOut,
)
from ottla.client.sasl import LoginFailed, login_of
from ottla.model.clock import Clock
from ottla.model.config_types import TypedValues
from ottla.model.errors import Malformed
from ottla.model.limits import RECEIVE_BYTES

if TYPE_CHECKING:
    import ssl

    from ottla.client.tls import TlsSocket

_READ = selectors.EVENT_READ
_WRITE = selectors.EVENT_WRITE
_CHUNKS_PER_SEND = 64  # well below IOV_MAX
_RECEIVES_PER_TURN = 64  # one busy broker must not starve the others

Route = tuple[Address, str]
"""A broker, and the purpose of the connection: a fetch that waits must not hold up other requests."""


class Connection:
    """One socket and its conversation."""

    def __init__(self, route: Route, conversation: Conversation, setup_deadline_ms: int) -> None:
        self.address = route[0]
        self.conversation = conversation
        self.setup_deadline_ms = setup_deadline_ms
        self.socket: socket.socket | None = None
        self.candidates: list[tuple[int, tuple[object, ...]]] = []  # families and addresses still to try
        self.output: deque[memoryview] = deque()
        self.is_resolving = False  # its name is being looked up
        self.events = 0  # what the selector watches
        self.heard = False  # whether any byte came
        self.tls: TlsSocket | None = None  # the socket, once it is to be encrypted
        self.answers = 0  # that came to requests
        self.problem = "no such host"  # why the last candidate failed


class Network:
    def __init__(self, settings: TypedValues, clock: Clock, answer_bytes_max: int) -> None:
        self.clock = clock
        self._client_id = settings.text("client.id")
        self._setup_timeout_ms = settings.integer("socket.connection.setup.timeout.ms")
        self._buffer_sizes = {
            socket.SO_RCVBUF: settings.integer("receive.buffer.bytes"),
            socket.SO_SNDBUF: settings.integer("send.buffer.bytes"),
        }
        self._answer_bytes_max = answer_bytes_max
        self._login = login_of(settings) if settings.text("security.protocol").startswith("SASL") else None
        self._tls: ssl.SSLContext | None = None
        if settings.text("security.protocol").endswith("SSL"):
            from ottla.client import tls

            self._tls = tls.context_of(settings)
        self._connections: dict[Route, Connection] = {}
        self._met: set[Address] = set()  # that have answered before
        self._selector = selectors.DefaultSelector()
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._wake_receiver.setblocking(False)
        self._wake_sender.setblocking(False)
        self._selector.register(self._wake_receiver, _READ, None)

    # -- requests ------------------------------------------------------------------------------------------

    def send(self, address: Address, call: Call, purpose: str = "") -> None:
        """Opens the connection where there is none. `call.done` is called from here or from `poll`."""
        route = (address, purpose)
        connection = self._connections.get(route)
        if connection is None:
            connection = self._open(route)
        chunks = connection.conversation.request(call)
        if connection.is_resolving:
            return
        if connection.socket is None:  # every address of it failed at once
            self._fail(route, connection, self._unreachable(connection))
        elif chunks:
            connection.output.extend(chunks)
            self._write(route, connection)

    def unanswered_count(self, address: Address, purpose: str = "") -> int:
        connection = self._connections.get((address, purpose))
        return 0 if connection is None else connection.conversation.unanswered_count

    def has_met(self, address: Address) -> bool:
        return address in self._met

    def conversation(self, address: Address, purpose: str = "") -> Conversation | None:
        connection = self._connections.get((address, purpose))
        return None if connection is None else connection.conversation

    def finalized_level(self, address: Address, feature: str, purpose: str = "") -> int:
        """Of a feature of its cluster, as the broker told when it was connected; 0: it told none."""
        spoken = self.conversation(address, purpose)
        if spoken is None or spoken.broker is None:
            return 0
        told = {each.name: each.max_version_level for each in spoken.broker.finalized_features}
        return told.get(feature, 0)

    # -- turns ---------------------------------------------------------------------------------------------

    def poll(self, timeout_ms: int) -> None:
        """Waits for something to happen, at most `timeout_ms`, and handles all that has."""
        wait_ms = self._wait_ms(timeout_ms)
        for key, events in self._selector.select(wait_ms / 1000):
            if key.data is None:
                self._drain_wakes()
                continue
            route, connection = key.data
            if connection.conversation.phase is Phase.CLOSED:
                continue
            if connection.conversation.phase is Phase.CONNECTING:
                self._finish_connecting(route, connection)
            elif events & _READ:
                self._read(route, connection)
            if events & _WRITE and connection.output:
                self._write(route, connection)
        self._expire(self.clock.monotonic_ms())

    def wake(self) -> None:
        """Ends a `poll` of another thread."""
        with suppress(OSError):  # a wake is pending already, or all is closed
            self._wake_sender.send(b"\0")

    def close(self) -> None:
        for route, connection in list(self._connections.items()):
            self._fail(route, connection, Closed("the client was closed"))
        self._selector.close()
        self._wake_receiver.close()
        self._wake_sender.close()

    def _wait_ms(self, timeout_ms: int) -> int:
        now_ms = self.clock.monotonic_ms()
        for connection in self._connections.values():
            deadline_ms = self._deadline_ms(connection)
            if deadline_ms is not None:
                timeout_ms = min(timeout_ms, deadline_ms - now_ms)
        return max(timeout_ms, 0)

    @staticmethod
    def _deadline_ms(connection: Connection) -> int | None:
        deadline_ms = connection.conversation.next_deadline_ms()
        if connection.conversation.phase is Phase.READY:
            return deadline_ms
        setup_ms = connection.setup_deadline_ms
        return setup_ms if deadline_ms is None else min(setup_ms, deadline_ms)

    def _drain_wakes(self) -> None:
        try:
            while self._wake_receiver.recv(4096):
                pass
        except BlockingIOError:
            pass

    def _expire(self, now_ms: int) -> None:
        for route, connection in list(self._connections.items()):
            deadline_ms = self._deadline_ms(connection)
            if deadline_ms is None or deadline_ms > now_ms:
                continue
            ready = connection.conversation.phase is Phase.READY
            what = "answer" if ready else "connection"
            text = f"{connection.address} gave no {what} in time"
            late = {id(call) for call in connection.conversation.expired(now_ms)}
            silent = connection.conversation.phase is Phase.NEGOTIATING and connection.tls is None
            if silent and not self.has_met(connection.address):
                error = self._kind_of(connection)
                if error is not None:
                    self._fail(route, connection, error)
                    continue
            self._forget(route, connection)
            for call in connection.conversation.close():
                if id(call) in late or not ready:
                    call.done(
                        TimedOut(text, "the broker may be overloaded or stuck, or the network slow"), -1
                    )
                else:
                    call.done(Disconnected(str(connection.address), text), -1)

    # -- one connection ------------------------------------------------------------------------------------

    def _open(self, route: Route) -> Connection:
        setup_deadline_ms = self.clock.monotonic_ms() + self._setup_timeout_ms
        conversation = Conversation(self._client_id, self._answer_bytes_max, self._login)
        connection = Connection(route, conversation, setup_deadline_ms)
        self._connections[route] = connection
        self._resolve(route, connection)
        return connection

    def _resolve(self, route: Route, connection: Connection) -> None:
        """Finds the addresses of a name, and begins with the first."""
        host, port = route[0]
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError:  # also what has no address of its own to give
            return
        connection.candidates = [(family, target) for family, _, _, _, target in found]
        self._try_next(route, connection)

    def _try_next(self, route: Route, connection: Connection) -> bool:
        """Begins to connect to the next candidate; false: there is none left, and no socket."""
        connection.socket = None
        while connection.candidates:
            family, target = connection.candidates.pop(0)
            try:
                peer = socket.socket(family, socket.SOCK_STREAM)
            except OSError as error:  # no such family here
                connection.problem = str(error.strerror).lower()
                continue
            peer.setblocking(False)
            for option, size in self._buffer_sizes.items():
                if size >= 0:
                    peer.setsockopt(socket.SOL_SOCKET, option, size)
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            problem = peer.connect_ex(target)
            if problem not in (0, errno.EINPROGRESS, errno.EWOULDBLOCK):
                peer.close()
                connection.problem = os.strerror(problem).lower()
                continue
            connection.socket = peer
            connection.events = _WRITE
            self._selector.register(peer, _WRITE, (route, connection))
            return True
        return False

    def _finish_connecting(self, route: Route, connection: Connection) -> None:
        assert connection.socket is not None
        if connection.tls is not None:
            self._shake_hands(route, connection, connection.tls)
            return
        problem = connection.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if problem:
            self._selector.unregister(connection.socket)
            connection.socket.close()
            connection.problem = os.strerror(problem).lower()
            if not self._try_next(route, connection):
                self._fail(route, connection, self._unreachable(connection))
            return
        if self._tls is None:
            self._begin_conversation(route, connection)
            return
        self._selector.unregister(connection.socket)
        secured = self._tls.wrap_socket(
            connection.socket, server_hostname=connection.address.host, do_handshake_on_connect=False
        )
        connection.socket = connection.tls = cast("TlsSocket", secured)
        connection.events = _WRITE
        self._selector.register(secured, _WRITE, (route, connection))
        self._shake_hands(route, connection, connection.tls)

    def _shake_hands(self, route: Route, connection: Connection, secured: TlsSocket) -> None:
        import ssl

        try:
            secured.do_handshake()
        except ssl.SSLWantReadError:
            self._watch(route, connection, _READ)
        except ssl.SSLWantWriteError:
            self._watch(route, connection, _WRITE)
        except OSError as error:
            self._fail(route, connection, self._broken(connection, error))
        else:
            self._begin_conversation(route, connection)

    def _begin_conversation(self, route: Route, connection: Connection) -> None:
        connection.output.extend(connection.conversation.connected())
        self._write(route, connection)

    def _write(self, route: Route, connection: Connection) -> None:
        peer, output = connection.socket, connection.output
        assert peer is not None
        try:
            while output:
                chunks = [output[index] for index in range(min(len(output), _CHUNKS_PER_SEND))]
                sent = peer.sendmsg(chunks)
                while sent:
                    size = len(output[0])
                    if sent < size:
                        output[0] = output[0][sent:]
                        break
                    sent -= size
                    output.popleft()
        except BlockingIOError:
            pass
        except OSError as error:
            self._fail(route, connection, self._broken(connection, error))
            return
        self._watch(route, connection, _READ | _WRITE if output else _READ)

    def _watch(self, route: Route, connection: Connection, events: int) -> None:
        if events != connection.events:
            assert connection.socket is not None
            connection.events = events
            self._selector.modify(connection.socket, events, (route, connection))

    def _read(self, route: Route, connection: Connection) -> None:
        cutter = connection.conversation.cutter
        peer = connection.socket
        assert peer is not None
        try:
            receives = 0
            # What is decrypted already shows on no selector, so it is read to its end.
            while receives < _RECEIVES_PER_TURN or (connection.tls is not None and connection.tls.pending()):
                receives += 1
                room = cutter.wanted()
                if room is None:
                    data = peer.recv(RECEIVE_BYTES)
                    count = len(data)
                    if count and not connection.heard:
                        self._check_server(connection, data)
                    frames = cutter.feed(data) if count else []
                else:
                    count = peer.recv_into(room)
                    del room
                    frames = cutter.received(count) if count else []
                if not count:
                    self._fail(route, connection, self._broken(connection, None))
                    return
                if frames:
                    self._take(route, connection, frames)
                    if connection.conversation.phase is Phase.CLOSED:
                        return
        except BlockingIOError:
            pass
        except Malformed as error:
            self._fail(route, connection, self._garbled(connection, error))
        except ConnectionFailed as error:
            self._fail(route, connection, error)
        except LoginFailed as error:
            failed = AuthenticationFailed(
                str(connection.address), f"{connection.address}: {error.text}", error.cure
            )
            self._fail(route, connection, failed)
        except OSError as error:
            self._fail(route, connection, self._broken(connection, error))

    def _take(self, route: Route, connection: Connection, frames: list[memoryview]) -> None:
        conversation = connection.conversation
        for frame in frames:
            if conversation.phase is Phase.NEGOTIATING:
                connection.output.extend(conversation.negotiate(frame))
                self._met.add(connection.address)
                self._write(route, connection)
            elif conversation.phase is Phase.LOGGING_IN:
                connection.output.extend(conversation.log_in(frame))
                self._write(route, connection)
            elif conversation.phase is Phase.READY:
                call, message = conversation.answer(frame)
                connection.answers += 1
                call.done(message, call.version)

    # -- endings -------------------------------------------------------------------------------------------

    def _check_server(self, connection: Connection, start: bytes) -> None:
        from ottla.client import diagnosis  # only a first answer asks for it

        connection.heard = True
        kind = diagnosis.recognise(start)
        if kind is not None:
            raise diagnosis.wrong_server(connection.address, kind)

    def _kind_of(self, connection: Connection) -> ConnectionFailed | None:
        """Of a server that takes the connection and says nothing."""
        from ottla.client import diagnosis

        kind = diagnosis.probe(connection.address)
        return None if kind is None else diagnosis.wrong_server(connection.address, kind)

    def _unreachable(self, connection: Connection) -> ConnectionFailed:
        from ottla.client import diagnosis

        return diagnosis.unreachable(connection.address, connection.problem)

    def _garbled(self, connection: Connection, error: Malformed) -> ConnectionFailed:
        from ottla.client import diagnosis

        if connection.conversation.phase is Phase.NEGOTIATING and not self.has_met(connection.address):
            return diagnosis.wrong_server(connection.address, "unknown")
        return CorruptAnswer(str(connection.address), f"{connection.address} sent a broken answer: {error}")

    def _broken(self, connection: Connection, error: OSError | None) -> ConnectionFailed:
        from ottla.client import diagnosis

        return diagnosis.broken(
            connection.address,
            connection.conversation.phase,
            error,
            is_met=self.has_met(connection.address),
            is_encrypted=connection.tls is not None,
            may_want_login=self._login is None and not connection.answers,
        )

    def _fail(self, route: Route, connection: Connection, error: ClientError) -> None:
        self._forget(route, connection)
        for call in connection.conversation.close():
            call.done(error, -1)

    def _forget(self, route: Route, connection: Connection) -> None:
        if self._connections.get(route) is connection:
            del self._connections[route]
        if connection.socket is not None:
            self._selector.unregister(connection.socket)
            connection.socket.close()
            connection.socket = None
        connection.output.clear()
