"""The files of partitions, made and removed in the order in which topics change, by one worker.

The owner decides before each portion and takes over after it, so that a topic of thousands of partitions
neither waits for a disk in a turn nor makes one long. In order means: a topic that is deleted and made anew
under its name at once has its old files out of the way before it gets new ones.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Protocol

from ottla.controller.cluster import TopicImage
from ottla.log.creation import Creation, NewLog
from ottla.log.deletions import Renaming
from ottla.log.directories import LogDirectories
from ottla.log.directory import LogDirectory
from ottla.log.flusher import Flusher
from ottla.log.partition_log import PartitionLog
from ottla.model.clock import Clock
from ottla.model.configs import TopicConfig
from ottla.model.topics import TopicPartition
from ottla.model.values import dataclass
from ottla.server.warming import Offload, run_at_once

log = logging.getLogger(__name__)

_PORTION = 32
"""Partitions that are taken over at once: about two milliseconds of a turn."""


@dataclass(frozen=True, slots=True)
class Making:
    topic: TopicImage
    index: int
    tried: tuple[LogDirectory, ...] = ()  # they could not
    problem: OSError | None = None  # what the first of them said

    @property
    def place(self) -> TopicPartition:
        return TopicPartition(self.topic.name, self.index)


@dataclass(frozen=True, slots=True)
class Removing:
    directory: LogDirectory
    place: TopicPartition
    log: PartitionLog | None  # None: one that was set aside


class Host(Protocol):
    """Whose partitions they are."""

    def config_of(self, topic: str) -> TopicConfig: ...

    def is_wanted(self, making: Making) -> bool:
        """Whether the topic is still there."""
        ...

    def made(self, making: Making, partition_log: PartitionLog) -> None: ...

    def unmade(self, making: Making, problem: OSError) -> None: ...


class PartitionFiles:
    def __init__(
        self, host: Host, directories: LogDirectories, flusher: Flusher, clock: Clock, worker: Offload
    ) -> None:
        self._host = host
        self._directories = directories
        self._flusher = flusher
        self._clock = clock
        self._worker = worker
        self._is_busy = False  # a portion is under way
        self._queue: deque[Making | Removing | Callable[[], None]] = deque()

    @property
    def is_idle(self) -> bool:
        return not self._queue and not self._is_busy

    def make(self, making: Making) -> None:
        self._queue.append(making)

    def remove(self, removing: Removing) -> None:
        self._queue.append(removing)

    def when_settled(self, done: Callable[[], None]) -> None:
        """Calls `done` when everything asked for so far is done."""
        if self.is_idle:
            done()
        else:
            self._queue.append(done)

    def go_on(self) -> None:
        """In every turn: the next portion, unless one is under way."""
        if self._queue:
            self._go_on(self._worker)

    def finish_now(self) -> None:
        """At start, when nobody is served yet: everything, and it may wait for the disk."""
        self._go_on(run_at_once)
        assert self.is_idle

    def _go_on(self, worker: Offload) -> None:
        while self._queue and not self._is_busy:
            head = self._queue[0]
            if isinstance(head, Making):
                self._make_next(worker)
            elif not isinstance(head, Removing):
                self._queue.popleft()
                head()
            elif self._flusher.is_busy:
                return  # the round under way may have these files; the turn that ends it comes here again
            else:
                self._remove_next(worker)

    # -- making ----------------------------------------------------------------------------------------------

    def _make_next(self, worker: Offload) -> None:
        portion: dict[LogDirectory, list[NewLog]] = {}
        makings: dict[TopicPartition, Making] = {}
        configs: dict[str, TopicConfig] = {}
        while len(makings) < _PORTION and self._queue and isinstance(self._queue[0], Making):
            making = self._queue.popleft()
            assert isinstance(making, Making)
            if not self._host.is_wanted(making):
                continue
            place = making.place
            former = self._former_life(making)
            if former is not None:
                self._queue.extendleft((making, former))
                break
            directory = self._place_for(making)
            if directory is None:
                self._host.unmade(making, making.problem or OSError("no log directory is left"))
                continue
            if making.topic.name not in configs:
                configs[making.topic.name] = self._host.config_of(making.topic.name)
            makings[place] = making
            new = NewLog(place, making.topic.id, configs[making.topic.name])
            portion.setdefault(directory, []).append(new)
            directory.coming.add(place)
        if makings:
            creations = {directory: directory.begin_creation(new) for directory, new in portion.items()}
            self._run(worker, creations, lambda: self._take_over(creations, makings))

    def _former_life(self, making: Making) -> Removing | None:
        """A log of a topic that had this name and is not on its way out already."""
        for directory in self._directories:
            known_id = directory.topic_ids.get(making.place)
            if making.place in directory.logs and known_id is not None and known_id != making.topic.id:
                return Removing(directory, making.place, directory.logs[making.place])
        return None

    def _place_for(self, making: Making) -> LogDirectory | None:
        untried = [each for each in self._directories.by_emptiness() if each not in making.tried]
        for directory in untried:
            if making.place in directory.logs:
                return directory  # found without an id: it is this topic's
        return next(iter(untried), None)

    def _take_over(
        self, creations: dict[LogDirectory, Creation], makings: dict[TopicPartition, Making]
    ) -> None:
        now_ms = self._clock.wall_ms()
        for directory, creation in creations.items():
            is_working = directory in self._directories  # it may have failed meanwhile
            if is_working:
                directory.finish_creation(creation, now_ms)
            for new in creation.new_logs:
                making = makings[new.partition]
                problem = new.problem
                if problem is None and not is_working:
                    problem = OSError(f"{directory.path} has failed")
                if problem is not None:
                    tried = (*making.tried, directory)
                    self._queue.appendleft(
                        Making(making.topic, making.index, tried, making.problem or problem)
                    )
                    continue
                made = directory.logs[new.partition]
                if self._host.is_wanted(making):
                    self._flusher.mark_dirty(made)
                    self._host.made(making, made)
                else:  # deleted meanwhile; and who is next in the queue may have the same name
                    self._queue.appendleft(Removing(directory, new.partition, made))

    # -- removing --------------------------------------------------------------------------------------------

    def _remove_next(self, worker: Offload) -> None:
        portion: dict[LogDirectory, dict[TopicPartition, int]] = {}
        count = 0
        while count < _PORTION and self._queue and isinstance(self._queue[0], Removing):
            removing = self._queue.popleft()
            assert isinstance(removing, Removing)
            known = removing.directory.logs.get(removing.place)
            is_there = known is removing.log and (
                known is not None or removing.place in removing.directory.failed
            )
            if removing.directory not in self._directories or not is_there:
                continue
            delay_ms = 0
            if known is not None:
                self._flusher.forget(known)
                delay_ms = known.config.file_delete_delay_ms
            portion.setdefault(removing.directory, {})[removing.place] = delay_ms
            count += 1
        if portion:
            renamings = {directory: directory.begin_deletion(gone) for directory, gone in portion.items()}
            self._run(worker, renamings, lambda: self._removed(renamings))

    def _removed(self, renamings: dict[LogDirectory, Renaming]) -> None:
        now_ms = self._clock.wall_ms()
        for directory, renaming in renamings.items():
            directory.finish_deletion(renaming, now_ms)

    # -- the worker ------------------------------------------------------------------------------------------

    def _run(
        self,
        worker: Offload,
        works: dict[LogDirectory, Creation] | dict[LogDirectory, Renaming],
        finish: Callable[[], None],
    ) -> None:
        def run() -> None:
            for work in works.values():
                work.run()

        def done(error: BaseException | None) -> None:
            self._is_busy = False
            if error is not None:
                raise error  # files only raise OSError, which `run` keeps
            finish()
            if worker is not run_at_once:
                self._go_on(worker)

        self._is_busy = True
        worker(run, done)
