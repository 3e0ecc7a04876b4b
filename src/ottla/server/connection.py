"""One peer's socket: frames in, answers out in the order the requests came.

A connection holds no buffer while it is idle. While answers wait for a slow reader nothing more is read from
it, so what a peer can make us hold is one unfinished frame, a bounded number of requests and their answers.
It knows bytes only; what they mean is its listener's application's business.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ottla.log.file_range import FileRange
from ottla.model.limits import (
    FRAMES_PER_CONNECTION_AND_TURN,
    RECEIVE_BYTES_LARGE,
    REQUESTS_IN_FLIGHT_PER_CONNECTION,
)
from ottla.model.listeners import Listener
from ottla.protocol.frames import FrameCutter
from ottla.protocol.primitives import Buffer, Chunk, chunk_size
from ottla.security.principals import ANONYMOUS, Principal
from ottla.server.socket_calls import receive_into_now, receive_now, send_file_now, send_now
from ottla.server.warming import is_resident

if TYPE_CHECKING:
    from ottla.server.accepting import Acceptor

SEND_BYTES_PER_TURN_MAX = 1024 * 1024  # one greedy reader gets this much, then the others have their turn
_BUFFERS_PER_SEND = 64  # far below IOV_MAX; a turn rarely has more answers for one peer
_MSG_MORE: int = getattr(socket, "MSG_MORE", 0)  # a header and the file bytes behind it leave in full packets
_HAS_SENDFILE = hasattr(os, "sendfile")
_COPY_BYTES = 256 * 1024  # read-and-send step where there is no sendfile


class PeerGone(Exception):
    """The peer closed or reset."""


class RecordsUnreadable(Exception):
    """The peer cannot be sent what it was promised: the disk does not give it."""

    def __init__(self, file_range: FileRange, reason: str) -> None:
        super().__init__(reason)
        self.path = file_range.handle.name


class PendingAnswer(Protocol):
    """A request's place in the order of answers."""

    @property
    def chunks(self) -> Sequence[Chunk] | None:
        """The encoded answer; None until it is known."""
        ...

    @property
    def blocks(self) -> bool:
        """Whether nothing behind it may be handled before it is answered."""
        ...

    def abandon(self) -> None:
        """The connection is gone; nobody waits for the answer any more."""
        ...


