"""The checkpoint files of one log directory: what they say, and when they say something new.

Where a recovery has to begin, where logs begin, how far consumers could read, how far logs are compacted, and
which segments they have. The owner begins a checkpoint, which is its content as of then; a worker writes it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence

from ottla.log import checkpoints
from ottla.log.ballast import Ballast
from ottla.log.checkpoint_writes import CheckpointWriter, CheckpointWrites, Write
from ottla.log.files import Files
from ottla.log.partition_log import PartitionLog
from ottla.log.segment_checkpoint import NOTHING_LISTED, ListedSegments, SegmentCheckpoint
from ottla.model.errors import CorruptData
from ottla.model.topics import TopicPartition

_log = logging.getLogger(__name__)

_NO_STARTS: Mapping[TopicPartition, int] = {}


class DirectoryCheckpoints:
    def __init__(
        self,
        files: Files,
        directory: str,
        ballast: Ballast,
        logs: Mapping[TopicPartition, PartitionLog],
        failed: Mapping[TopicPartition, Exception],
    ) -> None:
        """Read what is there. `logs` and `failed` are those of the directory, as they come and go."""
        self._files = files
        self._directory = directory
        self._logs = logs
        self._failed = failed
        self._writer = CheckpointWriter(files, ballast)
        self.recovery_points = self._read(checkpoints.RECOVERY_POINTS)
        self.log_starts = self._read(checkpoints.LOG_START_OFFSETS)
        self.high_watermarks = self._read(checkpoints.HIGH_WATERMARKS)  # as found at the start
        self.cleaned_offsets = self._read_cleaned_offsets()  # where the next pass of a log begins
        self._segments = SegmentCheckpoint(files, directory)
        # The last checkpoint of log starts, and these, until it is written and acted on.
        self._unsettled: tuple[CheckpointWrites, Mapping[TopicPartition, int]] | None = None
        self._purges: list[CheckpointWrites] = []  # of what deleted topics left, to be done before a creation

    # -- what was found ------------------------------------------------------------------------------------

    def _read(self, name: str) -> dict[TopicPartition, int]:
        path = os.path.join(self._directory, name)
        if not self._files.exists(path):
            return {}
        try:
            return checkpoints.decode_offsets(self._files.read_all(path))
        except CorruptData as error:
            raise CorruptData(f"{path}: {error}; `ottla log repair` puts it right from the logs") from error

    def _read_cleaned_offsets(self) -> dict[TopicPartition, int]:
        try:
            return self._read(checkpoints.CLEANER_OFFSETS)
        except CorruptData as error:
            _log.error("%s; compacted topics are cleaned from their beginnings", error)
            return {}

    def listed_segments(self, partition: TopicPartition) -> ListedSegments:
        """That a log had when the list was written."""
        return self._segments.found.get(partition, NOTHING_LISTED)

    # -- all logs, as of now -------------------------------------------------------------------------------

    def begin(self, high_watermarks: Mapping[TopicPartition, int] | None = None) -> CheckpointWrites:
        """All files but the cleaner's."""
        return self._begin_starts(self._recovery_point_writes(high_watermarks))

    def begin_recovery_points(self, high_watermarks: Mapping[TopicPartition, int]) -> CheckpointWrites:
        """From where a start after a crash has to look."""
        return self._writer.begin(self._recovery_point_writes(high_watermarks))

    def begin_log_starts(self) -> CheckpointWrites:
        """Where the logs begin; once that is written, `take_settled_starts` tells it."""
        return self._begin_starts([])

    def take_settled_starts(self) -> Mapping[TopicPartition, int]:
        """The log starts of the last checkpoint, once it is written: what lies before them may go."""
        if self._unsettled is None or not self._unsettled[0].is_done:
            return _NO_STARTS
        settled, self._unsettled = self._unsettled[1], None
        return settled

    def _begin_starts(self, before: list[Write]) -> CheckpointWrites:
        self.log_starts = self._of_failed(self.log_starts)
        for partition, log in self._logs.items():
            if log.log_start_offset > 0:
                self.log_starts[partition] = log.log_start_offset
        begun = self._writer.begin([*before, self._encoded(checkpoints.LOG_START_OFFSETS, self.log_starts)])
        self._unsettled = (begun, dict(self.log_starts))
        return begun

    def _recovery_point_writes(self, high_watermarks: Mapping[TopicPartition, int] | None) -> list[Write]:
        """Only what is synced enters them."""
        self.recovery_points = self._of_failed(self.recovery_points)
        for partition, log in self._logs.items():
            log.maybe_snapshot()
            if log.recovery_point > 0:
                self.recovery_points[partition] = log.recovery_point
        writes: list[Write] = [self._encoded(checkpoints.RECOVERY_POINTS, self.recovery_points)]
        if high_watermarks is not None:
            writes.append(self._encoded(checkpoints.HIGH_WATERMARKS, high_watermarks))
        return [*writes, self._segment_list_write()]

    def _segment_list_write(self) -> Write:
        return self._segments.begin_write(self._logs, self.recovery_points, self._failed)

    def _of_failed(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """What is known of logs that failed stays known."""
        return {partition: offset for partition, offset in offsets.items() if partition in self._failed}

    # -- one log -------------------------------------------------------------------------------------------

    def lower(self, partition: TopicPartition, end_offset: int) -> None:
        """Before a log is cut: nothing that is written may name what is not there any more."""
        self._rewrite(
            partition,
            recovery_point=min(end_offset, self.recovery_points.get(partition, 0)),
            log_start=min(end_offset, self.log_starts.get(partition, 0)),
            cleaned=min(end_offset, self.cleaned_offsets.get(partition, 0)),
        )

    def restart(self, partition: TopicPartition, log_start: int) -> None:
        """Before a log is emptied, to go on at another offset."""
        self._rewrite(partition, recovery_point=0, log_start=log_start, cleaned=0)

    def _rewrite(self, partition: TopicPartition, recovery_point: int, log_start: int, cleaned: int) -> None:
        writes: list[Write] = []
        for name, offsets, offset in (
            (checkpoints.LOG_START_OFFSETS, self.log_starts, log_start),
            (checkpoints.RECOVERY_POINTS, self.recovery_points, recovery_point),
            (checkpoints.CLEANER_OFFSETS, self.cleaned_offsets, cleaned),
        ):
            if offsets.get(partition, 0) != offset:
                offsets[partition] = offset
                writes.append(self._encoded(name, offsets))
        if writes:
            self._writer.begin([*writes, self._segment_list_write()]).run()

    def begin_cleaned(self, partition: TopicPartition, cleaned_offset: int) -> CheckpointWrites:
        """A cleaning pass is over, and all its segments are in their places."""
        self.cleaned_offsets[partition] = cleaned_offset
        return self._writer.begin([self._encoded_cleaned_offsets()])

    def _encoded_cleaned_offsets(self) -> Write:
        known = self._logs.keys() | self._failed.keys()
        kept = {partition: offset for partition, offset in self.cleaned_offsets.items() if partition in known}
        return self._encoded(checkpoints.CLEANER_OFFSETS, kept)

    def before_creation(self, partitions: Sequence[TopicPartition]) -> Sequence[CheckpointWrites]:
        """Where deleted topics of the same names have left offsets, they go first: a crash must not measure
        the new logs by them.
        """
        if any(each in self.recovery_points or each in self.log_starts for each in partitions):
            self._purges.append(self.begin())
        cleaned = self.cleaned_offsets.keys() & partitions
        for partition in cleaned:
            del self.cleaned_offsets[partition]
        if cleaned:
            self._purges.append(self._writer.begin([self._encoded_cleaned_offsets()]))
        self._purges = [purge for purge in self._purges if not purge.is_done]  # a failed one is tried again
        return tuple(self._purges)

    def _encoded(self, name: str, offsets: Mapping[TopicPartition, int]) -> Write:
        return os.path.join(self._directory, name), checkpoints.encode_offsets(offsets)
