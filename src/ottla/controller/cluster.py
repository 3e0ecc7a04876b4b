"""The cluster as one broker sees it: brokers, topics, partitions and settings in memory.

Read by every request; changed only by the controller, after the change is durable. Built from the znodes at
start; whatever the controller applies later leaves it as if it had been built from them again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from ottla.controller.znode_formats import (
    BROKER_CONFIGS,
    BROKER_IDS,
    CLUSTER_ID,
    CONTROLLER,
    CONTROLLER_EPOCH,
    DEFAULT_ENTITY,
    TOPICS,
    EndPoint,
    broker_config_path,
    broker_path,
    decode_assignment,
    decode_broker,
    decode_cluster_id,
    decode_config,
    decode_controller,
    decode_state,
    state_path,
    topic_config_path,
    topic_path,
)
from ottla.coordination.stat import Stat
from ottla.model.errors import CorruptData
from ottla.model.topics import INTERNAL_TOPICS, NO_TOPIC_ID, TopicId
from ottla.model.values import NamedTuple, dataclass, field

NO_LEADER = -1
NO_ZNODE = -1
"""In place of a znode's version: the node does not exist."""


class Znodes(Protocol):
    """The reading half of coordination."""

    def read(self, path: str) -> tuple[bytes | None, Stat] | None: ...

    def children(self, path: str) -> list[str] | None: ...


class BrokerImage(NamedTuple):
    id: int
    endpoints: tuple[EndPoint, ...]
    rack: str | None
    epoch: int  # zxid of its registration: a later life of the same broker has a larger one

    def endpoint(self, listener: str) -> EndPoint | None:
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)


class PartitionImage(NamedTuple):
    leader: int  # or NO_LEADER
    leader_epoch: int
    replicas: tuple[int, ...]  # the preferred leader first
    isr: tuple[int, ...]
    partition_epoch: int  # version of its state znode, or NO_ZNODE before it had a leader
    controller_epoch: int  # of the controller that wrote the state
    adding_replicas: tuple[int, ...] = ()  # of a reassignment under way
    removing_replicas: tuple[int, ...] = ()


@dataclass(slots=True, repr=False)
class TopicImage:
    name: str
    id: TopicId
    partitions: list[PartitionImage]
    configs: dict[str, str]  # what was set for this topic; everything else comes from the broker
    assignment_version: int  # of the topic's znode
    config_version: int  # of its settings' znode, or NO_ZNODE

    def __repr__(self) -> str:
        return f"TopicImage({self.name!r}, partitions={len(self.partitions)}, configs={self.configs!r})"

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].replicas)


@dataclass(slots=True)
class BrokerSettings:
    """Dynamic settings of one broker, or of the cluster."""

    configs: dict[str, str]
    version: int  # of their znode


@dataclass(slots=True)
class ClusterImage:
    cluster_id: str = ""
    controller_id: int = NO_LEADER
    controller_epoch: int = 0
    controller_epoch_version: int = NO_ZNODE  # fences a controller that lost its place
    brokers: dict[int, BrokerImage] = field(default_factory=dict)
    topics: dict[str, TopicImage] = field(default_factory=dict)
    topics_by_id: dict[TopicId, TopicImage] = field(default_factory=dict)
    broker_settings: dict[int | None, BrokerSettings] = field(
        default_factory=dict
    )  # None: the cluster's default
    _by_unified_name: dict[str, str] = field(default_factory=dict)

    def add_topic(self, topic: TopicImage) -> None:
        self.topics[topic.name] = topic
        if topic.id != NO_TOPIC_ID:
            self.topics_by_id[topic.id] = topic
        self._by_unified_name[unify(topic.name)] = topic.name

    def remove_topic(self, topic: TopicImage) -> None:
        del self.topics[topic.name]
        self.topics_by_id.pop(topic.id, None)
        if self._by_unified_name.get(unify(topic.name)) == topic.name:
            del self._by_unified_name[unify(topic.name)]

    def colliding_topic(self, name: str) -> str | None:
        """The other topic whose name differs only in '.' against '_': metrics could not tell them apart."""
        other = self._by_unified_name.get(unify(name))
        return None if other == name else other

    def broker_configs(self, broker_id: int | None) -> dict[str, str]:
        """Dynamic settings of a broker, or (None) those of the whole cluster."""
        settings = self.broker_settings.get(broker_id)
        return {} if settings is None else settings.configs

    def partitions_led_by(self, broker_id: int) -> Iterator[tuple[TopicImage, int]]:
        for topic in self.topics.values():
            for index, partition in enumerate(topic.partitions):
                if partition.leader == broker_id:
                    yield topic, index

    @classmethod
    def load(cls, znodes: Znodes) -> ClusterImage:
        """From the znodes. CorruptData names the one that makes no sense."""
        return _Loader(znodes).load()


