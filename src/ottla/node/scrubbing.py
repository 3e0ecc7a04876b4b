"""A slow look at everything that is stored, while the broker runs: damage takes its partition offline.

Once a day at most, in another order each time, and never faster than `ottla.log.scrub.bytes.per.second`.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator

from ottla.log.files import Files
from ottla.log.scrub import SegmentScrub
from ottla.model.clock import Clock
from ottla.model.errors import CorruptData
from ottla.model.metrics import Registry
from ottla.node.workers import Workers
from ottla.replica.partition import Partition
from ottla.replica.partitions import Partitions
from ottla.server.reactor import Reactor

log = logging.getLogger(__name__)

_CYCLE_MS_MIN = 24 * 60 * 60 * 1000


class Scrubbing:
    def __init__(
        self,
        reactor: Reactor,
        clock: Clock,
        files: Files,
        partitions: Partitions,
        worker: Workers,
        metrics: Registry,
        bytes_per_second: int,
        first_delay_ms: int,
    ) -> None:
        self._reactor = reactor
        self._clock = clock
        self._files = files
        self._partitions = partitions
        self._worker = worker
        self._bytes_per_second = bytes_per_second
        self._bytes = metrics.counter("log.scrub.bytes")
        self._damages = metrics.counter("log.scrub.damages")
        self._began_ms = 0
        self._work: Iterator[tuple[Partition, SegmentScrub]] = iter(())
        if bytes_per_second > 0:
            self._after(first_delay_ms, self._begin_cycle)

    def _after(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._reactor.timers.set(self._clock.monotonic_ms() + delay_ms, action)

    def _begin_cycle(self) -> None:
        self._began_ms = self._clock.monotonic_ms()
        self._work = self._segments()
        self._next_segment()

    def _segments(self) -> Iterator[tuple[Partition, SegmentScrub]]:
        partitions = list(self._partitions)
        random.shuffle(partitions)
        for partition in partitions:
            for segment in partition.log.segments:
                if partition.unavailable is None and segment.size:
                    yield partition, SegmentScrub(self._files, segment)

    def _next_segment(self) -> None:
        found = next(self._work, None)
        if found is None:
            rest_ms = self._began_ms + _CYCLE_MS_MIN - self._clock.monotonic_ms()
            self._after(max(1, rest_ms), self._begin_cycle)
        else:
            self._read_piece(*found)

    def _read_piece(self, partition: Partition, scrub: SegmentScrub) -> None:
        read = 0

        def work() -> None:
            nonlocal read
            read = scrub.read_piece()

        def done(error: BaseException | None) -> None:
            self._bytes.value += read
            pause_ms = max(1, read * 1000 // self._bytes_per_second)
            if error is not None:
                self._judge(partition, scrub, error)
            if error is not None or scrub.is_done:
                self._after(pause_ms, self._next_segment)
            else:
                self._after(pause_ms, lambda: self._read_piece(partition, scrub))

        self._worker(work, done)

    def _judge(self, partition: Partition, scrub: SegmentScrub, error: BaseException) -> None:
        """Of a segment that was dropped, cut or replaced in the meantime nothing is said."""
        if not isinstance(error, (OSError, CorruptData)):
            log.error("%s cannot be scrubbed: %s", partition, error)
        elif partition.unavailable is None and scrub.is_of(partition.log.segments):
            self._damages.value += 1
            partition.storage_refusal(error)
