"""An internal topic whose partitions are the logs of a coordinator: created on first use, loaded, unloaded.

This broker coordinates the keys of the partitions it leads. Until such a partition is loaded its keys get
COORDINATOR_LOAD_IN_PROGRESS; the others are served.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from ottla.controller.changes import Change, PartitionsChanged, TopicDeleted
from ottla.controller.cluster import TopicImage
from ottla.controller.topics import TopicResult, TopicSpec
from ottla.coordinator.state_log import StateMachine, partition_for
from ottla.model.errors import ErrorCode, Refused
from ottla.model.topics import TopicPartition
from ottla.replica.partition import Partition
from ottla.server.state_loading import load_steps
from ottla.server.state_partition import Done, StatePartition

if TYPE_CHECKING:
    from ottla.server.services import Services

log = logging.getLogger(__name__)

M = TypeVar("M", bound=StateMachine)


class Coordinator(Protocol[M]):
    """What is done with the states, beside keeping them."""

    def new_machine(self) -> M: ...

    def loaded(self, partition: StatePartition[M]) -> None: ...

    def unloaded(self, partition: StatePartition[M]) -> None:
        """Its state is no longer ours: who waits for it must be answered."""
        ...


class StateTopic(Generic[M]):
    def __init__(
        self,
        services: Services,
        coordinator: Coordinator[M],
        spec: Callable[[], TopicSpec],
        *,
        codec: int,
        commit_timeout_ms: int,
        load_bytes: int,
    ) -> None:
        self.services = services
        self.name = spec().name
        self.codec = codec  # of what is appended
        self.commit_timeout_ms = commit_timeout_ms
        self.partitions: dict[int, StatePartition[M]] = {}  # that this broker leads, loaded or loading
        self._coordinator = coordinator
        self._spec = spec  # the topic as it is made when there is none
        self._load_bytes = load_bytes
        self._dirty: list[StatePartition[M]] = []  # to be flushed at the end of this turn
        self._awaiting_topic: list[Done] = []

    @property
    def _image(self) -> TopicImage | None:
        return self.services.controller.image.topics.get(self.name)

    # -- who coordinates what ------------------------------------------------------------------------------

    def ensure(self, done: Done) -> None:
        """Makes the topic when there is none; `done` when its partitions can be used."""
        if self._image is not None and not self._awaiting_topic:
            done(None)
            return
        self._awaiting_topic.append(done)
        if len(self._awaiting_topic) == 1:
            self.services.controller.create_topics([self._spec()], validate_only=False, done=self._created)

    def _created(self, results: Sequence[TopicResult]) -> None:
        waiting, self._awaiting_topic = self._awaiting_topic, []
        refusal = None
        if self._image is None:
            refusal = Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, results[0].text or "")
            log.error("%s cannot be created: %s", self.name, refusal.text)
        for done in waiting:
            done(refusal)

    def coordinator_of(self, key: str) -> int | None:
        """The broker that coordinates `key`; None while there is none."""
        image = self._image
        if image is None:
            return None
        leader = image.partitions[partition_for(key, len(image.partitions))].leader
        return leader if leader >= 0 else None

    def place_of(self, key: str) -> TopicPartition:
        """The partition of the topic, which must be there, that holds the state of `key`."""
        image = self._image
        assert image is not None, self.name
        return TopicPartition(self.name, partition_for(key, len(image.partitions)))

    def find(self, key: str) -> StatePartition[M]:
        """Where the state of `key` is. Refused, with what its client should do, when that is not here."""
        image = self._image
        if image is None:
            raise Refused(ErrorCode.NOT_COORDINATOR)
        index = partition_for(key, len(image.partitions))
        found = self.partitions.get(index)
        if found is None or found.is_lost:
            self._follow_leadership(image, index)
            if self.services.partitions.is_expected(self.name, index):
                raise Refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            raise Refused(ErrorCode.NOT_COORDINATOR)
        if not found.is_loaded:
            raise Refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return found

    def find_writable(self, key: str) -> StatePartition[M]:
        """The same, for what may change the state."""
        found = self.find(key)
        found.check_writable()
        return found

    # -- following the cluster -----------------------------------------------------------------------------

    def start(self) -> None:
        """Loads what is there. To be called once, when the partitions are hosted."""
        self.services.partitions.on_add.append(self._added)
        image = self._image
        if image is not None:
            self._follow_all(image)

    def _added(self, partition: Partition) -> None:
        image = self._image
        if partition.topic == self.name and image is not None:
            self._follow_leadership(image, partition.index)

    def follow(self, change: Change) -> None:
        """After the partitions themselves have followed it."""
        match change:
            case TopicDeleted(topic) if topic.name == self.name:
                for partition in list(self.partitions.values()):
                    self._give_up(partition)
            case PartitionsChanged(partitions):
                image = self._image
                if image is not None and any(topic.id == image.id for topic, _ in partitions):
                    self._follow_all(image)
            case _:
                pass

    def _follow_all(self, image: TopicImage) -> None:
        for index in range(len(image.partitions)):
            self._follow_leadership(image, index)

    def _follow_leadership(self, image: TopicImage, index: int) -> None:
        led = self.services.partitions.with_id(image.id, index)
        if led is not None and (
            led.unavailable is not None or image.partitions[index].leader != self.services.node_id
        ):
            led = None
        known = self.partitions.get(index)
        if known is not None and known.partition is not led:
            self._give_up(known)
            known = None
        if led is not None and known is None:
            self._load(led)

    def _give_up(self, partition: StatePartition[M]) -> None:
        partition.is_given_up = True
        del self.partitions[partition.index]
        self._coordinator.unloaded(partition)

    def reload(self, partition: StatePartition[M]) -> None:
        """The state is not what its log holds."""
        if not partition.is_given_up:
            self._give_up(partition)
            if partition.partition.unavailable is None:
                self._load(partition.partition)

    # -- loading -------------------------------------------------------------------------------------------

    def _load(self, partition: Partition) -> None:
        loading = StatePartition(self, partition, self._coordinator.new_machine())
        self.partitions[partition.index] = loading
        steps = load_steps(loading.machine, partition.log, self._load_bytes)
        self.services.long_requests.begin(_Loading(self, loading), steps)

    def loaded(self, partition: StatePartition[M]) -> None:
        partition.is_loaded = True
        self._coordinator.loaded(partition)

    # -- the turn ------------------------------------------------------------------------------------------

    def mark_dirty(self, partition: StatePartition[M]) -> None:
        self._dirty.append(partition)

    def flush(self) -> None:
        """In every turn, before its sync round begins."""
        if self._dirty:
            dirty, self._dirty = self._dirty, []
            for partition in dirty:
                partition.flush()

    def wake_if_dirty(self) -> None:
        """Last in every turn: answers may have led to new writes, which must not wait for a next request."""
        if self._dirty:
            self.services.reactor.post(self.flush)


class _Loading(Generic[M]):
    """A load under way, as `long_requests` sees it."""

    def __init__(self, topic: StateTopic[M], partition: StatePartition[M]) -> None:
        self._topic = topic
        self._partition = partition

    @property
    def abandoned(self) -> bool:
        return self._partition.is_given_up

    def answer(self, response: None) -> None:
        self._topic.loaded(self._partition)

    def fail(self, error: Exception) -> None:
        log.error(
            "%s cannot be loaded, so its keys have no coordinator; see what is wrong with its files: %s",
            self._partition.partition,
            error,
            exc_info=error,
        )
