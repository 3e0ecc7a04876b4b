"""Group commit at work: one sync round of the logs and one of the znode log at a time, each in its worker.

Two workers, so that a slow sync of data does not hold up the deletion of a topic. `start` runs in every turn
and never waits. What became durable moves the high watermarks and frees answers back on the owner's thread. A
log directory whose sync fails is done for, and so is the broker when it was the last one, or when the znode
log fails: nothing is known of that disk any more.
"""

from __future__ import annotations

from collections.abc import Callable

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
        clock: Clock,
        metrics: Registry,
        fail: Callable[[BaseException], None],
        fail_directory: Callable[[str, OSError], None],
    ) -> None:
        self.flusher = Flusher()
        self._coordination = coordination  # None: the tree is not ours
        self._partitions = partitions
        self._log_worker = log_worker
        self._clock = clock
        self._fail = fail
        self._fail_directory = fail_directory  # by its path
        self.completed = 0  # rounds of the logs
        self._time = metrics.histogram("log.sync_round.time")

    @property
    def is_busy(self) -> bool:
        return self.flusher.is_busy or (self._coordination is not None and self._coordination.is_busy)

    def start(self) -> None:
        """Begins what is due; called once in every turn."""
        if not self.flusher.is_busy:
            sync_round = self.flusher.next_round(self._clock.monotonic_ms())
            if sync_round is not None:
                self._run(sync_round)
        if self._coordination is not None:
            self._coordination.start()

    def _run(self, sync_round: Round) -> None:
        began_us = self._clock.monotonic_us()

        def finished(error: BaseException | None) -> None:
            if error is not None:
                self._fail(error)
                return
            self._time.observe_us(self._clock.monotonic_us() - began_us)
            self.completed += 1
            for synced in self.flusher.finish(sync_round):
                partition = self._partitions.of_log(synced)
                if partition is not None:
                    partition.advance()
            for path, failure in sync_round.failures.items():
                self._fail_directory(path, failure)

        self._log_worker(sync_round.run, finished)
