"""The log of one partition: an unbroken sequence of batches in segments, and three of its offsets.

    log_start_offset ≤ log_end_offset and synced_offset ≤ log_end_offset

`append` is the hot path: one write per call, nothing per record, no sync. What it wrote is durable when a
sync round has run: `begin_sync` hands out what is dirty, the ticket runs in a worker thread, `finish_sync`
moves `synced_offset`. Everything else belongs to one owner thread. How the files change with it is the job
of `segment_files`; how far consumers may read is not decided here.
"""

from __future__ import annotations

import contextlib

from ottla.log import retention
from ottla.log.aborted_transactions import find_aborted, note_abort
from ottla.log.file_range import FileRange
from ottla.log.log_state import LogState, Storage
from ottla.log.open_files import PooledFile, WithoutWaiting
from ottla.log.producer_replay import apply_appended, rebuild_producers
from ottla.log.roll_limits import RollLimits
from ottla.log.segment import Segment
from ottla.log.segment_files import SegmentFiles
from ottla.log.sync_ticket import SyncTicket
from ottla.log.timestamp_lookup import TimestampedOffset, find_max_timestamp, find_timestamp
from ottla.log.txn_index import AbortedTransaction
from ottla.model.configs import TopicConfig
from ottla.model.errors import ErrorCode, Refused
from ottla.model.offsets import NO_TIMESTAMP
from ottla.model.topics import TopicPartition
from ottla.model.values import NamedTuple
from ottla.records.batch import LENGTH_END, CheckedBatch, stamp_all

_SNAPSHOT_BYTES = 64 * 1024 * 1024
"""Log that may pile up behind the last producer snapshot: its batch headers are read after a crash."""


class AppendResult(NamedTuple):
    first_offset: int
    last_offset: int
    log_append_time_ms: int  # -1 where the producer's timestamps hold
    log_start_offset: int


class OffsetOutOfRange(Refused):
    def __init__(self, text: str) -> None:
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, text)


