"""What an admin client gives back: small values, in the words of the protocol's documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ottla.client.cluster_view import Broker
from ottla.model.config_types import ConfigSource
from ottla.model.errors import ErrorCode
from ottla.model.topics import TopicId, TopicPartition


class ClusterDescription(NamedTuple):
    id: str
    controller_id: int
    brokers: tuple[Broker, ...]


class ApiRange(NamedTuple):
    key: int
    name: str  # "" for an API that this client does not know
    first: int
    last: int


class BrokerVersions(NamedTuple):
    apis: tuple[ApiRange, ...]
    supported_features: Mapping[str, tuple[int, int]]
    finalized_features: Mapping[str, tuple[int, int]]
    finalized_epoch: int | None


class NewTopic(NamedTuple):
    name: str
    partitions: int = -1  # -1: the broker's default
    replication_factor: int = -1
    configs: Mapping[str, str] = MappingProxyType({})
    assignment: Mapping[int, Sequence[int]] | None = None  # brokers by partition, instead of the two numbers


class ConfigSynonym(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource | None


class ConfigEntry(NamedTuple):
    name: str
    value: str | None  # None also for secrets
    source: ConfigSource | None  # None: the broker did not say
    read_only: bool
    sensitive: bool
    type: str = "unknown"  # boolean, string, int ...
    doc: str = ""
    synonyms: tuple[ConfigSynonym, ...] = ()

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT_CONFIG


class ConfigResource(NamedTuple):
    kind: str  # topic, broker, client_metrics, group
    name: str


class CreatedTopic(NamedTuple):
    name: str
    id: TopicId
    partitions: int  # -1: an old broker did not say
    replication_factor: int
    configs: Mapping[str, ConfigEntry]


class FoundOffset(NamedTuple):
    offset: int | None  # None: the partition has no such record
    timestamp_ms: int | None
    leader_epoch: int | None


class ReplicaSize(NamedTuple):
    topic: str
    partition: int
    bytes: int
    offset_lag: int
    is_future: bool  # a copy on its way into this directory


class LogDir(NamedTuple):
    broker_id: int
    path: str
    error: ErrorCode
    total_bytes: int | None
    usable_bytes: int | None
    replicas: tuple[ReplicaSize, ...]


class GroupListing(NamedTuple):
    id: str
    protocol_type: str
    state: str  # "" where an old broker did not say
    type: str
    coordinator: Broker


class GroupMember(NamedTuple):
    id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]


class GroupDescription(NamedTuple):
    id: str
    state: str
    protocol_type: str
    assignor: str
    coordinator: Broker
    members: tuple[GroupMember, ...]


class CommittedOffset(NamedTuple):
    offset: int  # of the next record to read
    leader_epoch: int | None = None
    metadata: str = ""


class ListedTransaction(NamedTuple):
    id: str
    producer_id: int
    state: str
    broker_id: int  # its coordinator


class TransactionDescription(NamedTuple):
    id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int | None
    partitions: tuple[TopicPartition, ...]
    coordinator_id: int


class OpenTransaction(NamedTuple):
    """One that its producer has left open, for somebody else to end (`Admin.end_transactions`)."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_empty: bool = False  # nothing was written under it: there is nothing to end


class GroupMetadata(NamedTuple):
    """Who commits offsets within a transaction: the group fences members that have lost their place."""

    group_id: str
    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None


class PartitionTransaction(NamedTuple):
    """One that has not ended, as a partition knows it."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int  # of the producer's last marker there; -1: there was none
    first_offset: int
    last_write_ms: int
