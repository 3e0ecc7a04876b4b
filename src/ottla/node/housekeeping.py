"""What is done now and then: retention, flush.ms, forgetting producers, checkpoints, removing files."""

from __future__ import annotations

import logging

from ottla.log.directories import LogDirectories
from ottla.log.directory import LogDirectory
from ottla.log.flusher import Flusher
from ottla.model.clock import Clock
from ottla.model.errors import CorruptData
from ottla.node.hosting import Hosting
from ottla.node.workers import Workers
from ottla.replica.partition import Partition
from ottla.replica.partitions import Partitions
from ottla.server.reactor import Reactor

log = logging.getLogger(__name__)

_PERIOD_MS = 30_000
_SLICE = 256  # partitions looked at in one turn, so that ten thousand do not hold up a request


class Housekeeping:
    def __init__(
        self,
        reactor: Reactor,
        clock: Clock,
        hosting: Hosting,
        partitions: Partitions,
        directories: LogDirectories,
        flusher: Flusher,
        syncer: Workers,
        remover: Workers,
    ) -> None:
        self._reactor = reactor
        self._clock = clock
        self._hosting = hosting
        self._partitions = partitions
        self._directories = directories
        self._flusher = flusher
        self._syncer = syncer
        self._remover = remover
        self._set_timer()

    def _set_timer(self) -> None:
        self._reactor.timers.set(self._clock.monotonic_ms() + _PERIOD_MS, self._run)

    def _run(self) -> None:
        self._set_timer()
        self._hosting.retry_unmade()
        self._look_after(list(self._partitions), 0)
        for directory in self._directories:
            try:
                self._tidy(directory)
            except OSError as error:
                log.error("%s cannot be tidied up now: %s", directory.path, error)
        self._hosting.changed_since_checkpoint = False

    def _tidy(self, directory: LogDirectory) -> None:
        removal = directory.take_due_deletions(self._clock.wall_ms())
        if removal is not None:
            self._remover(removal.run, _removed)
        if self._hosting.changed_since_checkpoint:
            writes = directory.begin_checkpoint(self._hosting.high_watermarks(directory))
            self._syncer(writes.run, _checkpointed)

    def _look_after(self, partitions: list[Partition], first: int) -> None:
        for partition in partitions[first : first + _SLICE]:
            try:
                if partition.unavailable is None:
                    self._look_after_one(partition)
            except (OSError, CorruptData) as error:
                partition.storage_refusal(error)
        if first + _SLICE < len(partitions):
            self._reactor.post(lambda: self._look_after(partitions, first + _SLICE))

    def _look_after_one(self, partition: Partition) -> None:
        now_ms = self._clock.wall_ms()
        expiration_ms = self._hosting.config.integer("producer.id.expiration.ms")
        partition.log.producers.expire(now_ms, expiration_ms)
        if partition.log.apply_retention(now_ms, partition.high_watermark):
            self._hosting.changed_since_checkpoint = True
            self._flusher.mark_dirty(partition.log)
        elif partition.log.sync_is_due(self._clock.monotonic_ms()):
            self._flusher.mark_dirty(partition.log)


def _removed(error: BaseException | None) -> None:
    if error is not None:
        log.error("deleted files could not be removed: %s", error)


def _checkpointed(error: BaseException | None) -> None:
    if error is not None:
        log.error("a checkpoint could not be written; the next start reads more than it must: %s", error)
