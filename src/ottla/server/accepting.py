"""Listening sockets, and who of those that knock is let in; the rest of its life is the reactor's."""

from __future__ import annotations

import contextlib
import errno
import logging
import math
import socket
import sys
from collections.abc import Callable

from ottla.model.clock import Clock
from ottla.model.limits import (
    CONNECTION_IDLE_MS_MAX,
    CONNECTIONS_MAX,
    CONNECTIONS_PER_ADDRESS_MAX,
    FRAME_BYTES_MAX,
    FRAMES_BYTES_TOTAL,
    KIB,
)
from ottla.model.listeners import Listener
from ottla.model.metrics import Registry
from ottla.server.application import Application
from ottla.server.poller import READABLE, Poller
from ottla.server.timers import Timers

log = logging.getLogger(__name__)

_ACCEPTS_PER_TURN = 64
_PAUSE_MS = 1_000  # after running out of descriptors
_CREDIT_MS_MAX = 1_000.0  # a second's worth of connections may come at once, as in Kafka


class SocketOptions:
    """The settings of sockets. -1 leaves a buffer to the operating system; other defaults are Kafka's."""

    def __init__(
        self,
        *,
        send_buffer_bytes: int = 100 * KIB,
        receive_buffer_bytes: int = -1,
        listen_backlog: int = 50,
        request_bytes_max: int = FRAME_BYTES_MAX,
        queued_request_bytes_max: int = FRAMES_BYTES_TOTAL,
        connections_max: int = CONNECTIONS_MAX,
        connections_per_address_max: Callable[[str], int] = lambda _: CONNECTIONS_PER_ADDRESS_MAX,
        connections_per_second_max: int | None = None,
        idle_ms_max: int = CONNECTION_IDLE_MS_MAX,
        connections_max_setting: str = "max.connections",
        connections_per_address_max_setting: str = "max.connections.per.ip",
    ) -> None:
        self.send_buffer_bytes = send_buffer_bytes  # autotuning cut loopback fetches to a third of this
        self.receive_buffer_bytes = receive_buffer_bytes  # 100 KiB cut large produces to two thirds
        self.listen_backlog = listen_backlog
        self.request_bytes_max = request_bytes_max
        self.queued_request_bytes_max = queued_request_bytes_max
        self.connections_max = connections_max
        self.connections_per_address_max = connections_per_address_max
        self.connections_per_second_max = connections_per_second_max
        self.idle_ms_max = idle_ms_max  # negative: for ever
        # What a person would change, by the protocol's names.
        self.connections_max_setting = connections_max_setting
        self.connections_per_address_max_setting = connections_per_address_max_setting


class Admission:
    """Counts those who are in, and says who may join them. Listeners with the same options share one."""

    def __init__(self, options: SocketOptions) -> None:
        self.options = options
        self._open = 0
        self._open_by_host: dict[str, int] = {}
        self._credit_ms = _CREDIT_MS_MAX  # time saved up; each new connection costs its share of a second
        self._credited_ms = 0  # when that was last counted

    @property
    def open(self) -> int:
        return self._open

    def reason_to_refuse(self, host: str, control: bool) -> str | None:
        options = self.options
        if self._open >= options.connections_max and not control:
            return f"{options.connections_max_setting}={options.connections_max} are open"
        from_host = self._open_by_host.get(host, 0)
        if from_host >= options.connections_per_address_max(host):
            return f"{options.connections_per_address_max_setting}: {from_host} are open from there"
        return None

    def wait_ms(self, now_ms: int) -> int:
        """How long the next one has to wait by the rate of new connections; 0: it may come."""
        rate = self.options.connections_per_second_max
        if rate is None:
            return 0
        self._credit_ms = min(_CREDIT_MS_MAX, self._credit_ms + now_ms - self._credited_ms)
        self._credited_ms = now_ms
        if rate == 0:
            return _PAUSE_MS
        missing_ms = 1000 / rate - self._credit_ms
        return 0 if missing_ms <= 0 else max(1, math.ceil(missing_ms))

    def entered(self, host: str) -> None:
        self._open += 1
        if self.options.connections_per_second_max:
            self._credit_ms -= 1000 / self.options.connections_per_second_max
        self._open_by_host[host] = self._open_by_host.get(host, 0) + 1

    def left(self, host: str) -> None:
        self._open -= 1
        remaining = self._open_by_host[host] - 1
        if remaining:
            self._open_by_host[host] = remaining
        else:
            del self._open_by_host[host]


class Acceptor:
    __slots__ = ("admission", "application", "control", "listener", "socket")

    def __init__(
        self,
        sock: socket.socket,
        listener: Listener,
        application: Application,
        control: bool,
        admission: Admission,
    ) -> None:
        self.socket = sock
        self.listener = listener
        self.application = application
        self.control = control
        self.admission = admission


