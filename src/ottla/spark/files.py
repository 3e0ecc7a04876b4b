"""Topics read from the segment files of a data directory, without a broker or beside a running one.

`LogFiles` answers the questions that `Admin` answers over the wire, from files alone: partitions, first
offsets, ends, times. The end is the checkpointed high watermark, for committed records the first open
transaction below it. `read_file_range` turns bytes into columns exactly as if a broker had sent them.
Nothing is ever written, and no lock is taken: a file that a broker replaces or removes meanwhile is looked
for again.
"""

from __future__ import annotations

import functools
import os
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import pairwise
from struct import Struct
from typing import TYPE_CHECKING, TypeVar

from ottla.client.admin_values import FoundOffset
from ottla.client.cluster_view import Partition, Topic
from ottla.client.errors import UnknownTopic
from ottla.client.fetched import Fetched
from ottla.log import checkpoints, file_names
from ottla.log.inspection.directory_check import partition_names
from ottla.log.inspection.places import PlaceKind, find_place
from ottla.log.producer_snapshots import decode_snapshot
from ottla.log.system_files import SystemFiles
from ottla.log.txn_index import decode_aborted
from ottla.model.errors import CorruptData
from ottla.model.limits import MIB
from ottla.model.topics import NO_TOPIC_ID, TopicPartition
from ottla.protocol.messages.fetch import AbortedTransaction
from ottla.records import formats
from ottla.records.batch import HEADER_BYTES, BatchHeader
from ottla.records.columns import Columns
from ottla.spark.errors import InvalidOption, JobError
from ottla.spark.loss import LossPolicy
from ottla.spark.offsets import Offsets
from ottla.spark.options import ReadOptions
from ottla.spark.ranges import OffsetRange

if TYPE_CHECKING:
    from pyarrow import RecordBatch

T = TypeVar("T")

_WINDOW_BYTES = 4 * MIB
_INDEX_ENTRY = Struct(">ii")
_TRIES = 5  # a broker that replaces files does so within moments

_files = SystemFiles()


class LogFiles:
    """A directory of `log.dirs`, or a data directory of ours."""

    def __init__(self, path: str) -> None:
        try:
            place = find_place(_files, path)
        except (OSError, ValueError) as error:
            raise InvalidOption(f"path: {error}; write the directory that log.dirs names") from None
        if place.kind is not PlaceKind.LOG_DIRECTORY:
            raise InvalidOption(
                f"path {path} is one partition or file: write {place.log_directory}, and subscribe"
            )
        self._path = place.path
        self._directories = partition_names(_files, place.path)
        self._high_watermarks = self._checkpoint(checkpoints.HIGH_WATERMARKS)
        self._log_starts = self._checkpoint(checkpoints.LOG_START_OFFSETS)

    def topics(self, names: Iterable[str] | None = None) -> tuple[Topic, ...]:
        counts: dict[str, int] = {}
        for target in self._directories:
            counts[target.topic] = max(counts.get(target.topic, 0), target.partition + 1)
        for name in names or ():
            if name not in counts:
                raise UnknownTopic(name)
        wanted = counts if names is None else dict.fromkeys(names)
        return tuple(
            Topic(
                name,
                NO_TOPIC_ID,
                name.startswith("__"),
                tuple(Partition(index, None, -1, (), ()) for index in range(counts[name])),
            )
            for name in sorted(wanted)
            if names is not None or not name.startswith("__")
        )

    def earliest_offsets(self, targets: Collection[TopicPartition]) -> Offsets:
        return {target: self._first(target) for target in targets}

    def latest_offsets(self, targets: Collection[TopicPartition], *, read_committed: bool = False) -> Offsets:
        return {
            target: self._stable_end(target) if read_committed else self._high_watermark(target)
            for target in targets
        }

    def list_offsets(
        self, times_ms: Mapping[TopicPartition, int], *, read_committed: bool = False
    ) -> dict[TopicPartition, FoundOffset]:
        found = {}
        for target, time_ms in times_ms.items():
            end_offset = self.latest_offsets([target], read_committed=read_committed)[target]
            find = functools.partial(self._at_time, target, time_ms, end_offset)
            found[target] = FoundOffset(_again(find), None, None)
        return found

    def segment_starts(self, target: TopicPartition) -> list[int]:
        """The first offsets of its segments; more than one where there is anything."""
        directory = self._directories.get(target)
        if directory is None:
            return []  # on another disk, or another broker
        return _again(lambda: _base_offsets(directory))

    def directory(self, target: TopicPartition) -> str:
        return self._directories[target]

    def _first(self, target: TopicPartition) -> int:
        starts = self.segment_starts(target)
        return max(starts[0] if starts else 0, self._log_starts.get(target, 0))

    def _high_watermark(self, target: TopicPartition) -> int:
        """What the checkpoint says; a partition that is newer than the checkpoint has nothing to read yet."""
        return max(self._high_watermarks.get(target, 0), self._first(target))

    def _stable_end(self, target: TopicPartition) -> int:
        end_offset = self._high_watermark(target)
        if not self.segment_starts(target):
            return end_offset
        opened = _again(lambda: _open_transactions(self._directories[target], end_offset))
        return min([end_offset, *opened.values()])

    def _at_time(self, target: TopicPartition, time_ms: int, end_offset: int) -> int | None:
        directory = self._directories[target]
        start_offset = self._first(target)
        for base_offset in _base_offsets(directory):
            with _Segment(directory, base_offset) as segment:
                for position, header in segment.headers(0):
                    if header.base_offset >= end_offset:
                        return None
                    if (
                        header.max_timestamp < time_ms
                        or header.is_control
                        or header.last_offset < start_offset
                    ):
                        continue
                    for record in formats.records_of(segment.pread(header.size, position)):
                        if record.timestamp >= time_ms and start_offset <= record.offset < end_offset:
                            return record.offset
        return None

    def _checkpoint(self, name: str) -> dict[TopicPartition, int]:
        try:
            return checkpoints.decode_offsets(_files.read_all(os.path.join(self._path, name)))
        except FileNotFoundError:
            return {}
        except CorruptData as error:
            raise JobError(f"{name} in {self._path} cannot be read: {error}") from None


