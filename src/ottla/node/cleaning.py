"""Compaction in the broker: finds the dirtiest logs, keeps passes over them going, and tells how it fares.

`log.cleaner.threads` is how many logs are cleaned at a time, each by a process of its own which is there only
while there is something to clean. A process that ends is followed by another, unless it is always the same
log at which it ends. A log that cannot be cleaned is named once, with the reason, and left alone until the
next start; the others go on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ottla.controller.changes import Change, TopicDeleted
from ottla.log.cleaning_job import Cleaned
from ottla.log.cleaning_plan import Cleanable, Resources, find_cleanable, make_job
from ottla.log.directories import LogDirectories
from ottla.log.directory import LogDirectory
from ottla.log.partition_log import PartitionLog
from ottla.model.clock import Clock
from ottla.model.configs import BrokerConfig
from ottla.model.errors import CorruptData
from ottla.model.metrics import Registry
from ottla.model.topics import TopicPartition
from ottla.node.cleaner_process import CleanerFailed, CleanerProcess, Trouble
from ottla.node.cleaning_pass import CleaningPass, Outcome
from ottla.node.workers import Workers
from ottla.replica.partition import Partition
from ottla.replica.partitions import Partitions
from ottla.server.reactor import Reactor

log = logging.getLogger(__name__)

_NAMES_SHOWN_MAX = 5
_SLICE = 256  # partitions looked at in one turn
_DEATHS_MAX = 3  # in a row at one log: what ends the process is in there
_DEDUPE_BYTES_MAX = 2**31 - 1  # of one pass, as in Kafka


class _Slot:
    """A process and the thread that waits for it."""

    def __init__(self, number: int, post: Callable[[Callable[[], None]], None]) -> None:
        self.process = CleanerProcess()
        self.worker = Workers(f"cleaner-{number}", 1, post)
        self.running: CleaningPass | None = None

    def release(self) -> None:
        """The process goes, with its memory; the thread waits for the next one."""
        self.worker(self.process.end, lambda _: None)


class Cleaning:
    def __init__(
        self,
        reactor: Reactor,
        clock: Clock,
        config_now: Callable[[], BrokerConfig],
        partitions: Partitions,
        directories: LogDirectories,
        metrics: Registry,
        fail: Callable[[str, OSError], None],
    ) -> None:
        self._reactor = reactor
        self._clock = clock
        self._config_now = config_now
        self._partitions = partitions
        self._directories = directories
        self._fail = fail
        self._slots: list[_Slot] = []
        self._uncleanable: dict[PartitionLog, str] = {}
        self._deaths: dict[PartitionLog, int] = {}  # of processes, since the log was last cleaned
        self._last_error: str | None = None
        self._is_looking = False
        self._is_stopped = False
        self._passes = metrics.counter("log.cleaner.passes")
        self._bytes_read = metrics.counter("log.cleaner.bytes_read")
        self._bytes_written = metrics.counter("log.cleaner.bytes_written")
        self._failures = metrics.counter("log.cleaner.failures")
        metrics.gauge("log.cleaner.running", lambda: sum(slot.running is not None for slot in self._slots))
        metrics.gauge("log.cleaner.uncleanable_partitions", lambda: len(self.uncleanable))
        self._set_timer()

    # -- what others ask -----------------------------------------------------------------------------------

    @property
    def uncleanable(self) -> dict[TopicPartition, str]:
        """Logs that are not cleaned any more, and why."""
        return {
            own.topic_partition: reason
            for own, reason in self._uncleanable.items()
            if self._directory_of(own) is not None
        }

    def problem(self) -> str | None:
        """For the broker's health."""
        uncleanable = self.uncleanable
        if not uncleanable:
            return self._last_error
        shown = "; ".join(
            f"{place}: {reason}" for place, reason in list(uncleanable.items())[:_NAMES_SHOWN_MAX]
        )
        more = "; …" if len(uncleanable) > _NAMES_SHOWN_MAX else ""
        return f"{len(uncleanable)} compacted partitions are not cleaned any more and grow: {shown}{more}"

    def follow(self, change: Change) -> None:
        """A deleted topic's files are left alone from now on: another one of its name may come at once."""
        if isinstance(change, TopicDeleted):
            for slot in self._slots:
                if slot.running is not None and slot.running.partition.topic_id == change.topic.id:
                    slot.running.abandon()

    def stop(self) -> None:
        """Passes under way are given up; the next start removes what they left."""
        self._is_stopped = True
        for slot in self._slots:
            slot.process.kill()
            slot.release()
            slot.worker.stop()

    def abandon(self) -> None:
        """As `stop`, without waiting."""
        self._is_stopped = True
        for slot in self._slots:
            slot.process.kill()
            slot.release()
            slot.worker.abandon()

    # -- looking for work ----------------------------------------------------------------------------------

    def _thread_count(self) -> int:
        config = self._config_now()
        return config.integer("log.cleaner.threads") if config.flag("log.cleaner.enable") else 0

    def _set_timer(self) -> None:
        backoff_ms = max(self._config_now().integer("log.cleaner.backoff.ms"), 1)
        self._reactor.timers.set(self._clock.monotonic_ms() + backoff_ms, self._timer_rang)

    def _timer_rang(self) -> None:
        if not self._is_stopped:
            self._set_timer()
            self.look()

    def look(self) -> None:
        """Starts passes over the dirtiest logs, if any is dirty enough and a process is free."""
        if self._is_looking or self._is_stopped or self._free_count() <= 0:
            return
        self._is_looking = True
        self._uncleanable = {
            own: reason for own, reason in self._uncleanable.items() if self._directory_of(own) is not None
        }
        self._deaths = {
            own: count for own, count in self._deaths.items() if self._directory_of(own) is not None
        }
        present = [partition for partition in self._partitions if partition.config.cleanup_compact]
        self._look_at(present, 0, [])

    def _free_count(self) -> int:
        return self._thread_count() - sum(slot.running is not None for slot in self._slots)

    def _look_at(self, present: list[Partition], first: int, due: list[tuple[Partition, Cleanable]]) -> None:
        for partition in present[first : first + _SLICE]:
            cleanable = self._judge(partition)
            if cleanable is not None and cleanable.is_due:
                due.append((partition, cleanable))
        if first + _SLICE < len(present):
            self._reactor.post(lambda: self._look_at(present, first + _SLICE, due))
            return
        self._is_looking = False
        due.sort(key=lambda each: each[1].dirty_ratio, reverse=True)
        for partition, cleanable in due[: max(self._free_count(), 0)]:
            self._start(partition, cleanable)
        for slot in self._slots:
            if slot.running is None:
                slot.release()

    def _judge(self, partition: Partition) -> Cleanable | None:
        own = partition.log
        directory = self._directory_of(own)
        if (
            partition.unavailable is not None
            or directory is None
            or own in self._uncleanable
            or self._is_running(own)
        ):
            return None
        cleaned_offset = directory.checkpoints.cleaned_offsets.get(own.topic_partition)
        try:
            return find_cleanable(own, cleaned_offset, partition.last_stable_offset, self._clock.wall_ms())
        except (OSError, CorruptData) as error:
            self._give_up(own, f"its segments cannot be judged: {error}")
            return None

    def _is_running(self, own: PartitionLog) -> bool:
        return any(slot.running is not None and slot.running.partition.log is own for slot in self._slots)

    def _directory_of(self, own: PartitionLog) -> LogDirectory | None:
        for directory in self._directories:
            if directory.logs.get(own.topic_partition) is own:
                return directory
        return None

    # -- passes --------------------------------------------------------------------------------------------

    def _start(self, partition: Partition, cleanable: Cleanable) -> None:
        directory = self._directory_of(partition.log)
        if partition.unavailable is not None or directory is None or self._is_stopped:
            return
        slot = next((slot for slot in self._slots if slot.running is None), None)
        if slot is None:
            slot = _Slot(len(self._slots), self._reactor.post)
            self._slots.append(slot)
        running = CleaningPass(
            partition, directory, slot.process, slot.worker, self._clock, self._pass_ended, self._fail
        )
        slot.running = running
        running.start(make_job(cleanable, self._clock.wall_ms(), self._resources()))

    def _resources(self) -> Resources:
        config, thread_count = self._config_now(), max(self._thread_count(), 1)
        return Resources(
            dedupe_bytes=min(
                config.integer("log.cleaner.dedupe.buffer.size") // thread_count, _DEDUPE_BYTES_MAX
            ),
            dedupe_load_factor=config.number("log.cleaner.io.buffer.load.factor"),
            read_bytes=config.integer("log.cleaner.io.buffer.size") // thread_count // 2,
            bytes_per_second=config.number("log.cleaner.io.max.bytes.per.second") / thread_count,
        )

    def _pass_ended(self, ended: CleaningPass, outcome: Outcome) -> None:
        for slot in self._slots:
            if slot.running is ended:
                slot.running = None
        ended.partition.log.segment_files.end_pass()
        if self._is_stopped:
            return
        if isinstance(outcome, Cleaned):
            self._passes.value += 1
            self._bytes_read.value += outcome.bytes_read
            self._bytes_written.value += outcome.bytes_written
            self._last_error = None
            self._deaths.pop(ended.partition.log, None)
            self.look()
        elif outcome is not None:
            self._failed(ended.partition, outcome)

    def _failed(self, partition: Partition, error: BaseException) -> None:
        """A disk that is full or busy may be better next time, and a process may have been killed for its
        memory; what is in the files will not be better.
        """
        self._failures.value += 1
        trouble = error.trouble if isinstance(error, CleanerFailed) else None
        may_pass = trouble is Trouble.DISK or isinstance(error, OSError)
        if trouble is Trouble.DEATH:
            self._deaths[partition.log] = self._deaths.get(partition.log, 0) + 1
            may_pass = self._deaths[partition.log] < _DEATHS_MAX
        if trouble is Trouble.DAMAGE:
            partition.go_offline(str(error))
        elif may_pass:
            text = f"{partition} could not be cleaned and will be tried again: {error}"
            if text != self._last_error:
                log.error("%s", text)
            self._last_error = text
        else:
            self._give_up(partition.log, str(error))

    def _give_up(self, own: PartitionLog, reason: str) -> None:
        self._uncleanable[own] = reason
        log.error(
            "%s is not cleaned any more and will grow, until the broker starts anew: %s",
            own.topic_partition,
            reason,
        )
