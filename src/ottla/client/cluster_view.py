"""The cluster as a client sees it: brokers, topics, leaders. Values only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ottla.client.addresses import Address
from ottla.client.errors import BrokerError
from ottla.model.errors import ErrorCode
from ottla.model.topics import NO_TOPIC_ID, TopicId, TopicPartition


@dataclass(frozen=True, slots=True)
class Broker:
    id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> Address:
        return Address(self.host, self.port)


@dataclass(frozen=True, slots=True)
class Partition:
    index: int
    leader: int | None  # None: there is none at the moment
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    id: TopicId
    is_internal: bool
    partitions: tuple[Partition, ...]  # in the order of their indexes

    @property
    def replication_factor(self) -> int:
        return max((len(partition.replicas) for partition in self.partitions), default=0)


@dataclass(frozen=True, slots=True)
class ClusterView:
    cluster_id: str | None = None
    controller_id: int = -1
    brokers: Mapping[int, Broker] = field(default_factory=dict)
    topics: Mapping[str, Topic] = field(default_factory=dict)
    names: Mapping[TopicId, str] = field(default_factory=dict)

    def partition(self, target: TopicPartition) -> Partition | None:
        topic = self.topics.get(target.topic)
        if topic is None or not 0 <= target.partition < len(topic.partitions):
            return None
        return topic.partitions[target.partition]

    def leader(self, target: TopicPartition) -> Broker | None:
        partition = self.partition(target)
        return None if partition is None or partition.leader is None else self.brokers.get(partition.leader)

    def leaderless(self, target: TopicPartition) -> BrokerError:
        """Why there is nobody to ask for a partition, as far as brokers have told."""
        partition = self.partition(target)
        text, cure = f"{target} has no leader at the moment", ""
        if partition is not None:
            holders = ", ".join(map(str, partition.offline or partition.replicas))
            cure = f"look at the brokers that hold it ({holders}): that they run, their logs, their disks"
            if partition.leader is not None:
                text = f"broker {partition.leader}, which leads {target}, is not there at the moment"
            elif partition.offline:
                text = f"{target} is offline: it has no leader that runs and can use its files"
        return BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, text, cure)

    def topic_id(self, name: str) -> TopicId:
        topic = self.topics.get(name)
        return NO_TOPIC_ID if topic is None else topic.id

    def replica_racks(self, topics: Iterable[Topic]) -> dict[TopicPartition, frozenset[str]]:
        """Where the replicas of each partition are; empty where no broker tells its rack."""
        racks = {broker.id: broker.rack for broker in self.brokers.values() if broker.rack}
        if not racks:
            return {}
        return {
            TopicPartition(topic.name, partition.index): frozenset(
                racks[each] for each in partition.replicas if each in racks
            )
            for topic in topics
            for partition in topic.partitions
        }
