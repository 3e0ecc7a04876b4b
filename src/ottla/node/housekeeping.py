"""What is done now and then: retention, flush.ms, forgetting producers, checkpoints, removing files, and
getting out of a full disk. Each has the interval that its setting says.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ottla.log.checkpoint_writes import CheckpointWrites
from ottla.log.directories import LogDirectories
from ottla.log.directory import LogDirectory
from ottla.log.disk_errors import is_passing
from ottla.model.clock import Clock
from ottla.model.config_types import LONG_MAX
from ottla.model.errors import CorruptData
from ottla.node.hosting import Hosting
from ottla.node.sync_rounds import SyncRounds
from ottla.node.workers import Workers
from ottla.replica.partition import Partition
from ottla.replica.partitions import Partitions
from ottla.server.reactor import Reactor

log = logging.getLogger(__name__)

_TICK_MS = 1_000  # how often what may change at any time is looked at: due files, full disks, flush.ms
_RETENTION_ON_FULL_DISK_MS = 10_000
_SLICE = 256  # partitions looked at in one turn, so that ten thousand do not hold up a request


class Housekeeping:
    def __init__(
        self,
        reactor: Reactor,
        clock: Clock,
        hosting: Hosting,
        partitions: Partitions,
        directories: LogDirectories,
        rounds: SyncRounds,
        syncer: Workers,
        remover: Workers,
    ) -> None:
        self._reactor = reactor
        self._clock = clock
        self._hosting = hosting
        self._partitions = partitions
        self._directories = directories
        self._rounds = rounds
        self._flusher = rounds.flusher
        self._syncer = syncer
        self._remover = remover
        self._ends_noted = (0, 0)  # what the last checkpoint knew
        self._starts_noted = 0
        self._freeing_since_ms: int | None = None  # when retention last ran because of a full disk
        config = hosting.config
        flush_ms = config.integer("log.flush.scheduler.interval.ms")
        self._every(_TICK_MS, self._tick)
        self._every(_TICK_MS if flush_ms == LONG_MAX else flush_ms, self._flush_due)
        self._every(config.integer("log.retention.check.interval.ms"), self._retain_all)
        self._every(config.integer("producer.id.expiration.check.interval.ms"), self._expire_producers)
        self._every(config.integer("log.flush.offset.checkpoint.interval.ms"), self._checkpoint_ends)
        self._every(config.integer("log.flush.start.offset.checkpoint.interval.ms"), self._checkpoint_starts)

    def _every(self, interval_ms: int, task: Callable[[], None]) -> None:
        """First after log.initial.task.delay.ms, so that a start is over first."""
        timers, clock = self._reactor.timers, self._clock

        def run() -> None:
            timers.set(clock.monotonic_ms() + max(1, interval_ms), run)
            task()

        delay_ms = self._hosting.config.integer("log.initial.task.delay.ms")
        timers.set(clock.monotonic_ms() + min(interval_ms, delay_ms), run)

    # -- every second ----------------------------------------------------------------------------------------

    def _tick(self) -> None:
        self._hosting.retry_unmade()
        for directory in self._directories:
            self._guarded(directory, self._remove_due)
            if directory.ballast.is_spent:
                self._guarded(directory, self._get_out_of_full_disk)

    def _remove_due(self, directory: LogDirectory) -> None:
        removal = directory.take_due_deletions(self._clock.wall_ms())
        if removal is not None:
            self._remover(removal.run, _removed)

    def _get_out_of_full_disk(self, directory: LogDirectory) -> None:
        if directory.ballast.maybe_lay_by():
            log.warning("%s has room again: writes are accepted", directory.path)
            return
        now_ms = self._clock.monotonic_ms()
        if self._freeing_since_ms is None or now_ms - self._freeing_since_ms >= _RETENTION_ON_FULL_DISK_MS:
            self._freeing_since_ms = now_ms
            self._retain_all()
        self._checkpoint_starts()

    def _flush_due(self) -> None:
        now_ms = self._clock.monotonic_ms()
        awaiting = self._hosting.awaiting_flush
        for each in [each for each in awaiting if each.sync_is_due(now_ms)]:
            awaiting.discard(each)
            if self._partitions.of_log(each) is not None:
                self._flusher.mark_dirty(each)

    # -- partitions ------------------------------------------------------------------------------------------

    def _retain_all(self) -> None:
        self._for_each(list(self._partitions), self._retain)

    def _retain(self, partition: Partition) -> None:
        if partition.log.apply_retention(self._clock.wall_ms(), partition.high_watermark):
            self._hosting.starts_moved += 1
            self._flusher.mark_dirty(partition.log)
        elif partition.log.sync_is_due(self._clock.monotonic_ms()):
            self._flusher.mark_dirty(partition.log)

    def _expire_producers(self) -> None:
        expiration_ms = self._hosting.config.integer("producer.id.expiration.ms")
        now_ms = self._clock.wall_ms()
        self._for_each(list(self._partitions), lambda each: each.log.producers.expire(now_ms, expiration_ms))

    def _for_each(
        self, partitions: list[Partition], work: Callable[[Partition], object], first: int = 0
    ) -> None:
        for partition in partitions[first : first + _SLICE]:
            try:
                if partition.unavailable is None:
                    work(partition)
            except (OSError, CorruptData) as error:
                partition.storage_refusal(error)
        if first + _SLICE < len(partitions):
            self._reactor.post(lambda: self._for_each(partitions, work, first + _SLICE))

    # -- checkpoints -----------------------------------------------------------------------------------------

    def _checkpoint_ends(self) -> None:
        ends = (self._hosting.ends_moved, self._rounds.completed)
        if self._ends_noted != ends:
            self._ends_noted = ends
            for directory in self._directories:
                watermarks = self._hosting.high_watermarks(directory)
                self._write(directory, directory.checkpoints.begin_recovery_points(watermarks))

    def _checkpoint_starts(self) -> None:
        if self._starts_noted != self._hosting.starts_moved:
            self._starts_noted = self._hosting.starts_moved
            for directory in self._directories:
                self._write(directory, directory.checkpoints.begin_log_starts())

    def _write(self, directory: LogDirectory, writes: CheckpointWrites) -> None:
        def written(error: BaseException | None) -> None:
            if error is None:
                return
            self._ends_noted, self._starts_noted = (-1, -1), -1  # to be tried again
            self._failed(directory, error)

        self._syncer(writes.run, written)

    def _guarded(self, directory: LogDirectory, work: Callable[[LogDirectory], None]) -> None:
        try:
            work(directory)
        except OSError as error:
            self._failed(directory, error)

    def _failed(self, directory: LogDirectory, error: BaseException) -> None:
        """What does not pass ends the directory, if there are others."""
        if is_passing(error) or len(self._directories) == 1:
            log.error("%s cannot be looked after now: %s", directory.path, error)
        elif directory in self._directories:
            self._hosting.directory_failed(directory, error)


def _removed(error: BaseException | None) -> None:
    if error is not None:
        log.error("deleted files could not be removed: %s", error)
