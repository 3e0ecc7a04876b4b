"""`ottla-segment-checkpoint`: which closed segments every log has, so that a start sees when a file is gone.

Kafka has no such file and cannot tell: between segments of a compacted log offsets may be missing, and a log
may begin anywhere. A line for each log says where its listed segments end, then base offset and size of each.
What leaves a log is taken off the list first, or lies before a checkpointed log start; so an older list holds
too, as long as nobody else changed the logs. Kafka does not know the list. It writes the other checkpoints
anew while it runs, so the list carries the times at which these were written, and counts only beside them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from ottla.log import checkpoints
from ottla.log.files import Files
from ottla.log.partition_log import PartitionLog
from ottla.model.errors import CorruptData
from ottla.model.topics import TopicPartition
from ottla.model.values import NamedTuple

_log = logging.getLogger(__name__)

FILE_NAME = "ottla-segment-checkpoint"
_WRITTEN_BY_KAFKA = (checkpoints.RECOVERY_POINTS, checkpoints.HIGH_WATERMARKS)


class ListedSegments(NamedTuple):
    end_offset: int  # of the last one
    sizes: Mapping[int, int]  # by base offset, ascending

    def line(self, partition: TopicPartition) -> str:
        segments = " ".join(f"{base} {size}" for base, size in self.sizes.items())
        return f"{partition.topic} {partition.partition} {self.end_offset} {segments}"


NOTHING_LISTED = ListedSegments(0, {})


def encode_segment_checkpoint(files: Files, directory: str, lines: Iterable[str]) -> bytes:
    """`lines` are of `ListedSegments`. To be called when the other checkpoints are written."""
    times = " ".join(map(str, _times(files, directory)))
    return checkpoints.encode_lines([f"{FILE_NAME} {times}", *lines])


def read_segment_checkpoint(files: Files, directory: str) -> dict[TopicPartition, ListedSegments]:
    """What is listed; nothing when the list does not count."""
    path = os.path.join(directory, FILE_NAME)
    if not files.exists(path):
        return {}
    try:
        entries = checkpoints.decode_lines(files.read_all(path))
        if not entries or entries[0] != [FILE_NAME, *map(str, _times(files, directory))]:
            _log.info("%s is not of the checkpoints beside it and does not count", path)
            return {}
        return dict(map(_decode_entry, entries[1:]))
    except (CorruptData, ValueError) as error:
        _log.warning("%s does not count: %s", path, error)
        return {}


def _decode_entry(fields: Sequence[str]) -> tuple[TopicPartition, ListedSegments]:
    numbers = [int(field) for field in fields[1:]]
    if len(numbers) < 4 or len(numbers) % 2:
        raise CorruptData(f"an entry has {len(fields)} fields")
    sizes = dict(zip(numbers[2::2], numbers[3::2], strict=True))
    return TopicPartition(fields[0], numbers[0]), ListedSegments(numbers[1], sizes)


def _times(files: Files, directory: str) -> list[int]:
    """When the checkpoints that Kafka writes too were written."""
    paths = [os.path.join(directory, name) for name in _WRITTEN_BY_KAFKA]
    return [files.modified_ms(path) if files.exists(path) else -1 for path in paths]


class SegmentCheckpoint:
    """The list of one directory of `log.dirs`, kept up to date. A log's line is made anew only when its
    segments have changed.
    """

    def __init__(self, files: Files, directory: str) -> None:
        self.found = read_segment_checkpoint(files, directory)  # at the start
        self._files = files
        self._directory = directory
        self._lines: dict[TopicPartition, tuple[object, str]] = {
            partition: (None, listed.line(partition)) for partition, listed in self.found.items()
        }

    def begin_write(
        self,
        logs: Mapping[TopicPartition, PartitionLog],
        recovery_points: Mapping[TopicPartition, int],
        failed: Iterable[TopicPartition],
    ) -> tuple[str, Callable[[], bytes]]:
        """The file, and what makes its content when the other checkpoints are there. What was listed of
        logs that failed stays listed; nothing behind a recovery point is.
        """
        before, self._lines = self._lines, {}
        for partition in failed:
            if partition in before:
                self._lines[partition] = before[partition]
        for partition, log in logs.items():
            state, segments = log.segment_files.settled_before(recovery_points.get(partition, 0))
            if segments:
                known = before.get(partition)
                if known is None or known[0] != state:
                    sizes = {segment.base_offset: segment.size for segment in segments}
                    known = (state, ListedSegments(segments[-1].end_offset, sizes).line(partition))
                self._lines[partition] = known
        lines = [line for _, line in self._lines.values()]
        path = os.path.join(self._directory, FILE_NAME)
        return path, lambda: encode_segment_checkpoint(self._files, self._directory, lines)


def without_entries(data: bytes, partitions: Collection[TopicPartition]) -> bytes:
    """The file without what it lists of some logs. CorruptData."""
    entries = checkpoints.decode_lines(data)
    kept = [fields for fields in entries[1:] if TopicPartition(fields[0], int(fields[1])) not in partitions]
    return checkpoints.encode_lines(" ".join(fields) for fields in [*entries[:1], *kept])


class Loss(NamedTuple):
    base_offset: int  # of the segment
    end_offset: int
    problem: str


def find_losses(listed: ListedSegments, found: Mapping[int, int], log_start_offset: int) -> list[Loss]:
    """Listed segments that the log needs and has not, or not whole; `found`: sizes by base offset. (A file
    may be longer: a power cut can bring reserved space back.)
    """
    losses = []
    for base, end_offset in pairwise([*listed.sizes, listed.end_offset]):
        size = listed.sizes[base]
        if end_offset > log_start_offset and found.get(base, -1) < size:
            has = f"has {found[base]} bytes instead of {size}" if base in found else "is gone"
            losses.append(Loss(base, end_offset, f"{has}; it held offsets {base} to {end_offset - 1}"))
    return losses