class PartitionLog:
    """See the head of this file. Built by `loading.open_log`."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        directory: str,
        config: TopicConfig,
        storage: Storage,
        state: LogState,
    ) -> None:
        self.topic_partition = topic_partition
        self.directory = directory
        self.producers = state.producers
        self.epochs = state.epochs
        self.log_start_offset = state.log_start_offset
        self.log_end_offset = state.segments.active.end_offset
        self.synced_offset = state.synced_offset
        self._storage = storage
        self._segments = state.segments
        self._snapshots = state.snapshots
        self._epoch_file = state.epoch_file
        self._unsynced = state.unsynced
        self._ticket: SyncTicket | None = None  # the round under way
        self._is_complete = state.is_complete  # nothing is to be done to the files at a clean stop
        self._bytes_since_snapshot = 0
        self._last_sync_ms = 0
        self.segment_files = SegmentFiles(storage, directory, state, config)
        self.set_config(config)
        self._check_offsets()

    def __repr__(self) -> str:
        return f"PartitionLog({self.topic_partition}, {self.log_start_offset}..{self.log_end_offset})"

    def _check_offsets(self) -> None:
        assert self.log_start_offset <= self.log_end_offset >= self.synced_offset, (
            self.topic_partition,
            self.log_start_offset,
            self.synced_offset,
            self.log_end_offset,
        )

    # -- settings ------------------------------------------------------------------------------------------

    def set_config(self, config: TopicConfig) -> None:
        self.config = self.segment_files.config = config
        self.durable = config.flush_messages == 1  # what consumers see must be synced
        self._roll_limits = RollLimits(config)
        self._index_interval_bytes = config.index_interval_bytes
        self._log_append_time = config.message_timestamp_log_append

    def check_room(self) -> None:
        """Raises OSError(ENOSPC) while the disk is known to be full."""
        self._storage.ballast.check()

    # -- appending -----------------------------------------------------------------------------------------

    def append(self, batches: list[CheckedBatch], leader_epoch: int, now_ms: int) -> AppendResult:
        """Give the batches their offsets and write them with one call.

        They have passed `producers.check`. On OSError nothing was appended, unless the batches together are
        larger than a segment: then the first ones may be in.
        """
        first_offset = offset = self.log_end_offset
        append_time = now_ms if self._log_append_time else None
        size = 0
        max_timestamp, max_timestamp_offset = NO_TIMESTAMP, offset
        producing = False
        for batch in batches:
            offset += batch.last_offset_delta + 1
            size += batch.size
            timestamp = batch.max_timestamp if append_time is None else append_time
            if timestamp > max_timestamp:
                max_timestamp, max_timestamp_offset = timestamp, offset - 1
            if batch.producer_id >= 0:
                producing = True
        if len(batches) > 1 and size > self._roll_limits.segment_bytes_max:
            return self._append_in_parts(batches, leader_epoch, now_ms)

        ballast = self._storage.ballast
        ballast.check()
        try:
            if leader_epoch > self.epochs.latest:
                self._epoch_file.begin_epoch(leader_epoch, first_offset)
            segment = self._segments.active
            if self._roll_limits.are_passed(segment, size, offset - 1, max_timestamp, now_ms):
                segment = self.roll(now_ms)
            if producing and batches[0].header.is_control:
                assert len(batches) == 1, "a marker is appended by itself"
                note_abort(segment, self.producers, batches[0], first_offset, self._unsynced)
            segment.append(
                stamp_all(batches, first_offset, leader_epoch, append_time),
                size,
                first_offset,
                first_offset + batches[0].last_offset_delta,
                offset - 1,
                max_timestamp,
                max_timestamp_offset,
                self._index_interval_bytes,
            )
        except OSError as error:
            ballast.note(error)
            raise
        if producing:
            apply_appended(self.producers, batches, first_offset, append_time)
        self.log_end_offset = self.producers.end_offset = offset
        self._bytes_since_snapshot += size
        self._is_complete = False
        return AppendResult(
            first_offset,
            offset - 1,
            NO_TIMESTAMP if append_time is None else append_time,
            self.log_start_offset,
        )

    def _append_in_parts(self, batches: list[CheckedBatch], leader_epoch: int, now_ms: int) -> AppendResult:
        middle = len(batches) // 2
        first = self.append(batches[:middle], leader_epoch, now_ms)
        return self.append(batches[middle:], leader_epoch, now_ms)._replace(first_offset=first.first_offset)

    def roll(self, now_ms: int) -> Segment:
        """Seal the active segment and begin another one. An empty one is left alone."""
        old = self._segments.active
        if old.size == 0:
            return old
        new = self.segment_files.roll(self.producers, self.log_end_offset, now_ms)
        self._bytes_since_snapshot = 0
        return new

    # -- reading -------------------------------------------------------------------------------------------

    @property
    def without_waiting(self) -> WithoutWaiting:
        """`with` it, reading raises NotResident instead of waiting for the disk."""
        return self._storage.pool.without_waiting

    def read(
        self, offset: int, bytes_max: int, end_offset: int, at_least_one: bool = True
    ) -> FileRange | None:
        """Batches from the one that holds `offset` on, up to `end_offset`, all within one segment.

        The range begins with a whole batch; `bytes_max` may cut the last one short. A first batch larger than
        that is returned with `at_least_one` only. None: there is nothing to read, or not within `bytes_max`.
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRange(
                f"{self.topic_partition} holds {self.log_start_offset} to {self.log_end_offset}, not {offset}"
            )
        if offset >= end_offset or offset == self.log_end_offset:
            return None
        segment, start = self._segments.find(offset)
        end = segment.position_of(end_offset)
        if start >= end:
            return None
        size = end - start
        if size > bytes_max:
            first_size = segment.batch_bytes_max(start)
            if first_size > bytes_max and not segment.was_appended_alone(start):
                first_size = _batch_size(segment.log, start)
            if first_size > bytes_max and not at_least_one:
                return None  # a part of a batch would bring the reader nowhere
            size = min(size, max(bytes_max, first_size))
        return FileRange(segment.log.handle(), start, size)

    def aborted_transactions(self, offset: int, records: FileRange) -> list[AbortedTransaction]:
        """Those that a reader of `records`, which `read` gave for `offset`, must leave out."""
        return find_aborted(self._segments, offset, records.size)

    def offset_for_timestamp(self, timestamp: int) -> TimestampedOffset | None:
        """The first record at or after `timestamp`."""
        return find_timestamp(self._segments, timestamp, self.log_start_offset)

    def offset_for_max_timestamp(self) -> TimestampedOffset | None:
        """A record with the largest timestamp (KIP-734)."""
        return find_max_timestamp(self._segments)

    def epoch_end_offset(self, epoch: int) -> tuple[int, int]:
        """(largest known epoch up to `epoch`, the offset at which it ended), or (-1, -1)."""
        return self.epochs.end_offset(epoch, self.log_end_offset)

    @property
    def first_base_offset(self) -> int:
        """Where the oldest segment begins; the log may start behind it."""
        return self._segments.bases[0]

    def segment_base(self, offset: int) -> int:
        """Where the segment that holds `offset` begins; `offset` itself when it lies before all of them."""
        at = self._segments.index_of(offset)
        return self._segments.bases[at] if at >= 0 else offset

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    @property
    def segments(self) -> tuple[Segment, ...]:
        return tuple(self._segments)

    # -- syncing -------------------------------------------------------------------------------------------

    def sync_is_due(self, now_ms: int) -> bool:
        """By flush.messages and flush.ms; a sealed segment of any topic is synced soon after."""
        if self._ticket is not None:
            return False
        if self._unsynced.files or self._unsynced.directories:
            return True
        unsynced = self.log_end_offset - self.synced_offset
        return unsynced > 0 and (
            unsynced >= self.config.flush_messages or now_ms - self._last_sync_ms >= self.config.flush_ms
        )

    def begin_sync(self, now_ms: int = 0) -> SyncTicket | None:
        """Everything dirty, for one round; None when there is nothing. Only one round may be under way."""
        assert self._ticket is None, self.topic_partition
        if self.log_end_offset == self.synced_offset and not self._unsynced:
            return None
        unsynced = self._unsynced.take()
        if self.log_end_offset > self.synced_offset:
            unsynced.files.append(self._segments.active.log)
        self._last_sync_ms = now_ms
        files, whole = self._storage.pool.files, self._storage.filesystem_sync
        self._ticket = SyncTicket(files, self.log_end_offset, unsynced, whole)
        return self._ticket

    def finish_sync(self, ticket: SyncTicket) -> bool:
        """The ticket has run: whether `synced_offset` moved."""
        assert ticket is self._ticket, self.topic_partition
        self._ticket = None
        if ticket.end_offset <= self.synced_offset:
            return False
        self.synced_offset = ticket.end_offset
        self._check_offsets()
        return True

    @property
    def recovery_point(self) -> int:
        """Below it nothing needs to be looked at after a crash."""
        return self.synced_offset

    # -- shortening ----------------------------------------------------------------------------------------

    def delete_records(self, before_offset: int) -> None:
        """Move the log's start; segments before it go when a checkpoint holds the new start."""
        assert before_offset <= self.log_end_offset
        if before_offset > self.log_start_offset:
            self.log_start_offset = before_offset
            if self.epochs.truncate_start(before_offset):
                # The file is written at the stop; a start makes the same of the old one.
                self._is_complete = False
            self._check_offsets()

    def apply_retention(self, now_ms: int, high_watermark: int) -> bool:
        """Move the log's start behind what has expired; whether it moved.

        When everything has expired the active segment is rolled, so that it can go. The files go when a
        checkpoint has made the new start durable (`LogDirectory.drop_expired`).
        """
        count = retention.expired_count(self, now_ms, high_watermark)
        if count == len(self._segments):
            self.roll(now_ms)
        before = self.log_start_offset
        self.delete_records(self._segments[count].base_offset)
        return self.log_start_offset > before

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Cut off everything from `offset` on (a batch that spans it goes too). Durable when it returns.

        The only place where the owner waits for the disk: what follows must not be mixed up with what was cut
        off, whatever a power cut leaves of both, and it happens only when a leader is replaced.
        Called through `LogDirectory.truncate`, which lowers the checkpoints first.
        """
        if offset >= self.log_end_offset:
            if self.epochs.truncate_end(self.log_end_offset):
                self._is_complete = False
            return
        if offset < self.first_base_offset:
            self.restart_at(offset, now_ms)
            return
        self.segment_files.truncate_to(offset, now_ms)
        self._after_truncation()

    def restart_at(self, offset: int, now_ms: int) -> None:
        """Drop everything and go on, empty, at `offset`. Called through `LogDirectory.restart`."""
        self.segment_files.restart_at(offset, now_ms)
        self.log_start_offset = offset
        self.epochs.reset()
        self._epoch_file.save()
        self._after_truncation()

    def _after_truncation(self) -> None:
        self.log_end_offset = end_offset = self._segments.active.end_offset
        self.log_start_offset = min(self.log_start_offset, end_offset)
        self.synced_offset = min(self.synced_offset, end_offset)
        if self._ticket is not None:
            self._ticket.end_offset = min(self._ticket.end_offset, end_offset)
        self.epochs.truncate_end(end_offset)
        rebuild_producers(
            self.producers, self._snapshots, self._segments, self.log_start_offset, end_offset, end_offset
        )
        self._is_complete = False
        self._check_offsets()

    # -- stopping ------------------------------------------------------------------------------------------

    def maybe_snapshot(self) -> None:
        """Keep the producers as they are, if much was written since: less to read after a crash."""
        if self._bytes_since_snapshot > _SNAPSHOT_BYTES:
            with contextlib.suppress(OSError):  # a full disk; the log has it all
                self._write_snapshot()

    def _write_snapshot(self) -> None:
        self.segment_files.take_snapshot(self.producers, self.log_end_offset)
        self._bytes_since_snapshot = 0

    def prepare_close(self) -> None:
        """Complete all files; the sync round that follows makes the next start a clean one."""
        self.segment_files.settle_swap()
        if not self._is_complete:
            self._write_snapshot()
            self._unsynced.files += self._segments.active.complete()
            self._epoch_file.save()
            self._is_complete = True

    def close(self) -> None:
        """Let go of the files. Without `prepare_close` and a sync round before, the next start recovers."""
        for segment in self._segments:
            segment.release()


def _batch_size(file: PooledFile, position: int) -> int:
    """Bytes of the batch at `position`."""
    return int.from_bytes(file.pread(4, position + 8), "big") + LENGTH_END