Peer = tuple[str, int]
Welcome = Callable[[socket.socket, Peer, Acceptor], None]


class Accepting:
    def __init__(
        self,
        options: SocketOptions,
        poller: Poller,
        timers: Timers,
        clock: Clock,
        metrics: Registry,
        welcome: Welcome,
    ) -> None:
        self.acceptors: dict[int, Acceptor] = {}  # by descriptor
        self.has_control = False  # whether any of them was one whose connections are served first
        self._options = options
        self._poller = poller
        self._timers = timers
        self._clock = clock
        self._welcome = welcome  # gets the socket of everyone who is let in
        self._admissions = [Admission(options)]
        self._opened = metrics.counter("server.connections.opened")
        self._refused = metrics.counter("server.connections.refused")
        metrics.gauge("server.connections.open", lambda: sum(each.open for each in self._admissions))

    # -- listening -----------------------------------------------------------------------------------------

    def bind(self, listener: Listener) -> socket.socket:
        """Takes the address; nobody can connect yet. OSError when it is not to be had."""
        family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if self._options.receive_buffer_bytes > 0:  # before listen, or the TCP window stays small
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._options.receive_buffer_bytes)
            sock.bind((_as_address(listener.host), listener.port))
        except OSError:
            sock.close()
            raise
        return sock

    def listen(
        self,
        listener: Listener,
        application: Application,
        control: bool,
        sock: socket.socket,
        options: SocketOptions | None,
    ) -> Listener:
        """Accepts from now on. Returns the listener with its real port."""
        admission = self._admission_by(options or self._options)
        sock.listen(admission.options.listen_backlog)
        sock.setblocking(False)
        bound = listener._replace(port=sock.getsockname()[1])
        self.has_control |= control
        self.acceptors[sock.fileno()] = Acceptor(sock, bound, application, control, admission)
        self._poller.register(sock.fileno(), READABLE)
        return bound

    def _admission_by(self, options: SocketOptions) -> Admission:
        for admission in self._admissions:
            if admission.options is options:
                return admission
        self._admissions.append(Admission(options))
        return self._admissions[-1]

    def stop(self) -> None:
        for fd, acceptor in self.acceptors.items():
            with contextlib.suppress(OSError, KeyError, ValueError):  # paused ones are not registered
                self._poller.unregister(fd)
            acceptor.socket.close()
        self.acceptors.clear()

    # -- accepting -----------------------------------------------------------------------------------------

    def accept(self, acceptor: Acceptor) -> None:
        """Takes those who wait, not too many in one turn."""
        for _ in range(_ACCEPTS_PER_TURN):
            wait_ms = 0 if acceptor.control else acceptor.admission.wait_ms(self._clock.monotonic_ms())
            if wait_ms:
                self._pause(acceptor, wait_ms)
                return
            try:
                sock, address = acceptor.socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    log.error(
                        "no new connections on %s for a moment: %s; raise `ulimit -n`",
                        acceptor.listener,
                        error.strerror,
                    )
                    self._pause(acceptor, _PAUSE_MS)
                else:  # the network's trouble with one peer (accept(2) lists them), not ours
                    log.warning("a connection to %s failed: %s", acceptor.listener, error.strerror)
                return
            # Thousands may come from one address, whose text is then kept once.
            self._let_in(sock, (sys.intern(address[0]), address[1]), acceptor)

    def _pause(self, acceptor: Acceptor, for_ms: int) -> None:
        """Those who knock wait in the listener's backlog."""
        fd = acceptor.socket.fileno()
        self._poller.modify(fd, 0)

        def resume() -> None:
            if fd in self.acceptors:
                self._poller.modify(fd, READABLE)

        self._timers.set(self._clock.monotonic_ms() + for_ms, resume)

    def _let_in(self, sock: socket.socket, peer: Peer, acceptor: Acceptor) -> None:
        admission = acceptor.admission
        reason = admission.reason_to_refuse(peer[0], acceptor.control)
        if reason is not None:
            self._refused.value += 1
            log.warning("refused a connection from %s:%d on %s: %s", *peer, acceptor.listener.name, reason)
            sock.close()
            return
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if admission.options.send_buffer_bytes > 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, admission.options.send_buffer_bytes)
            self._welcome(sock, peer, acceptor)
        except OSError as error:  # reset before we could look at it
            log.debug("%s:%d: %s", *peer, error.strerror)
            sock.close()
            return
        admission.entered(peer[0])
        self._opened.value += 1


def _as_address(host: str) -> str | bytes:
    """Bytes are taken as they are; for text Python first imports what it knows of international names."""
    return host.encode() if host.isascii() else host
