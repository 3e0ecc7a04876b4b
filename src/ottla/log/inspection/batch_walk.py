"""All batches of a segment's file, and all bytes that are none. Never stops at damage: it looks for the next
whole batch behind it, because it matters a lot whether there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ottla.log.files import FileHandle
from ottla.log.segment import RELATIVE_OFFSET_MAX
from ottla.model.limits import MIB
from ottla.model.values import NamedTuple
from ottla.records.batch import HEADER_BYTES, MAGIC, BatchHeader
from ottla.records.formats import BATCH_BYTES_MIN, MAGIC_POSITION, checksum, checksum_start, header_at

_WINDOW_BYTES = 4 * MIB

Pace = Callable[[int], None]
"""Called with every number of bytes read: a slow scrub may sleep in it, or raise to end the walk."""


class WholeBatch(NamedTuple):
    position: int
    header: BatchHeader


class BrokenBytes(NamedTuple):
    position: int
    end: int
    offset: int  # the first that could have been here
    problem: str
    next_offset: int | None  # of the whole batch that begins at `end`; None: none follows in this file
    is_zero: bool = False  # nothing but zeros up to the file's end: reserved space, or lost writes

    @property
    def size(self) -> int:
        return self.end - self.position


class Window:
    """A file, read ahead as it is walked through."""

    def __init__(self, handle: FileHandle, size: int, pace: Pace | None) -> None:
        self.size = size
        self._handle = handle
        self._pace = pace
        self._start = 0
        self._data = b""

    def bytes_at(self, position: int, count: int) -> memoryview:
        """`count` bytes, at most a window's, fewer at the end of the file."""
        count = min(count, _WINDOW_BYTES, self.size - position)
        at = position - self._start
        if at < 0 or at + count > len(self._data):
            self._start, at = position, 0
            self._data = self._handle.pread(min(_WINDOW_BYTES, self.size - position), position)
            if self._pace is not None:
                self._pace(len(self._data))
        return memoryview(self._data)[at : at + count]

    def find(self, byte: bytes, position: int) -> int:
        """Where `byte` is at or behind `position`; -1: nowhere."""
        while position < self.size:
            self.bytes_at(position, 1)
            at = self._data.find(byte, position - self._start)
            if at >= 0:
                return self._start + at
            position = self._start + len(self._data)
        return -1

    def is_zero_from(self, position: int) -> bool:
        while position < self.size:
            part = self.bytes_at(position, _WINDOW_BYTES)
            if part.tobytes().strip(b"\0"):
                return False
            position += len(part)
        return True


def walk(
    handle: FileHandle, size: int, base_offset: int, pace: Pace | None = None
) -> Iterator[WholeBatch | BrokenBytes]:
    """Everything in the first `size` bytes of a segment's file, in order and without gaps."""
    window = Window(handle, size, pace)
    position, next_offset = 0, base_offset
    while position < size:
        header, problem = _judge(window, position, next_offset, base_offset)
        if header is not None and problem is None:
            yield WholeBatch(position, header)
            position += header.size
            next_offset = header.next_offset
            continue
        assert problem is not None
        resumed = _resume(window, position, header, next_offset, base_offset)
        end = resumed.position if resumed is not None else size
        found = resumed.header.base_offset if resumed is not None else None
        is_zero = found is None and window.is_zero_from(position)
        problem = "only zeros follow" if is_zero else problem
        yield BrokenBytes(position, end, next_offset, problem, found, is_zero)
        position = end


def _judge(
    window: Window, position: int, next_offset: int, base_offset: int
) -> tuple[BatchHeader | None, str | None]:
    """The header that begins there, if one does; and what is wrong with its batch, if anything is."""
    header = header_at(window.bytes_at(position, HEADER_BYTES))
    if header is None:
        return None, f"no batch begins here, though {window.size - position} bytes follow"
    if header.size > window.size - position:
        return header, f"a batch of {header.size} bytes begins here, but only {window.size - position} follow"
    if not _checksum_is_right(window, position, header):
        return header, "the checksum does not fit the batch"
    if header.base_offset < next_offset:
        return header, f"offset {header.base_offset} follows, where {next_offset} or more is expected"
    if header.last_offset - base_offset > RELATIVE_OFFSET_MAX:
        return header, f"offset {header.last_offset} is too far from the segment's first"
    if header.magic == MAGIC and not 0 <= header.record_count <= header.last_offset_delta + 1:
        return header, f"{header.record_count} records have {header.last_offset_delta + 1} offsets"
    return header, None


def _checksum_is_right(window: Window, position: int, header: BatchHeader) -> bool:
    """In parts: a length may claim gigabytes."""
    end = position + header.size
    at = position + checksum_start(header.magic)
    value = 0
    while at < end:
        part = window.bytes_at(at, end - at)
        value = checksum(header.magic, part, value)
        at += len(part)
    return value == header.crc


def _resume(
    window: Window, position: int, header: BatchHeader | None, next_offset: int, base_offset: int
) -> WholeBatch | None:
    """The next whole batch behind damage at `position`: where the damaged one says it ends, or anywhere.

    Only batches of the current format are found anywhere: zeros, the sign of the oldest, are everywhere.
    """
    if header is not None:
        end = position + header.size
        if end < window.size and (found := _whole_at(window, end, next_offset, base_offset)) is not None:
            return found
    position += 1
    while (at := window.find(bytes((MAGIC,)), position + MAGIC_POSITION)) >= 0:
        position = at - MAGIC_POSITION
        if window.size - position < BATCH_BYTES_MIN:
            return None
        found = _whole_at(window, position, next_offset, base_offset)
        if found is not None:
            return found
        position += 1
    return None


def _whole_at(window: Window, position: int, next_offset: int, base_offset: int) -> WholeBatch | None:
    header = header_at(window.bytes_at(position, HEADER_BYTES))
    if header is None or not next_offset <= header.base_offset <= base_offset + RELATIVE_OFFSET_MAX:
        return None  # before the checksum, which is the dear part
    judged, problem = _judge(window, position, next_offset, base_offset)
    return WholeBatch(position, judged) if judged is not None and problem is None else None
