"""One segment: a `.log` file of batches and the two sparse indexes into it.

Only the last segment of a log, the active one, grows. Positions always lie on batch boundaries. A segment
knows nothing of configuration, other segments or syncing: `PartitionLog` decides when to append, seal and
drop it.
"""

from __future__ import annotations

import contextlib
import os
import random
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence

from ottla.log import file_names
from ottla.log.files import Buffer, FileHandle, Files
from ottla.log.offset_index import OffsetIndex
from ottla.log.open_files import OpenFiles, PooledFile
from ottla.log.time_index import TimeIndex
from ottla.log.txn_index import TransactionIndex
from ottla.model.configs import TopicConfig
from ottla.model.errors import CorruptData
from ottla.model.offsets import NO_TIMESTAMP
from ottla.records.batch import HEADER_BYTES, MAGIC, BatchHeader
from ottla.records.formats import header_at

RELATIVE_OFFSET_MAX = 2**31 - 1

_SCAN_BYTES = 8 * 1024  # the first read when looking for a batch; two index intervals
_SCAN_BYTES_MAX = 1024 * 1024
_RECENT_MAX = 128  # append boundaries kept in memory; covers what consumers at the log's end ask for


class Segment:
    __slots__ = (
        "_bytes_since_entry",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_recent_ends",
        "_recent_offsets",
        "_recent_positions",
        "base_offset",
        "created_ms",
        "end_offset",
        "first_timestamp",
        "log",
        "offset_index",
        "roll_jitter_ms",
        "size",
        "time_index",
        "txn_index",
    )

    def __init__(
        self,
        log: PooledFile,
        size: int,
        offset_index: OffsetIndex,
        time_index: TimeIndex,
        txn_index: TransactionIndex,
        base_offset: int,
    ) -> None:
        self.base_offset = base_offset
        self.end_offset = base_offset  # offset after the last batch; of sealed segments the next one's base
        self.size = size  # bytes of batches in the log file
        self.log = log
        self.offset_index = offset_index
        self.time_index = time_index
        self.txn_index = txn_index
        self.first_timestamp: int | None = None  # largest timestamp of the first append; None: not known yet
        self.created_ms = 0
        self.roll_jitter_ms = (
            0  # this much earlier than segment.ms it is rolled, so that not all roll at once
        )
        self._max_timestamp: int | None = NO_TIMESTAMP if size == 0 else None  # None: read it when asked for
        self._max_timestamp_offset = base_offset
        self._bytes_since_entry = 0
        self._recent_offsets: list[int] = []  # first offsets of the last appends ...
        self._recent_ends: list[int] = []  # ... the last offset of their first batch ...
        self._recent_positions: list[int] = []  # ... and where they begin

    @property
    def path_stem(self) -> str:
        return self.log.path.removesuffix(file_names.LOG)

    def begin_life(self, now_ms: int, config: TopicConfig) -> None:
        """As the active segment; from `now_ms` its age counts when its records carry no time."""
        self.created_ms = now_ms
        self.roll_jitter_ms = random.randrange(max(1, min(config.segment_jitter_ms, config.segment_ms_max)))

    # -- writing -------------------------------------------------------------------------------------------

    def append(
        self,
        chunks: Sequence[Buffer],
        size: int,
        first_offset: int,
        first_batch_end: int,
        last_offset: int,
        max_timestamp: int,
        max_timestamp_offset: int,
        index_interval_bytes: int,
    ) -> None:
        """Write whole batches. `first_batch_end` is the last offset of the first one, `max_timestamp_offset`
        that of the one that has `max_timestamp`.
        """
        position = self.size
        handle = self.writer()
        handle.append(chunks)
        self.size = position + size
        self.end_offset = last_offset + 1
        if position == 0:
            self.first_timestamp = max_timestamp
        if max_timestamp > self.max_timestamp:
            self._max_timestamp = max_timestamp
            self._max_timestamp_offset = max_timestamp_offset
        if self._bytes_since_entry > index_interval_bytes:
            self._add_index_entries(first_batch_end, position)
            self._bytes_since_entry = 0
        self._bytes_since_entry += size
        self._recent_offsets.append(first_offset)
        self._recent_ends.append(first_batch_end)
        self._recent_positions.append(position)
        if len(self._recent_offsets) > _RECENT_MAX:
            del self._recent_offsets[: _RECENT_MAX // 2]
            del self._recent_ends[: _RECENT_MAX // 2]
            del self._recent_positions[: _RECENT_MAX // 2]

    def writer(self) -> FileHandle:
        handle = self.log.handle()
        if handle.size != self.size:
            handle.size = (
                self.size
            )  # reopened with reserved space, or with the rest of a failed append, behind
        return handle

    def _add_index_entries(self, batch_end: int, position: int) -> None:
        self.offset_index.append(batch_end - self.base_offset, position)
        self.time_index.maybe_append(self.max_timestamp, self._max_timestamp_offset - self.base_offset)

    def seal(self) -> list[PooledFile]:
        """Nothing more will be appended. Returns the files that must be synced now."""
        files = self.complete()
        self._forget_recent()
        return files

    def complete(self) -> list[PooledFile]:
        """Bring the files to where a start can trust them, and Kafka can read them, once they are synced."""
        self.write_indexes()
        self.writer().truncate(self.size)  # reserved space goes
        return list(self._all_files())

    def _forget_recent(self) -> None:
        self._recent_offsets.clear()
        self._recent_ends.clear()
        self._recent_positions.clear()

    def write_indexes(self) -> None:
        if self._max_timestamp is not None:
            self.time_index.maybe_append(self._max_timestamp, self._max_timestamp_offset - self.base_offset)
        self.offset_index.write()
        self.time_index.write()

    def truncate_to(self, offset: int) -> None:
        """Cut off the batch that holds `offset`, and all that follow."""
        position = self.position_of(offset)
        header = next((header for _, header in self.headers(position)), None)
        if header is not None:
            self.end_offset = min(offset, header.base_offset)
        self.cut(position)
        self._restore_time_entry()

    def cut(self, position: int) -> None:
        """Cut at `position`, where `end_offset` is now."""
        self.writer().truncate(position)
        self.offset_index.truncate_to(self.end_offset - self.base_offset)
        self.time_index.truncate_to(self.end_offset - self.base_offset)
        self.txn_index.truncate_to(self.end_offset)
        self.offset_index.write()
        self.time_index.write()
        self.size = position
        self._bytes_since_entry = 0
        self._forget_recent()
        self._max_timestamp = None
        if position == 0:
            self.first_timestamp = None
            self._max_timestamp = NO_TIMESTAMP

    def sync(self) -> None:
        for file in self._all_files():
            file.sync()

    def release(self) -> None:
        for file in self._all_files():
            file.release()

    def moved(self, stage: str) -> None:
        """The files were renamed from their names with `stage` behind to their own."""
        for file in self._all_files():
            file.path = file.path.removesuffix(stage)
        self.txn_index.path = self.txn_index.path.removesuffix(stage)

    def _all_files(self) -> tuple[PooledFile, ...]:
        files = (self.log, self.offset_index.file, self.time_index.file)
        return files if self.txn_index.file is None else (*files, self.txn_index.file)

    # -- timestamps ----------------------------------------------------------------------------------------

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp in the segment, or -1."""
        if self._max_timestamp is None:
            self._load_max_timestamp()
            assert self._max_timestamp is not None
        return self._max_timestamp

    @property
    def newest_ms(self) -> int:
        """The largest timestamp; of a segment without any, when its file was written last."""
        return self.max_timestamp if self.max_timestamp >= 0 else self.log.modified_ms()

    @property
    def max_timestamp_offset(self) -> int:
        """The last offset of the batch that has it."""
        if self._max_timestamp is None:
            self._load_max_timestamp()
        return self._max_timestamp_offset

    def _load_max_timestamp(self) -> None:
        """From the time index, and from the batches behind the last entry of the offset index.

        Both are appended to together, so a larger timestamp before that has its entry; where many batches
        have the same one, the last entry of the time index may lie far back. Where there is none at all, an
        old broker wrote the segment (they had no time index before 0.10.1).
        """
        timestamp, relative_offset = self.time_index.last() or (NO_TIMESTAMP, 0)
        offset = self.base_offset + relative_offset
        _, position = (self.offset_index.last() if len(self.time_index) else None) or (0, 0)
        for _, header in self.headers(position):
            if header.max_timestamp > timestamp and header.record_count:  # emptied ones have no record of it
                timestamp, offset = header.max_timestamp, header.last_offset
        self._max_timestamp, self._max_timestamp_offset = timestamp, offset

    def _restore_time_entry(self) -> None:
        """After a truncation: the entry that went may have spoken for earlier batches of the same append,
        whose own timestamps nobody would look for behind the last entry of the offset index.
        """
        timestamp, relative_offset = self.time_index.last() or (NO_TIMESTAMP, -1)
        start = self.offset_index.position(relative_offset) if relative_offset >= 0 else 0
        offset = self.base_offset + relative_offset
        for _, header in self.headers(start):
            if header.max_timestamp > timestamp and header.record_count:
                timestamp, offset = header.max_timestamp, header.last_offset
        self._max_timestamp, self._max_timestamp_offset = timestamp, max(offset, self.base_offset)
        self.time_index.maybe_append(timestamp, offset - self.base_offset)
        self.time_index.write()

    def load_first_timestamp(self) -> int:
        if self.first_timestamp is None:
            header = next((header for _, header in self.headers(0)), None)
            if header is None:
                return NO_TIMESTAMP
            self.first_timestamp = header.max_timestamp
        return self.first_timestamp

    # -- looking up ----------------------------------------------------------------------------------------

    def position_of(self, offset: int) -> int:
        """Where the batch that holds or follows `offset` begins; `size` when there is none."""
        if offset >= self.end_offset:
            return self.size
        recent = self._recent_offsets
        if recent and offset >= recent[0]:
            at = bisect_right(recent, offset) - 1
            position = self._recent_positions[at]
            if offset <= self._recent_ends[at]:
                return position
        else:
            position = self.offset_index.position(offset - self.base_offset)
        try:
            return self._scan_for(offset, position)
        except CorruptData:
            if position == 0:
                raise
            return self._scan_for(offset, 0)  # the index lied; the log is the truth

    def batch_bytes_max(self, position: int) -> int:
        """The batch at `position` is not larger than this, as far as that is known without reading."""
        positions = self._recent_positions
        at = bisect_left(positions, position)
        if at == len(positions) or positions[at] != position:
            return self.size - position
        return (positions[at + 1] if at + 1 < len(positions) else self.size) - position

    def was_appended_alone(self, position: int) -> bool:
        """Whether the batch at `position` is known to have been its whole append, which ends with it."""
        at = bisect_left(self._recent_positions, position)
        if at == len(self._recent_positions) or self._recent_positions[at] != position:
            return False
        is_last = at + 1 == len(self._recent_offsets)
        following = self.end_offset if is_last else self._recent_offsets[at + 1]
        return self._recent_ends[at] + 1 == following

    def offset_behind(self, position: int) -> int:
        """An offset at or behind the batches before `position`, as near as the index knows."""
        index = self.offset_index
        at = bisect_left(range(len(index)), position, key=lambda entry: index.entry(entry)[1])
        return self.base_offset + index.entry(at)[0] + 1 if at < len(index) else self.end_offset

    def _scan_for(self, offset: int, start: int) -> int:
        for position, header in self.headers(start):
            if header.base_offset + header.last_offset_delta >= offset:
                if header.base_offset > offset and position == start > 0 and header.magic == MAGIC:
                    raise self.corrupt(position, f"the index leads behind offset {offset}")
                return position
        return self.size

    def headers(
        self, position: int, skip: Callable[[Buffer, int], int] | None = None
    ) -> Iterator[tuple[int, BatchHeader]]:
        """Positions and headers of the batches from `position` on, without those that `skip` passes over.

        Reads little at first, as most callers want one batch nearby, and more while small batches follow each
        other; the records of large ones are not read.
        """
        size = self.size
        data: Buffer = b""
        start, read_bytes = position, _SCAN_BYTES // 2
        while position < size:
            at = position - start
            if len(data) - at < min(HEADER_BYTES, size - position):
                read_bytes = min(read_bytes * 2, _SCAN_BYTES_MAX) if at <= len(data) else _SCAN_BYTES
                data = self.log.pread(min(read_bytes, size - position), position)
                start, at = position, 0
            if skip is not None and (passed := skip(data, at)) > at:
                position += passed - at
                continue
            header = header_at(data, at)
            if header is None or header.size > size - position:
                raise self.corrupt(position, f"the {size - position} bytes from there on are no whole batch")
            yield position, header
            position += header.size

    def corrupt(self, position: int, problem: str) -> CorruptData:
        return CorruptData(
            f"{self.log.path} at position {position}: {problem}; restore the file, or delete the topic"
        )


def create_segment(
    pool: OpenFiles, directory: str, base_offset: int, reserve_bytes: int = 0, *, stage: str = ""
) -> Segment:
    """A new, empty segment; leftovers of its name are replaced. On OSError there is none of its files: the
    one before may grow on, and an empty one behind its middle would end it at the next start.

    `stage` is what its files' names end in while they are not part of the log.
    """
    stem = os.path.join(directory, file_names.offset_name(base_offset, ""))
    paths = [stem + suffix + stage for suffix in file_names.SEGMENT_SUFFIXES]
    made: list[PooledFile] = []
    try:
        made.extend(pool.create(path) for path in paths[:3])
        if reserve_bytes:
            made[0].handle().reserve(reserve_bytes)
    except OSError:
        for file in made:
            file.release()
        for path in paths:
            with contextlib.suppress(OSError):
                pool.files.remove(path)
        raise
    log, offset_index, time_index = made
    txn_index = TransactionIndex(pool, paths[3])
    return Segment(log, 0, OffsetIndex(offset_index, 0), TimeIndex(time_index, 0), txn_index, base_offset)


def new_segment(pool: OpenFiles, directory: str) -> Segment:
    """The first segment of a log, whose empty files are there."""
    log, offset_index, time_index, txn_index = (
        os.path.join(directory, file_names.offset_name(0, suffix)) for suffix in file_names.SEGMENT_SUFFIXES
    )
    return Segment(
        pool.existing(log),
        0,
        OffsetIndex(pool.existing(offset_index), 0),
        TimeIndex(pool.existing(time_index), 0),
        TransactionIndex(pool, txn_index),
        0,
    )


def load_segment(pool: OpenFiles, directory: str, base_offset: int, *, stage: str = "") -> Segment:
    """An existing segment as its files are, trusted; a missing index counts as an empty one."""
    stem = os.path.join(directory, file_names.offset_name(base_offset, ""))
    log_path, index_path, time_path, txn_path = (
        stem + suffix + stage for suffix in file_names.SEGMENT_SUFFIXES
    )
    sizes = []
    for path in (index_path, time_path):
        try:
            sizes.append(pool.files.size(path))
        except FileNotFoundError:
            pool.files.create(path).close()
            sizes.append(0)
    txn_bytes = None
    with contextlib.suppress(FileNotFoundError):  # most have none
        txn_bytes = pool.files.size(txn_path)
    return Segment(
        pool.existing(log_path),
        pool.files.size(log_path),
        OffsetIndex(pool.existing(index_path), sizes[0]),
        TimeIndex(pool.existing(time_path), sizes[1]),
        TransactionIndex(pool, txn_path, txn_bytes),
        base_offset,
    )


def rename_deleted(files: Files, segment: Segment) -> list[str]:
    """Take the segment's files out of the log's sight; returns the paths that remain to be removed.

    Their handles are let go, or the disk would not get the space back when they are removed.
    """
    segment.release()
    renamed = []
    for suffix in file_names.SEGMENT_SUFFIXES:
        path = segment.path_stem + suffix
        with contextlib.suppress(FileNotFoundError):  # most have no transaction index
            files.rename(path, path + file_names.DELETED)
            renamed.append(path + file_names.DELETED)
    return renamed