def unify(topic: str) -> str:
    return topic.replace(".", "_")


class _Loader:
    def __init__(self, znodes: Znodes) -> None:
        self._znodes = znodes
        self._path = ""  # being read, for the message when it cannot be

    def load(self) -> ClusterImage:
        try:
            return self._load()
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptData(
                f"znode {self._path} does not hold what Kafka keeps there ({type(error).__name__}: {error}); "
                "set it right with a ZooKeeper client, or restore the coordination directory from a backup"
            ) from error

    def _load(self) -> ClusterImage:
        image = ClusterImage()
        if (found := self._read(CLUSTER_ID)) is not None:
            image.cluster_id = decode_cluster_id(found[0])
        if (found := self._read(CONTROLLER)) is not None:
            image.controller_id = decode_controller(found[0])
        if (found := self._read(CONTROLLER_EPOCH)) is not None:
            image.controller_epoch = int(found[0] or b"0")
            image.controller_epoch_version = found[1].version
        for name in self._znodes.children(BROKER_IDS) or ():
            if (found := self._read(broker_path(int(name)))) is not None:
                endpoints, rack = decode_broker(found[0])
                image.brokers[int(name)] = BrokerImage(int(name), endpoints, rack, found[1].czxid)
        for name in self._znodes.children(BROKER_CONFIGS) or ():
            broker_id = None if name == DEFAULT_ENTITY else int(name)
            if (found := self._read(broker_config_path(broker_id))) is not None:
                image.broker_settings[broker_id] = BrokerSettings(decode_config(found[0]), found[1].version)
        for name in self._znodes.children(TOPICS) or ():
            self._load_topic(image, name)
        return image

    def _load_topic(self, image: ClusterImage, name: str) -> None:
        found = self._read(topic_path(name))
        if found is None:
            return
        assignment = decode_assignment(found[0])
        configs: dict[str, str] = {}
        config_version = NO_ZNODE
        if (config := self._read(topic_config_path(name))) is not None:
            configs, config_version = decode_config(config[0]), config[1].version
        partitions = []
        for index, replicas in enumerate(assignment.replicas):
            adding, removing = (
                tuple(assignment.adding.get(index, ())),
                tuple(assignment.removing.get(index, ())),
            )
            state = self._read(state_path(name, index))
            if state is None:
                new = PartitionImage(NO_LEADER, 0, tuple(replicas), (), NO_ZNODE, 0, adding, removing)
            else:
                leader, leader_epoch, isr, controller_epoch = decode_state(state[0])
                new = PartitionImage(
                    leader,
                    leader_epoch,
                    tuple(replicas),
                    isr,
                    state[1].version,
                    controller_epoch,
                    adding,
                    removing,
                )
            partitions.append(new)
        topic_id = assignment.topic_id or NO_TOPIC_ID
        image.add_topic(TopicImage(name, topic_id, partitions, configs, found[1].version, config_version))

    def _read(self, path: str) -> tuple[bytes | None, Stat] | None:
        self._path = path
        return self._znodes.read(path)