class Connection:
    __slots__ = (
        "_file_sent", "_frames", "_out", "_ready", "_warm_end", "acceptor", "application", "authenticated",
        "client_id", "closed", "cold", "control", "counted_bytes", "cutter", "fd", "frame_began_ms",
        "interest", "is_ending", "last_active_ms", "listener", "muted_until_ms", "peer_host", "peer_port",
        "pending", "principal", "progress_ms", "socket", "software",
    )  # fmt: skip

    def __init__(
        self,
        sock: socket.socket,
        peer: tuple[str, int],
        acceptor: Acceptor,
        cutter: FrameCutter,
        ready: dict[Connection, None],
        now_ms: int,
    ) -> None:
        self.socket = sock
        self.fd = sock.fileno()
        self.peer_host, self.peer_port = peer
        self.acceptor = acceptor
        self.application = acceptor.application  # what its frames are for
        self.listener: Listener = acceptor.listener
        self.control = acceptor.control  # served before data connections in every turn
        self.cutter = cutter
        self.principal: Principal = ANONYMOUS
        self.authenticated = True  # without SASL everybody is, as ANONYMOUS
        self.client_id: str | None = None  # as the last request said
        self.software = ""  # client library and version, as ApiVersions said
        self.pending: list[PendingAnswer] = []  # requests in flight, oldest first
        self.interest = 0  # what the poller watches for; kept by the reactor
        self.muted_until_ms = 0  # throttled: nothing is read until the reactor's timer makes it 0 again
        self.closed = False
        self.is_ending = False  # nothing more is read; closed when what is owed is sent
        self.frame_began_ms: int | None = None  # when the unfinished frame began
        self.last_active_ms = now_ms
        self.progress_ms = now_ms  # when a frame got whole last, or when we began to hold anything
        self.counted_bytes = 0  # what the reactor has counted as held for this peer
        self._frames: list[Any] = []  # cut, but not handled yet
        self._out: list[Any] = []  # encoded answers that are not sent yet
        self.cold: FileRange | None = None  # what must be read from the disk before more can be sent
        self._file_sent = 0  # bytes of the file range at the head of `_out` that are sent
        self._warm_end = 0  # up to this position of its file they are in memory
        self._ready = ready  # the reactor's list of those that have answers to send

    def __str__(self) -> str:
        return f"{self.peer_host}:{self.peer_port} on {self.listener.name}"

    # -- receiving ---------------------------------------------------------------------------------------

    def receive(self, now_ms: int) -> int:
        """Reads what is there; how many bytes came. Raises PeerGone or Malformed."""
        received = 0
        try:
            wanted = self.cutter.wanted()
            if wanted is None:
                data = receive_now(self.socket, self.fd)
                if data is None:
                    return 0
                received = len(data)
                if received:
                    self._feed(data, now_ms)
            else:
                # A large frame: all of it that has arrived, since every turn costs the others something.
                while wanted is not None and received < RECEIVE_BYTES_LARGE:
                    size = len(wanted)
                    count = receive_into_now(self.socket, self.fd, wanted)
                    if count < 0 and not received:
                        return 0
                    if count <= 0:
                        break
                    received += count
                    self._note_frames(self.cutter.received(count), now_ms)
                    if count < size:
                        break
                    wanted = self.cutter.wanted()
        except OSError as error:
            raise PeerGone(error.strerror or str(error)) from None
        if received == 0:
            raise PeerGone("closed by the peer")
        self.last_active_ms = now_ms
        return received

    def receive_whole(self, now_ms: int) -> Buffer | int:
        """As `receive`, for a connection at rest: the frame when one came and nothing else, as usual."""
        try:
            data = receive_now(self.socket, self.fd)
        except OSError as error:
            raise PeerGone(error.strerror or str(error)) from None
        if data is None:
            return 0
        count = len(data)
        if count == 0:
            raise PeerGone("closed by the peer")
        self.last_active_ms = now_ms
        frame = self.cutter.one_frame(data)
        if frame is not None:
            self.progress_ms = now_ms
            return frame
        self._feed(data, now_ms)
        return count

    def _feed(self, data: bytes, now_ms: int) -> None:
        # Only as many as can be handled: a receive may bring thousands of small ones.
        self._note_frames(self.cutter.feed(data, self._room()), now_ms)

    def _note_frames(self, frames: Sequence[Any], now_ms: int) -> None:
        if frames:
            self._frames += frames
            self._note_progress(now_ms)
        elif self.frame_began_ms is None:
            self.frame_began_ms = now_ms

    def take_frames(self, now_ms: int) -> list[Any]:
        """Frames to handle in this turn; others wait until there is room for more answers. Or Malformed."""
        frames, self._frames = self._frames, []
        room = self._room()
        if self.cutter.has_frame and len(frames) < room:
            frames += self.cutter.cut(room - len(frames))
            self._note_progress(now_ms)
        return frames

    def _room(self) -> int:
        return min(FRAMES_PER_CONNECTION_AND_TURN, REQUESTS_IN_FLIGHT_PER_CONNECTION - len(self.pending))

    def _note_progress(self, now_ms: int) -> None:
        """A frame got whole. What is behind it has begun now, if anything is."""
        self.progress_ms = now_ms
        self.frame_began_ms = now_ms if self.cutter.pending_bytes else None

    @property
    def has_frames(self) -> bool:
        """Frames have arrived that were not handled yet."""
        return bool(self._frames) or self.cutter.has_frame

    def give_back(self, frames: list[Any]) -> None:
        """Frames that were taken, but cannot be handled yet."""
        if not self.closed:
            self._frames[:0] = frames

    def may_read(self) -> bool:
        """Also while a request blocks: that is how we learn that the peer has left."""
        return not (
            self._out
            or self.muted_until_ms
            or self.is_ending
            or self.has_frames
            or len(self.pending) >= REQUESTS_IN_FLIGHT_PER_CONNECTION
        )

    def may_handle(self) -> bool:
        return not (
            self._out
            or self.muted_until_ms
            or self.is_ending
            or self.is_blocked()
            or len(self.pending) >= REQUESTS_IN_FLIGHT_PER_CONNECTION
        )

    def may_go_on(self) -> bool:
        """Within a turn, before its answers are sent."""
        return not (self.closed or self.is_ending or self.muted_until_ms or self.is_blocked())

    def is_blocked(self) -> bool:
        """Only the last request can block: nothing is handled behind it."""
        pending = self.pending
        return bool(pending) and pending[-1].chunks is None and pending[-1].blocks

    @property
    def has_output(self) -> bool:
        return bool(self._out)

    def is_at_rest(self) -> bool:
        """Nothing was received that is not handled, nothing is to be sent: the rule after a turn."""
        return not (
            self._out
            or self.pending
            or self._frames
            or self.muted_until_ms
            or self.is_ending
            or self.counted_bytes
            or not self.cutter.is_empty()
        )

    def held_bytes(self) -> int:
        """Memory that the peer makes us hold: frames, whole or not, and answers, in their turn or not."""
        frames = self.cutter.pending_bytes + sum(map(len, self._frames))
        answers = sum(bytes_in_memory(answer.chunks) for answer in self.pending if answer.chunks)
        return frames + answers + bytes_in_memory(self._out)

    # -- answering ---------------------------------------------------------------------------------------

    def expect(self, answer: PendingAnswer) -> None:
        self.pending.append(answer)

    def answered(self) -> None:
        """Some pending request got its answer (not necessarily the oldest)."""
        if not self.closed:
            self._ready[self] = None

    def push(self, chunk: Chunk) -> None:
        """Sends what nobody asked for, behind the answers there are, before those that are still awaited."""
        if not self.closed:
            self._take_answers()
            self._out.append(chunk)
            self._ready[self] = None

    def end(self) -> None:
        """Nothing more is read; the connection is closed when what is owed to the peer is sent."""
        if not self.closed:
            self.is_ending = True
            self._ready[self] = None

    @property
    def is_finished(self) -> bool:
        return self.is_ending and not (self._out or self.pending)

    def _take_answers(self) -> None:
        pending = self.pending
        count = 0
        for answer in pending:
            chunks = answer.chunks
            if chunks is None:
                break
            self._out += chunks
            count += 1
        if count:
            del pending[:count]

    def send(self) -> FileRange | None:
        """Sends what is ready. Gives what must be read from the disk before that can go on.

        Raises PeerGone or RecordsUnreadable.
        """
        self._take_answers()
        out = self._out
        budget = SEND_BYTES_PER_TURN_MAX
        try:
            while out and budget > 0 and self.cold is None:
                sent = self._send_file() if isinstance(out[0], FileRange) else self._send_bytes()
                if sent == 0:
                    break
                budget -= sent
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            reason = error.strerror or str(error)
            if error.errno == errno.EIO and isinstance(out[0], FileRange):
                raise RecordsUnreadable(out[0], reason) from None
            raise PeerGone(reason) from None
        return self.cold

    def _send_bytes(self) -> int:
        """How many of the bytes before the next file range were sent; 0: the peer must read first."""
        out = self._out
        count = len(out)
        if count > 1 and isinstance(out[1], FileRange):
            if self._is_cold(out[1], out[1].position, out[1].size):
                return 0
            sent = send_now(self.socket, self.fd, out[0], _MSG_MORE)
        elif count == 1:
            sent = send_now(self.socket, self.fd, out[0], 0)
            if sent == len(out[0]):
                out.clear()
                return sent
        else:
            sent = self._send_many()
        self._drop_sent_bytes(sent)
        return sent

    def _send_many(self) -> int:
        buffers = []
        more = 0
        for chunk in self._out:
            if isinstance(chunk, FileRange):
                if self._is_cold(chunk, chunk.position, chunk.size):
                    return 0
                more = _MSG_MORE
                break
            buffers.append(chunk)
            if len(buffers) == _BUFFERS_PER_SEND:
                break
        return self.socket.sendmsg(buffers, (), more)

    def _drop_sent_bytes(self, sent: int) -> None:
        out = self._out
        while sent:
            chunk = out[0]
            assert not isinstance(chunk, FileRange)
            size = len(chunk)
            if sent < size:
                out[0] = memoryview(chunk)[sent:]
                return
            sent -= size
            del out[0]

    def _send_file(self) -> int:
        chunk = self._out[0]
        assert isinstance(chunk, FileRange)
        position = chunk.position + self._file_sent
        left = chunk.size - self._file_sent
        if self._is_cold(chunk, position, left):
            return 0
        if _HAS_SENDFILE:
            size = min(left, self._warm_end - position)
            sent = send_file_now(self.fd, chunk.handle.fileno(), position, size)
            if sent < 0:
                return 0
        else:
            sent = self.socket.send(chunk.handle.pread(min(left, _COPY_BYTES), position))
        if sent == 0:
            raise RecordsUnreadable(chunk, f"{chunk.handle.name} ends before position {position}")
        self._file_sent += sent
        if self._file_sent == chunk.size:
            del self._out[0]
            self._file_sent = self._warm_end = 0
        return sent

    def _is_cold(self, chunk: FileRange, position: int, left: int) -> bool:
        """Whether the next bytes of the file range are not in memory; then they are noted as `cold`."""
        if position < self._warm_end:
            return False
        size = min(left, SEND_BYTES_PER_TURN_MAX)
        if is_resident(chunk.handle, position, size):
            self._warm_end = position + size
            return False
        self.cold = FileRange(chunk.handle, position, size)
        return True

    def warmed(self) -> None:
        """What was cold has been read."""
        assert self.cold is not None
        self._warm_end = self.cold.position + self.cold.size
        self.cold = None

    # -- the end -----------------------------------------------------------------------------------------

    def close(self) -> None:
        """Idempotent. Requests in flight are told that nobody waits for them any more."""
        if self.closed:
            return
        self.closed = True
        self.socket.close()
        self._frames.clear()
        self._out.clear()
        for answer in self.pending:
            answer.abandon()
        self.pending.clear()


def bytes_in_memory(chunks: Iterable[Chunk]) -> int:
    """Without those that are still in a file."""
    size = 0
    for chunk in chunks:
        if type(chunk) is bytes:  # nearly always
            size += len(chunk)
        elif not isinstance(chunk, FileRange):
            size += chunk_size(chunk)
    return size