def cut_at_segments(files: LogFiles, ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
    """A task for each segment, since each is a file of its own."""
    cut = []
    for each in ranges:
        inner = [
            start
            for start in files.segment_starts(each.target)
            if each.start_offset < start < each.end_offset
        ]
        edges = [each.start_offset, *inner, each.end_offset]
        cut += [OffsetRange(each.topic, each.partition, start, end) for start, end in pairwise(edges)]
    return cut


def read_file_range(options: ReadOptions, range_: OffsetRange, columns: Columns) -> Iterator[RecordBatch]:
    assert options.path is not None
    policy = LossPolicy(fails=options.fail_on_data_loss)
    directory = LogFiles(options.path).directory(range_.target)
    offset, failures = range_.start_offset, 0
    while offset < range_.end_offset:
        try:
            offset = policy.still_there(range_.target, offset, _first_offset(directory))
            for data in _windows(directory, offset, range_.end_offset):
                fetched = _fetched(options, range_, directory, data, offset)
                while not fetched.is_used_up:
                    fetched.fill(columns)
                    if columns.is_full:
                        yield columns.take()
                offset = max(offset, fetched.end_offset)
            break  # what is not there now was compacted away
        except FileNotFoundError:
            failures += 1
            if failures == _TRIES:
                policy.gone_partitions({range_.target: offset}, {})
                break
    if columns.rows:
        yield columns.take()


def _fetched(
    options: ReadOptions, range_: OffsetRange, directory: str, data: memoryview, offset: int
) -> Fetched:
    aborted = _aborted(directory, offset, range_.end_offset) if options.reads_committed else None
    return Fetched(
        range_.target, data, offset, aborted=aborted, check_crcs=True, stop_offset=range_.end_offset
    )


def _windows(directory: str, offset: int, end_offset: int) -> Iterator[memoryview]:
    """Whole batches from the one that holds `offset` up to the one that holds the last, in large pieces."""
    starts = _base_offsets(directory)
    for base_offset in starts[max(bisect_right(starts, offset) - 1, 0) :]:
        if base_offset >= end_offset:
            return
        with _Segment(directory, base_offset) as segment:
            position = segment.position_of(offset)
            while True:
                data, next_offset = segment.window(position)
                if not data:
                    break
                yield data
                if next_offset >= end_offset:
                    return
                position += len(data)


class _Segment:
    """One open `.log` file, with what its index tells."""

    def __init__(self, directory: str, base_offset: int) -> None:
        self.base_offset = base_offset
        self._stem = os.path.join(directory, file_names.offset_name(base_offset, ""))
        self._file = _files.open(self._stem + file_names.LOG, writable=False)
        self._size = self._file.size

    def __enter__(self) -> _Segment:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def pread(self, size: int, position: int) -> bytes:
        return self._file.pread(min(size, max(self._size - position, 0)), position)

    def headers(self, position: int) -> Iterator[tuple[int, BatchHeader]]:
        """Positions and headers, without reading what lies between them."""
        while True:
            header = formats.header_at(self.pread(HEADER_BYTES, position))
            if header is None or header.size > self._size - position:
                return
            yield position, header
            position += header.size

    def position_of(self, offset: int) -> int:
        """Where the first batch begins that holds the offset or something behind it."""
        for position, header in self.headers(self._indexed_position(offset)):
            if header.last_offset >= offset:
                return position
        return self._size

    def window(self, position: int) -> tuple[memoryview, int]:
        """Whole batches, at least one if there is any, and the offset behind them."""
        data = self.pread(_WINDOW_BYTES, position)
        header = formats.header_at(data)
        if header is not None and header.size > len(data):
            data = self.pread(header.size, position)
        end, next_offset = 0, 0
        for at, header in formats.scan(data):
            end, next_offset = at + header.size, header.next_offset
        return memoryview(data)[:end], next_offset

    def _indexed_position(self, offset: int) -> int:
        try:
            data = _files.read_all(self._stem + file_names.OFFSET_INDEX)
        except FileNotFoundError:
            return 0
        entries = list(_INDEX_ENTRY.iter_unpack(data[: len(data) // _INDEX_ENTRY.size * _INDEX_ENTRY.size]))
        while entries and entries[-1] == (0, 0):
            entries.pop()  # Kafka reserves space behind the last entry
        at = bisect_right(entries, offset - self.base_offset, key=lambda entry: entry[0]) - 1
        return entries[at][1] if at >= 0 and entries[at][1] < self._size else 0


def _first_offset(directory: str) -> int:
    """Of the first segment: compaction never moves it, retention does."""
    starts = _base_offsets(directory)
    if not starts:
        raise FileNotFoundError(directory)
    return starts[0]


def _base_offsets(directory: str) -> list[int]:
    found = (
        file_names.parse_offset(name)
        for name, _ in _files.list_directory(directory)
        if name.endswith(file_names.LOG)
    )
    return sorted(offset for offset in found if offset is not None)


def _open_transactions(directory: str, end_offset: int) -> dict[int, int]:
    """By producer, the first offset of each transaction that is open at `end_offset`."""
    opened, known_offset = _last_snapshot(directory, end_offset)
    starts = _base_offsets(directory)
    for base_offset in starts[max(bisect_right(starts, known_offset) - 1, 0) :]:
        with _Segment(directory, base_offset) as segment:
            for _, header in segment.headers(segment.position_of(known_offset)):
                if header.base_offset >= end_offset:
                    return opened
                if header.is_control:
                    opened.pop(header.producer_id, None)
                elif header.is_transactional:
                    opened.setdefault(header.producer_id, header.base_offset)
    return opened


def _last_snapshot(directory: str, end_offset: int) -> tuple[dict[int, int], int]:
    """What the newest usable snapshot up to `end_offset` says, and of which offset it is."""
    offsets = sorted(
        offset
        for name, _ in _files.list_directory(directory)
        if name.endswith(file_names.SNAPSHOT) and (offset := file_names.parse_offset(name)) is not None
    )
    for offset in reversed(offsets):
        if offset > end_offset:
            continue
        try:
            path = os.path.join(directory, file_names.offset_name(offset, file_names.SNAPSHOT))
            entries = decode_snapshot(_files.read_all(path))
        except (CorruptData, FileNotFoundError):
            continue
        first = {id_: each.txn_first_offset for id_, each in entries.items()}
        return {id_: at for id_, at in first.items() if at is not None}, offset
    return {}, 0


def _aborted(directory: str, offset: int, end_offset: int) -> list[AbortedTransaction]:
    """Those that have records between the two offsets."""
    found = []
    for name, _ in _files.list_directory(directory):
        if name.endswith(file_names.TXN_INDEX):
            found += [
                AbortedTransaction(each.producer_id, each.first_offset)
                for each in decode_aborted(_files.read_all(os.path.join(directory, name)))
                if each.last_offset >= offset and each.first_offset < end_offset
            ]
    return found


def _again(action: Callable[[], T]) -> T:
    """Once more, when a file has gone that was there a moment ago."""
    for _ in range(_TRIES - 1):
        try:
            return action()
        except FileNotFoundError:
            continue
    return action()
