"""Cuts a stream of bytes into frames: four bytes of length, then that many bytes. Knows no sockets.

Frames that arrive whole are views of what was received, or bytes (`one_frame`). A frame larger than one
receive gets a buffer of its own to be received into; it grows with what has arrived, so that a length alone
never makes us allocate.
"""

from __future__ import annotations

import struct
from sys import maxsize

from ottla.model.limits import FRAME_BYTES_MAX, KIB, RECEIVE_BYTES
from ottla.model.problems import Malformed
from ottla.model.spare_rooms import SpareRooms
from ottla.protocol.primitives import Buffer

try:
    import cython
except ModuleNotFoundError:  # uncompiled, and Cython is not there: its names are only decoration then
    from ottla.model import cython_shim as cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_Resize
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING

_LENGTH = struct.Struct(">i")
_BUFFER_WORTH_BYTES = 16 * KIB  # below that a large frame waits as a small one does, in what was received
_COPIED_BYTES_MAX = 8 * KIB  # above that a view is cheaper
_GROWTH = 2  # what is held stays below twice what the peer has sent
_HTTP_STARTS = (b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI", b"DELE", b"CONN", b"PATC", b"PRI ", b"HTTP")


class FrameCutter:
    """One connection's receiving end."""

    def __init__(
        self, frame_bytes_max: int = FRAME_BYTES_MAX, spares: SpareRooms | None = None, copies: bool = False
    ) -> None:
        """With `spares` large frames are received into buffers of earlier ones that are no longer used; with
        `copies` a small one that comes alone is bytes, which cost less than a view of them.
        """
        self.frame_bytes_max = frame_bytes_max
        self.cuts_by_length = True  # whether bytes that are one whole frame need not pass through here
        self._spares = spares
        self._copies = copies
        # Received, and from the position on not cut yet.
        self._data = b""
        self._position = 0
        # The large frame under way: its length, what arrived of it, and the view handed out for receiving.
        self._length = 0
        self._buffer: bytearray | None = None
        self._filled = 0
        self._view: memoryview | None = None

    @property
    def pending_bytes(self) -> int:
        """Memory that the unfinished frame holds, and the frames that are not cut yet."""
        return len(self._data) - self._position if self._buffer is None else len(self._buffer)

    def is_empty(self) -> bool:
        """Whether there are none of them."""
        return self._buffer is None and self._position == len(self._data)

    @property
    def has_frame(self) -> bool:
        """Whether `cut` would give one (or refuse what is next)."""
        left = len(self._data) - self._position
        if left < 4:
            return False
        (length,) = _LENGTH.unpack_from(self._data, self._position)
        return not left - 4 < length <= self.frame_bytes_max

    def one_frame(self, data: bytes) -> Buffer | None:
        """The frame, if `data`, received while nothing else is held, is exactly one, as it usually is."""
        size = len(data) - 4
        if not (0 < size <= self.frame_bytes_max and self.cuts_by_length and _length_at(data) == size):
            return None
        if self._copies and size <= _COPIED_BYTES_MAX:
            return data[4:]
        return memoryview(data)[4:]

    def feed(self, data: bytes, count_max: int = maxsize) -> list[memoryview]:
        """Takes `data` in, and cuts. After `Malformed` the stream is lost."""
        frames: list[memoryview] = []
        if self._buffer is not None:
            data = self._fill(data, frames)
        if self._data:
            data = self._data[self._position :] + data
        self._data, self._position = data, 0
        return frames + self.cut(count_max) if frames else self.cut(count_max)

    def cut(self, count_max: int = maxsize) -> list[memoryview]:
        """The next whole frames, without their lengths."""
        data, position = self._data, self._position
        size = len(data)
        view = memoryview(data)
        frames: list[memoryview] = []
        while size - position >= 4:
            if len(frames) == count_max:
                self._position = position
                return frames
            (length,) = _LENGTH.unpack_from(data, position)
            if not 0 <= length <= self.frame_bytes_max:
                self._refuse(length, data[position : position + 4])
            end = position + 4 + length
            if end > size:
                if length > RECEIVE_BYTES and size - position >= _BUFFER_WORTH_BYTES:
                    self._begin_buffer(length, view[position + 4 :])
                    position = size
                break
            frames.append(view[position + 4 : end])
            position = end
        self._data, self._position = data[position:], 0
        return frames

    def wanted(self) -> memoryview | None:
        """Where to receive into while a large frame is under way; None: receive as usual, and `feed`."""
        if self._buffer is None:
            return None
        if self._filled == len(self._buffer):
            self._release_view()
            _grow(self._buffer, min(len(self._buffer) * _GROWTH, self._length))
        if self._view is None:
            self._view = memoryview(self._buffer)[self._filled : self._length]
        return self._view

    def received(self, count: int) -> list[memoryview]:
        """After `count` bytes came into `wanted()`: the frame, if they completed it."""
        assert self._buffer is not None
        self._release_view()
        self._filled += count
        if self._filled < self._length:
            return []
        frame = memoryview(self._buffer)[: self._length].toreadonly()
        if self._spares is not None:
            self._spares.give(self._buffer)
        self._buffer = None
        return [frame]

    def _fill(self, data: bytes, frames: list[memoryview]) -> bytes:
        """Put fed data into the large frame under way; what is left of it."""
        while data and (room := self.wanted()) is not None:
            count = min(len(room), len(data))
            room[:count] = data[:count]
            data = data[count:]
            frames += self.received(count)
        return data

    def _begin_buffer(self, length: int, start: memoryview) -> None:
        self._length = length
        self._filled = len(start)
        room = None if self._spares is None else self._spares.take(length)
        if room is None:
            self._buffer = bytearray(start)
            _grow(self._buffer, min(self._filled + RECEIVE_BYTES, length))
        else:
            room[: self._filled] = start
            self._buffer = room

    def _release_view(self) -> None:
        if self._view is not None:
            self._view.release()
            self._view = None

    def _refuse(self, length: int, start: bytes) -> None:
        hint = ""
        if start[:2] == b"\x16\x03":
            hint = "; the peer seems to speak TLS to a plaintext listener"
        elif start in _HTTP_STARTS:
            hint = "; the peer seems to speak HTTP"
        raise Malformed(f"a frame of {length} bytes: 0 to {self.frame_bytes_max} are accepted{hint}")


def _length_at(data: bytes) -> int:
    """What the first four of at least four bytes say."""
    if cython.compiled:
        p = cython.cast("const unsigned char *", PyBytes_AS_STRING(data))
        return (p[0] & 0x7F) << 24 | p[1] << 16 | p[2] << 8 | p[3] if p[0] < 0x80 else -1
    return int(_LENGTH.unpack_from(data)[0])


def _grow(buffer: bytearray, size: int) -> None:
    """To `size` bytes; what the new ones hold does not matter."""
    if cython.compiled:
        PyByteArray_Resize(buffer, size)  # neither zeroes nor copies them
    else:
        buffer += bytes(size - len(buffer))
