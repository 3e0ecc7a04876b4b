"""The files of one log as a whole, and how they change: segments are begun, dropped, cut off, replaced.

Segments that go are renamed out of sight and removed later. Which offsets are promised to whom is not known
here: `PartitionLog` says from where to where, and `LogDirectory` has the checkpoints written that must come
first.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Sequence

from ottla.log import file_names
from ottla.log.cleaning_job import CleanedGroup
from ottla.log.log_state import LogState, Storage
from ottla.log.producer_state import ProducerStates
from ottla.log.segment import Segment, create_segment, rename_deleted
from ottla.log.segment_swap import SegmentSwap
from ottla.model.configs import TopicConfig


class SegmentFiles:
    def __init__(self, storage: Storage, directory: str, state: LogState, config: TopicConfig) -> None:
        self.config = config
        self.truncation_count = 0  # a cleaning pass from before the last one is of no worth
        self._pool = storage.pool
        self._files = storage.pool.files
        self._deletions = storage.deletions
        self._directory = directory
        self._segments = state.segments
        self._snapshots = state.snapshots
        self._unsynced = state.unsynced
        self._swap: SegmentSwap | None = None  # a cleaned segment that takes the place of others
        self._cleaned_below = 0  # a cleaning pass may replace what lies before this offset at any moment

    # -- growing -------------------------------------------------------------------------------------------

    def roll(self, producers: ProducerStates, end_offset: int, now_ms: int) -> Segment:
        """Seal the active segment and begin another one, at the log's end."""
        files = [*self._segments.active.seal(), self._snapshots.take(producers, end_offset)]
        reserve_bytes = self.config.segment_bytes if self.config.preallocate else 0
        new = create_segment(self._pool, self._directory, end_offset, reserve_bytes)
        new.begin_life(now_ms, self.config)
        self._segments.append(new)
        self._unsynced.files += files
        self._unsynced.directories.add(self._directory)
        return new

    def take_snapshot(self, producers: ProducerStates, end_offset: int) -> None:
        """Of the producers at the log's end; those at which no segment begins go."""
        if end_offset > self._snapshots.latest_offset:
            self._unsynced.files.append(self._snapshots.take(producers, end_offset))
            self._unsynced.directories.add(self._directory)
            self._snapshots.delete_except(self._segments.bases)

    # -- shortening ----------------------------------------------------------------------------------------

    def drop_before(self, start_offset: int, now_ms: int) -> None:
        """Drop the segments that end at or before `start_offset`, a start of the log that is durable.

        Not earlier: a power cut may bring any of the dropped files back, and what then looks like a log with
        its middle lost must be known to be no part of the log any more.
        """
        self.settle_swap()
        count = self._segments.index_of(start_offset)
        if count > 0:
            self._drop(self._segments.remove(0, count), now_ms)
            self._snapshots.delete_below(self._segments.bases[0])

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Cut off everything from `offset` on, within the segments there are. Durable when it returns."""
        self.truncation_count += 1
        segments = self._segments
        self._drop(segments.remove(segments.index_of(offset) + 1, len(segments)), now_ms)
        self._snapshots.delete_above(offset)
        self._files.sync_directory(self._directory)
        segments.active.truncate_to(offset)
        segments.active.sync()

    def restart_at(self, offset: int, now_ms: int) -> None:
        """Only one segment is left, empty, beginning at `offset`. Durable when it returns."""
        self.truncation_count += 1
        bases = self._segments.bases
        if offset in bases:
            new = self._segments[bases.index(offset)]
            new.truncate_to(offset)
            new.sync()
        else:
            new = create_segment(self._pool, self._directory, offset)
        new.begin_life(now_ms, self.config)
        self._files.sync_directory(self._directory)  # before the others go: one must be left whatever happens
        self._drop(self._segments.replace_all(new), now_ms)
        self._snapshots.delete_above(-1)
        self._files.sync_directory(self._directory)

    def _drop(self, segments: Sequence[Segment], now_ms: int) -> None:
        for segment in segments:
            self._schedule_removal(rename_deleted(self._files, segment), now_ms)
        self._unsynced.directories.add(self._directory)

    def _schedule_removal(self, paths: list[str], now_ms: int) -> None:
        self._deletions.schedule(paths, now_ms + self.config.file_delete_delay_ms)

    def settled_before(self, offset: int) -> tuple[object, Sequence[Segment]]:
        """Closed segments that end at or before `offset` and stay until the log start passes them or a
        truncation is announced; and what changes when they do.
        """
        segments = self._segments
        first, end = bisect_left(segments.bases, self._cleaned_below), segments.index_of(offset)
        if first >= end:
            return None, ()
        return (segments.change_count, first, end), segments[first:end]

    # -- compaction ----------------------------------------------------------------------------------------

    def begin_pass(self, end_offset: int) -> None:
        """Called through `LogDirectory.begin_cleaning`."""
        self._cleaned_below = end_offset

    def end_pass(self) -> None:
        if self._swap is None:  # else a start would complete it
            self._cleaned_below = 0

    def begin_swap(self, group: CleanedGroup, truncation_count: int) -> SegmentSwap | None:
        """A cleaned segment is to take the place of others; None: they are not what they were any more.

        The caller steps through it with `step_swap`, and has it synced by a worker after each step.
        """
        assert self._swap is None, self._directory
        if truncation_count != self.truncation_count or not self._segments.holds(group.replaced):
            return None
        self._swap = SegmentSwap(
            self._pool, self._directory, self._segments, group.base_offset, group.replaced
        )
        return self._swap

    def step_swap(self, swap: SegmentSwap, now_ms: int) -> None:
        self._schedule_removal(swap.step(), now_ms)
        if swap.is_over:
            self._swap = None
            self._snapshots.delete_except(self._segments.bases)

    def settle_swap(self) -> None:
        """Before anything else happens to the segments. A swap that had only begun is undone."""
        if self._swap is not None:
            self._swap.settle()
            self._swap = None

    def discard_cleaned(self) -> None:
        """What a pass that came to nothing has left goes. For a worker thread; no other pass may run."""
        for name, _ in self._files.list_directory(self._directory):
            if name.endswith(file_names.CLEANED):
                self._files.remove(os.path.join(self._directory, name))
