"""Group commit at work: one sync round of the logs and one of the znode log at a time, each beside the owner.

Apart, so that a slow sync of data does not hold up the deletion of a topic. `settle` and `start` run in every
turn and never wait. Usual rounds are a lane's, whose thread needs no interpreter: a worker would wait for it,
for milliseconds at times, before the sync and after. What became durable moves the high watermarks and frees
answers. A log directory whose sync fails is done for, and so is the broker when it was the last one, or when
the znode log fails: nothing is known of that disk any more.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.log.disk_lane import DiskLane
from ottla.log.file_syncs import FileSyncs
from ottla.log.flusher import Flusher, Round
from ottla.model.clock import Clock
from ottla.model.metrics import Registry
from ottla.node.coordination_rounds import CoordinationRounds
from ottla.node.workers import Workers
from ottla.replica.partitions import Partitions


class SyncRounds:
    def __init__(
        self,
        coordination: CoordinationRounds | None,
        partitions: Partitions,
        log_worker: Workers,
        log_lane: DiskLane,
        clock: Clock,
        metrics: Registry,
        fail: Callable[[BaseException], None],
        fail_directory: Callable[[str, OSError], None],
    ) -> None:
        self.flusher = Flusher()
        self._coordination = coordination  # None: the tree is not ours
        self._partitions = partitions
        self._log_worker = log_worker
        self._log_lane = log_lane
        self._in_lane: tuple[Round, FileSyncs] | None = None  # the round under way, if the lane has it
        self._began_us = 0  # the round under way
        self._clock = clock
        self._fail = fail
        self._fail_directory = fail_directory  # by its path
        self.completed = 0  # rounds of the logs
        self._time = metrics.histogram("log.sync_round.time")

    @property
    def is_busy(self) -> bool:
        return self.flusher.is_busy or (self._coordination is not None and self._coordination.is_busy)

    def settle(self) -> None:
        """Ends what the lanes have done; the first thing after a turn's requests, as it frees answers, and
        topics come and go by it.
        """
        if self._in_lane is not None and self._log_lane.is_done:
            (sync_round, syncs), self._in_lane = self._in_lane, None
            if sync_round.settle(syncs, self._log_lane.take()):
                self._finish(sync_round)
            else:
                self._work(sync_round, sync_round.run_one_by_one)
        if self._coordination is not None:
            self._coordination.settle()

    def start(self) -> None:
        """Begins what is due."""
        if not self.flusher.is_busy:
            sync_round = self.flusher.next_round(self._clock.monotonic_ms())
            if sync_round is not None:
                self._run(sync_round)
        if self._coordination is not None:
            self._coordination.start()

    def _run(self, sync_round: Round) -> None:
        self._began_us = self._clock.monotonic_us()
        syncs = sync_round.for_lane()
        if syncs is None:
            self._work(sync_round, sync_round.run)
        else:
            self._in_lane = sync_round, syncs
            self._log_lane.give(syncs)

    def _work(self, sync_round: Round, work: Callable[[], None]) -> None:
        def finished(error: BaseException | None) -> None:
            if error is not None:
                self._fail(error)
            else:
                self._finish(sync_round)

        self._log_worker(work, finished)

    def _finish(self, sync_round: Round) -> None:
        self._time.observe_us(self._clock.monotonic_us() - self._began_us)
        self.completed += 1
        for synced in self.flusher.finish(sync_round):
            partition = self._partitions.of_log(synced)
            if partition is not None:
                partition.advance()
        for path, failure in sync_round.failures.items():
            self._fail_directory(path, failure)
