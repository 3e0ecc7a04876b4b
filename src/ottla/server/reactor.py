"""The loop that owns the broker: one thread, one turn after the other.

A turn takes everything that is ready: results that workers handed back, new connections, frames (control
connections first, then as many data bytes as a turn allows), hands all frames to the applications at once,
lets them finish the turn (append, settle what is parked, start a sync), and then writes each connection's
answers once. It never waits for a disk and knows nothing of what the frames mean.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from typing import Any

from ottla.log.file_range import FileRange
from ottla.model.clock import Clock
from ottla.model.limits import (
    FRAME_ARRIVAL_MS_MAX,
    REQUESTS_PER_TURN_MAX,
    TURN_BYTES_MAX,
)
from ottla.model.listeners import Listener
from ottla.model.metrics import Registry
from ottla.model.problems import Malformed
from ottla.server.accepting import Accepting, Acceptor, Peer, SocketOptions
from ottla.server.application import Application, Arrivals
from ottla.server.connection import Connection, PeerGone, RecordsUnreadable
from ottla.server.mailbox import Mailbox
from ottla.server.poller import BROKEN, HANGUP, READABLE, WRITABLE, Poller, best_poller
from ottla.server.timers import Timers
from ottla.server.warming import Offload, run_at_once, warm

log = logging.getLogger(__name__)

_SWEEP_MS = 10_000  # how often idle and stuck connections are looked for
_REQUEST_COST_BYTES = TURN_BYTES_MAX // REQUESTS_PER_TURN_MAX  # what a request takes of a turn's budget
_REASON_CHARACTERS_MAX = 300  # in the log


class Reactor:
    def __init__(
        self, clock: Clock, options: SocketOptions, metrics: Registry, poller: Poller | None = None
    ) -> None:
        self.clock = clock
        self.timers = Timers()
        self.offload: Offload = run_at_once  # how cold data is read
        self.file_failed: Callable[[str, BaseException], None] = lambda *_: None  # hears of unreadable ones
        # Run after the frames of each turn, before answers leave.
        self.turn_hooks: list[Callable[[], None]] = []
        self._options = options
        self._poller = poller or best_poller()
        self._connections: dict[int, Connection] = {}
        self._ready: dict[Connection, None] = {}  # connections with answers to send, in order of readiness
        self._postponed: list[int] = []  # readable descriptors that the last turn's budget did not reach
        self._mailbox = Mailbox()
        self.post = self._mailbox.post  # the only thing of the reactor that other threads may call
        self.ring_fd = self._mailbox.ring_fileno()  # or they write a byte there, and a hook looks why
        self._held_bytes = 0  # memory that peers make us hold, over all connections
        self._now_ms = clock.monotonic_ms()  # when this turn began
        self._running = False
        self._reading = True
        self._poller.register(self._mailbox.fileno(), READABLE)
        self._bytes_in = metrics.counter("server.bytes.in")
        self._turns = metrics.counter("server.turns")
        self._accepting = Accepting(options, self._poller, self.timers, clock, metrics, self._welcome)
        self._sweep()

    # -- listening ---------------------------------------------------------------------------------------

    def bind(self, listener: Listener) -> socket.socket:
        """Takes the address; nobody can connect yet. OSError when it is not to be had."""
        return self._accepting.bind(listener)

    def listen(
        self,
        listener: Listener,
        application: Application,
        *,
        control: bool = False,
        sock: socket.socket | None = None,
        options: SocketOptions | None = None,
    ) -> Listener:
        """Accepts from now on, on `bind`'s socket or a new one. Returns the listener with its real port.

        `options` when they are not the reactor's; its limits in bytes and time hold for all together.
        """
        return self._accepting.listen(listener, application, control, sock or self.bind(listener), options)

    def stop_listening(self) -> None:
        self._accepting.stop()

    def _welcome(self, sock: socket.socket, peer: Peer, acceptor: Acceptor) -> None:
        cutter = acceptor.application.cutter(acceptor.admission.options.request_bytes_max)
        now_ms = self.clock.monotonic_ms()
        connection = Connection(sock, peer, acceptor, cutter, self._ready, now_ms)
        connection.interest = READABLE
        self._poller.register(connection.fd, READABLE)
        self._connections[connection.fd] = connection

    # -- the loop ------------------------------------------------------------------------------------------

    def run(self) -> None:
        self._running = True
        while self._running:
            self.turn()

    def stop(self) -> None:
        """The loop ends after this turn."""
        self._running = False

    def turn(self, wait_ms_max: int | None = None) -> None:
        events = self._poller.poll(self._poll_timeout_ms(wait_ms_max))
        self._turns.value += 1
        self._now_ms = now_ms = self.clock.monotonic_ms()
        readable = self._postponed
        self._postponed = []
        acceptors = self._accepting.acceptors
        for fd, bits in events:
            connection = self._connections.get(fd)
            if connection is not None:
                if bits & WRITABLE:
                    self._ready[connection] = None
                if bits & READABLE:
                    readable.append(fd)
                elif bits & (BROKEN | HANGUP):  # nobody reads it at the moment, so nobody else would notice
                    self._close(connection)
            elif fd in acceptors:
                self._accepting.accept(acceptors[fd])
            else:
                self._mailbox.silence()
        self._mailbox.run()
        self.timers.fire(now_ms)
        if readable:
            self._receive(dict.fromkeys(readable), now_ms)
        for hook in self.turn_hooks:
            hook()
        self._send_answers()

    def _poll_timeout_ms(self, wait_ms_max: int | None) -> int | None:
        if self._postponed or self._mailbox.actions or self._ready:
            return 0
        deadline_ms = self.timers.next_deadline_ms()
        if deadline_ms is None:
            return wait_ms_max
        wait_ms = max(0, deadline_ms - self.clock.monotonic_ms())
        return wait_ms if wait_ms_max is None else min(wait_ms, wait_ms_max)

    # -- receiving -----------------------------------------------------------------------------------------

    def _receive(self, readable: dict[int, None], now_ms: int) -> None:
        """Control connections first; data connections until the turn's budget is used up."""
        arrivals: dict[Application, Arrivals] = {}
        if self._accepting.has_control:
            for fd in [each for each in readable if self._is_control(each)]:
                self._receive_one(fd, now_ms, arrivals)
                del readable[fd]
            self._handle(arrivals)
            arrivals = {}
        budget = TURN_BYTES_MAX
        for fd in readable:
            if budget <= 0:
                self._postponed.append(fd)
            else:
                budget -= self._receive_one(fd, now_ms, arrivals)
        self._handle(arrivals)

    def _is_control(self, fd: int) -> bool:
        connection = self._connections.get(fd)
        return connection is not None and connection.control

    def _handle(self, arrivals: dict[Application, Arrivals]) -> None:
        for application, frames in arrivals.items():
            for unserved in application.handle_frames(frames):
                self._watch(unserved)
            for connection, _ in frames:  # those with answers are looked at when these are sent
                if connection not in self._ready and not connection.may_read():
                    self._watch(connection)

    def _receive_one(self, fd: int, now_ms: int, arrivals: dict[Application, Arrivals]) -> int:
        connection = self._connections.get(fd)
        if connection is None or not self._reading:
            return 0
        try:
            if connection.is_at_rest():
                received = connection.receive_whole(now_ms)
                if not isinstance(received, int):  # the usual case, and the whole of it
                    size = len(received)
                    self._bytes_in.value += size
                    self._arrived(connection, [received], arrivals)
                    return size + _REQUEST_COST_BYTES
            else:
                received = connection.receive(now_ms) if connection.may_read() else 0
            return received + self._take_frames(connection, received, now_ms, arrivals)
        except PeerGone as gone:
            log.debug("%s: %s", connection, gone)
            self._close(connection)
        except Malformed as problem:
            self.drop(connection, str(problem))
        return 0

    def _arrived(
        self, connection: Connection, frames: list[Any], arrivals: dict[Application, Arrivals]
    ) -> None:
        application = connection.application
        known = arrivals.get(application)
        if known is None:
            arrivals[application] = [(connection, frames)]
        else:
            known.append((connection, frames))

    def _take_frames(
        self,
        connection: Connection,
        received: int,
        now_ms: int,
        arrivals: dict[Application, Arrivals],
    ) -> int:
        """Frames that can be handled now; what they cost of the turn. Raises Malformed."""
        self._bytes_in.value += received
        if connection.cutter.pending_bytes or connection.counted_bytes:
            self._count_held(connection)
        if not connection.may_handle():
            self._watch(connection)
            return 0
        frames = connection.take_frames(now_ms)
        if frames:
            self._arrived(connection, frames, arrivals)
        return len(frames) * _REQUEST_COST_BYTES

    def _count_held(self, connection: Connection) -> None:
        """Brings the sum of held bytes up to date; those who hold us up go when it is too much."""
        if connection.closed:
            return
        held_bytes = connection.held_bytes()
        if not connection.counted_bytes:
            connection.progress_ms = self._now_ms
        self._held_bytes += held_bytes - connection.counted_bytes
        connection.counted_bytes = held_bytes
        while self._held_bytes > self._options.queued_request_bytes_max > 0:
            self._drop_slowest()

    def _drop_slowest(self) -> None:
        """Of those that hold a fair share or more, the one that has made no progress for longest.

        Without the share many small and slow ones would be sacrificed for a few large ones.
        """
        holding = [known for known in self._connections.values() if known.counted_bytes]
        fair_bytes = self._held_bytes // len(holding) // 2
        slowest = min(
            (known for known in holding if known.counted_bytes >= fair_bytes),
            key=lambda known: known.progress_ms,
        )
        self.drop(
            slowest,
            f"unfinished requests and unread answers of all connections exceed queued.max.request.bytes; "
            f"{slowest.counted_bytes} of them are its",
        )

    # -- answering -----------------------------------------------------------------------------------------

    def _wake(self, connection: Connection) -> None:
        self._ready[connection] = None

    def _send_answers(self) -> None:
        ready = list(self._ready)
        self._ready.clear()  # connections know this very dict
        for connection in ready:
            if connection.closed or connection.cold is not None:
                continue
            try:
                cold = connection.send()
            except PeerGone as gone:
                log.debug("%s: %s", connection, gone)
                self._close(connection)
                continue
            except RecordsUnreadable as problem:
                self._drop_unreadable(connection, problem.path, problem)
                continue
            connection.last_active_ms = self._now_ms
            if connection.is_at_rest() and connection.interest == READABLE:
                continue
            if cold is not None:
                self._read_cold(connection, cold)
            if connection.is_finished:
                self._close(connection)
            else:
                self._watch(connection)

    def _read_cold(self, connection: Connection, cold: FileRange) -> None:
        """What is to be sent next is not in memory: a worker reads it, and nobody else waits."""

        def read(error: BaseException | None) -> None:
            if connection.closed:
                return
            if error is not None:
                self._drop_unreadable(connection, cold.handle.name, error)
            else:
                connection.warmed()
                self._wake(connection)

        self.offload(lambda: warm([cold]), read)

    def _drop_unreadable(self, connection: Connection, path: str, error: BaseException) -> None:
        """The answer was begun, so there is no other way to tell; the next fetch gets the error itself."""
        self.drop(connection, f"the records it asked for cannot be read: {error}")
        self.file_failed(path, error)

    def _watch(self, connection: Connection) -> None:
        """Tells the poller what we want of this connection now, when that changed."""
        if connection.is_at_rest() and connection.interest == READABLE and self._reading:
            return
        self._count_held(connection)
        if connection.closed:
            return
        if connection.has_frames and connection.may_handle():
            self._postponed.append(connection.fd)
        interest = 0
        if self._reading:
            if connection.may_read():
                interest = READABLE
            elif connection.is_blocked():
                interest = HANGUP  # a peer that has left waits for nothing
        if connection.has_output and connection.cold is None:
            interest |= WRITABLE
        if interest != connection.interest:
            connection.interest = interest
            self._poller.modify(connection.fd, interest)

    def mute(self, connection: Connection, for_ms: int) -> None:
        """Throttling (KIP-219): the answer leaves at once, then nothing is read for a while."""
        until_ms = self.clock.monotonic_ms() + for_ms
        if connection.closed or for_ms <= 0 or until_ms <= connection.muted_until_ms:
            return

        def unmute() -> None:
            if connection.muted_until_ms == until_ms:  # and not for longer since
                connection.muted_until_ms = 0
                self._watch(connection)

        connection.muted_until_ms = until_ms
        self._watch(connection)
        self.timers.set(until_ms, unmute)

    # -- closing -------------------------------------------------------------------------------------------

    def drop(self, connection: Connection, reason: str) -> None:
        """Closes a connection whose peer broke the protocol, with one line in the log."""
        if not connection.closed:
            reason = reason[:_REASON_CHARACTERS_MAX]
            # A peer's own words may be in it: they must not make lines of their own.
            log.warning("closed %s: %s", connection, reason if reason.isprintable() else ascii(reason))
            self._close(connection)

    def _close(self, connection: Connection) -> None:
        del self._connections[connection.fd]
        self._held_bytes -= connection.counted_bytes
        connection.counted_bytes = 0
        self._poller.unregister(connection.fd)
        self._ready.pop(connection, None)
        connection.close()
        connection.acceptor.admission.left(connection.peer_host)
        connection.acceptor.application.disconnected(connection)

    def _sweep(self) -> None:
        """Ends what is idle for too long, and frames that never get whole."""
        now_ms = self.clock.monotonic_ms()
        self.timers.set(now_ms + _SWEEP_MS, self._sweep)
        for connection in list(self._connections.values()):
            idle_ms_max = connection.acceptor.admission.options.idle_ms_max
            if connection.frame_began_ms is not None and not connection.has_frames:
                if connection.frame_began_ms < now_ms - FRAME_ARRIVAL_MS_MAX:
                    self.drop(
                        connection,
                        f"a request was begun but not finished in {FRAME_ARRIVAL_MS_MAX // 1000} s",
                    )
            elif 0 <= idle_ms_max < now_ms - connection.last_active_ms and not connection.pending:
                log.debug("%s: idle, closed", connection)
                self._close(connection)

    # -- shutdown ------------------------------------------------------------------------------------------

    def stop_reading(self) -> None:
        """No further request is taken; answers still leave."""
        self._reading = False
        for connection in self._connections.values():
            self._watch(connection)

    @property
    def answers_outstanding(self) -> bool:
        return any(connection.pending or connection.has_output for connection in self._connections.values())

    def close(self) -> None:
        self.stop_listening()
        for connection in list(self._connections.values()):
            self._close(connection)
        self._mailbox.close()
        self._poller.close()
