"""Sorted (key, value) entries of one segment, as both its index files hold them: the part in the file, and
a tail in memory that is not written yet.

The tail keeps a system call away from every entry; it is written when it is long enough, when the segment is
sealed and on a clean stop. What a crash loses of it is rebuilt from the log.
"""

from __future__ import annotations

import contextlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from struct import Struct

from ottla.log.file_range import FileRange
from ottla.log.files import Buffer, NotResident
from ottla.log.open_files import PooledFile

_TAIL_ENTRIES_MAX = 512  # 2 MiB of log at the default interval; a few KiB of memory per partition
_READ_ENTRIES = (
    512  # at once, by a reader who may stop early: Kafka leaves 10 MiB of zeros behind the last one
)
_BLOCK_ENTRIES = 32  # the last steps of a search look at one block in memory

Entry = tuple[int, int]


class SparseIndex:
    """Entries with rising keys and values that never fall. See `OffsetIndex` and `TimeIndex` for their
    meaning.
    """

    __slots__ = ("_block", "_file", "_keys", "_last", "_values", "_written", "is_cut")

    ENTRY: Struct
    _KEY_TYPE: str
    _OFFSET_FIELD: int  # which of the two is the relative offset

    def __init__(self, file: PooledFile, file_bytes: int) -> None:
        self._file = file
        self._written = file_bytes // self.ENTRY.size  # entries in the file
        self._keys = array(self._KEY_TYPE)
        self._values = array("i")
        self.is_cut = False  # the file has entries that do not count any more
        self._last: Entry | None = None  # the last entry, once it is known
        # Of the file, where it was searched last: number of the first entry, keys, values. A consumer goes on
        # where it was, so most searches end here.
        self._block: tuple[int, array[int], array[int]] | None = None

    def __len__(self) -> int:
        return self._written + len(self._keys)

    @property
    def file(self) -> PooledFile:
        return self._file

    def last(self) -> Entry | None:
        if self._last is None and self._written:
            self._last = self.entry(self._written - 1)
        return self._last

    def entry(self, index: int) -> Entry:
        if index >= self._written:
            index -= self._written
            return self._keys[index], self._values[index]
        size = self.ENTRY.size
        key, value = self.ENTRY.unpack(self._pread(size, index * size))
        return key, value

    def __iter__(self) -> Iterator[Entry]:
        for first in range(0, self._written, _READ_ENTRIES):
            yield from self._read(first, min(first + _READ_ENTRIES, self._written))
        yield from zip(self._keys, self._values, strict=True)

    def entries(self) -> list[Entry]:
        return list(self)

    def append(self, key: int, value: int) -> None:
        self._keys.append(key)
        self._values.append(value)
        self._last = (key, value)
        if len(self._keys) % _TAIL_ENTRIES_MAX == 0:
            with contextlib.suppress(OSError):  # a full disk: the tail waits in memory
                self.write()

    def write(self) -> None:
        """Bring the file up to date."""
        if not (self._keys or self.is_cut):
            return
        handle = self._file.handle()
        if handle.size != self._written * self.ENTRY.size:
            handle.truncate(self._written * self.ENTRY.size)
        if self._keys:
            handle.append([b"".join(map(self.ENTRY.pack, self._keys, self._values))])
        self._written += len(self._keys)
        self.is_cut = False
        self._clear_tail()

    def floor(self, key: int) -> Entry | None:
        """The last entry whose key is at most `key`."""
        keys = self._keys
        if keys and keys[0] <= key:
            at = bisect_right(keys, key) - 1
            return keys[at], self._values[at]
        return self._floor_in_file(key)

    def _floor_in_file(self, key: int) -> Entry | None:
        block = self._block
        if block is None or not self._block_has(block, key):
            block = self._find_block(key)
            if block is None:
                return None
        _, keys, values = block
        at = bisect_right(keys, key) - 1
        return (keys[at], values[at]) if at >= 0 else None

    def _block_has(self, block: tuple[int, array[int], array[int]], key: int) -> bool:
        """Whether the last entry up to `key` is in this block, or there is none such in the file."""
        first, keys, _ = block
        return (first == 0 or keys[0] <= key) and (key < keys[-1] or first + len(keys) == self._written)

    def _find_block(self, key: int) -> tuple[int, array[int], array[int]] | None:
        """One that has the last entry up to `key`, if there is any; it is kept. None: the file is empty."""
        low, high = 0, self._written  # entries before low have keys <= key, those from high on do not
        if high:
            unpack, size = self.ENTRY.unpack, self.ENTRY.size
            while high - low > _BLOCK_ENTRIES:
                middle = (low + high) // 2
                if unpack(self._pread(size, middle * size))[0] <= key:
                    low = middle + 1
                else:
                    high = middle
        first = max(low - 1, 0)
        entries = self._read(first, min(first + _READ_ENTRIES, self._written))
        if not entries:
            return None
        keys = array(self._KEY_TYPE, [each for each, _ in entries])
        values = array("i", [each for _, each in entries])
        self._block = block = (first, keys, values)
        return block

    def _read(self, first: int, end: int) -> list[Entry]:
        if first >= end:
            return []
        size = self.ENTRY.size
        data = self._pread((end - first) * size, first * size)
        return [(key, value) for key, value in self.ENTRY.iter_unpack(data)]

    def _pread(self, size: int, position: int) -> Buffer:
        try:
            return self._file.pread(size, position)
        except NotResident as cold:
            # All of it: a search goes on to other parts, and each would be asked for in turn.
            whole = FileRange(cold.file_range.handle, 0, self._written * self.ENTRY.size)
            raise NotResident(whole) from None

    def truncate(self, count: int) -> None:
        """Keep the first `count` entries; `write` cuts the file."""
        if count < self._written:
            self._written = count
            self.is_cut = True
            self._block = None
            self._clear_tail()
        else:
            del self._keys[count - self._written :]
            del self._values[count - self._written :]
        self._last = self.entry(count - 1) if count else None

    def truncate_to(self, relative_offset: int) -> None:
        """Drop the entries that speak of offsets from `relative_offset` on."""
        entry_count = len(self)
        keep = bisect_left(
            range(entry_count), relative_offset, key=lambda at: self.entry(at)[self._OFFSET_FIELD]
        )
        if keep < entry_count:
            self.truncate(keep)

    def _clear_tail(self) -> None:
        del self._keys[:]
        del self._values[:]
