"""What admin clients do: ask and change topics, settings, offsets, disks. Their shells are `admin` and `aio`.

A call tries again by itself what may pass (a moved leader, a cut connection) within
`default.api.timeout.ms`, as long as trying again cannot do harm; changes are sent once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeVar

from ottla.client import (
    admin_configs,
    admin_offsets,
    admin_topics,
)
from ottla.client.admin_asking import broker_of
from ottla.client.admin_coordinator_calls import CoordinatorCalls
from ottla.client.admin_values import (
    BrokerVersions,
    ClusterDescription,
    ConfigEntry,
    ConfigResource,
    CreatedTopic,
    FoundOffset,
    LogDir,
    NewTopic,
)
from ottla.client.cluster_view import Broker, Topic
from ottla.client.errors import ClientError, UnknownTopic
from ottla.client.offset_spec import Ago, AtTime, End, Exact, FromEnd, OffsetSpec, Start, parse_offset
from ottla.model.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from ottla.model.topics import TopicPartition

T = TypeVar("T")

_NOTHING: Mapping[str, str] = {}


class AdminCalls(CoordinatorCalls):
    # -- cluster -------------------------------------------------------------------------------------------

    async def cluster(self) -> ClusterDescription:
        return await admin_topics.describe_cluster(self._cluster, self._deadline_ms())

    async def broker_versions(self, broker_id: int | None = None) -> BrokerVersions:
        """What a broker (None: any) speaks, and the features of its cluster."""
        return await self._asking(broker_id, admin_topics.broker_versions)

    async def find_coordinator(self, key: str, kind: Literal["group", "transaction"] = "group") -> Broker:
        return await admin_topics.find_coordinator(self._cluster, key, kind, self._deadline_ms())

    async def log_dirs(self, broker_ids: Iterable[int] | None = None) -> tuple[LogDir, ...]:
        """The data directories of brokers (None: all), with what lies there."""
        deadline_ms = self._deadline_ms()
        seen = await self._view((), deadline_ms)
        wanted = sorted(seen.brokers) if broker_ids is None else list(broker_ids)
        brokers = [broker_of(seen, broker_id) for broker_id in wanted]
        return await admin_offsets.log_dirs(self._cluster, brokers, deadline_ms)

    # -- topics --------------------------------------------------------------------------------------------

    async def topics(
        self, names: Iterable[str] | None = None, *, internal: bool = False
    ) -> tuple[Topic, ...]:
        """Topics by name (None: all), sorted. A name that is not there raises UnknownTopic."""
        wanted = None if names is None else tuple(names)
        seen = await self._view(wanted, self._deadline_ms())
        return admin_topics.topics_of(seen, internal=internal or wanted is not None)

    async def topic_pages(self, names: Iterable[str], *, page_partitions: int = 2_000) -> tuple[Topic, ...]:
        """The same for topics with very many partitions: brokers are asked for some of them at a time."""
        return await admin_topics.topic_pages(
            self._cluster, tuple(names), page_partitions, self._deadline_ms()
        )

    async def topic_names(self, *, internal: bool = False) -> tuple[str, ...]:
        return tuple(topic.name for topic in await self.topics(internal=internal))

    async def topic(self, name: str) -> Topic:
        (topic,) = await self.topics((name,))
        return topic

    async def partitions_of(self, name: str) -> tuple[TopicPartition, ...]:
        return tuple(
            TopicPartition(name, partition.index) for partition in (await self.topic(name)).partitions
        )

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str] = _NOTHING,
        assignment: Mapping[int, Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> CreatedTopic:
        new = NewTopic(name, partitions, replication_factor, configs, assignment)
        outcome = (await self.create_topics((new,), validate_only=validate_only))[name]
        if isinstance(outcome, ClientError):
            raise outcome
        return outcome

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False
    ) -> dict[str, CreatedTopic | ClientError]:
        return await admin_topics.create_topics(
            self._cluster, tuple(topics), self._deadline_ms(), validate_only=validate_only
        )

    async def delete_topic(self, name: str) -> None:
        outcome = (await self.delete_topics((name,)))[name]
        if outcome is not None:
            raise outcome

    async def delete_topics(self, names: Iterable[str]) -> dict[str, ClientError | None]:
        """By name, what hindered the deletion; None: it is gone."""
        return await admin_topics.delete_topics(self._cluster, tuple(names), self._deadline_ms())

    async def create_partitions(
        self,
        name: str,
        count: int,
        *,
        assignment: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Grows a topic to `count` partitions; `assignment` places the new ones."""
        await admin_topics.create_partitions(
            self._cluster, name, count, assignment, self._deadline_ms(), validate_only=validate_only
        )

    # -- settings ------------------------------------------------------------------------------------------

    async def topic_configs(self, name: str, names: Iterable[str] | None = None) -> dict[str, ConfigEntry]:
        deadline_ms = self._deadline_ms()
        try:
            return await self._configs(None, ConfigResource("topic", name), names)
        except UnknownTopic:
            raise await admin_topics.unknown_topic(self._cluster, name, deadline_ms) from None

    async def broker_configs(
        self, broker_id: int | None = None, names: Iterable[str] | None = None
    ) -> dict[str, ConfigEntry]:
        """Of one broker, or (None) the defaults that were set for the whole cluster."""
        return await self._configs(broker_id, _broker_resource(broker_id), names)

    async def alter_topic_configs(
        self,
        name: str,
        *,
        set: Mapping[str, str] = _NOTHING,  # noqa: A002  # Kafka's word for it
        delete: Iterable[str] = (),
        append: Mapping[str, str] = _NOTHING,
        subtract: Mapping[str, str] = _NOTHING,
        validate_only: bool = False,
    ) -> None:
        deadline_ms = self._deadline_ms()
        changed = admin_configs.changes(set, delete, append, subtract)
        address = await admin_topics.controller_address(self._cluster, deadline_ms)
        resource = ConfigResource("topic", name)
        try:
            await admin_configs.alter(
                self._cluster, address, resource, changed, deadline_ms, validate_only=validate_only
            )
        except UnknownTopic:
            raise await admin_topics.unknown_topic(self._cluster, name, deadline_ms) from None

    async def replace_topic_configs(
        self, name: str, configs: Mapping[str, str], *, validate_only: bool = False
    ) -> None:
        """These settings and no others: what is left out goes back to its default."""
        deadline_ms = self._deadline_ms()
        address = await admin_topics.controller_address(self._cluster, deadline_ms)
        resource = ConfigResource("topic", name)
        await admin_configs.replace(
            self._cluster, address, resource, configs, deadline_ms, validate_only=validate_only
        )

    async def alter_broker_configs(
        self,
        broker_id: int | None,
        *,
        set: Mapping[str, str] = _NOTHING,  # noqa: A002
        delete: Iterable[str] = (),
        append: Mapping[str, str] = _NOTHING,
        subtract: Mapping[str, str] = _NOTHING,
        validate_only: bool = False,
    ) -> None:
        changed = admin_configs.changes(set, delete, append, subtract)
        deadline_ms = self._deadline_ms()
        address = await self._address(broker_id, deadline_ms)
        await admin_configs.alter(
            self._cluster,
            address,
            _broker_resource(broker_id),
            changed,
            deadline_ms,
            validate_only=validate_only,
        )

    async def config_resources(self) -> tuple[ConfigResource, ...]:
        """What has settings of its own."""
        return await self._asking(None, admin_configs.resources)

    # -- offsets -------------------------------------------------------------------------------------------

    async def list_offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec | int], *, read_committed: bool = False
    ) -> dict[TopicPartition, FoundOffset]:
        """Start, End and AtTime as brokers answer them; a number is a raw timestamp of the protocol."""
        timestamps = {target: _timestamp(spec) for target, spec in specs.items()}
        return await admin_offsets.list_offsets(
            self._cluster, timestamps, self._deadline_ms(), read_committed=read_committed
        )

    async def earliest_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return await self._ends(partitions, EARLIEST_TIMESTAMP, read_committed=False)

    async def latest_offsets(
        self, partitions: Iterable[TopicPartition], *, read_committed: bool = False
    ) -> dict[TopicPartition, int]:
        """The offsets that the next records will get (read_committed: the last stable offsets)."""
        return await self._ends(partitions, LATEST_TIMESTAMP, read_committed=read_committed)

    async def resolve_offsets(
        self,
        partitions: Iterable[TopicPartition],
        spec: str | int | OffsetSpec,
        *,
        read_committed: bool = False,
    ) -> dict[TopicPartition, int]:
        """A place (`offset_spec`) as an offset of each partition, within what the partition holds."""
        place = parse_offset(spec, self._cluster.clock.wall_ms())
        return await admin_offsets.resolve(
            self._cluster,
            dict.fromkeys(partitions, place),
            self._deadline_ms(),
            read_committed=read_committed,
        )

    async def leader_epoch_ends(
        self, epochs: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | None]:
        """Where the leader epochs of partitions ended; None: the partition knows of no such epoch."""
        return await admin_offsets.epoch_ends(self._cluster, epochs, self._deadline_ms())

    async def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Drops what is before these offsets (-1: everything). The partitions' new first offsets."""
        return await admin_offsets.delete_records(self._cluster, before, self._deadline_ms())

    # -- how -----------------------------------------------------------------------------------------------

    async def _configs(
        self, broker_id: int | None, resource: ConfigResource, names: Iterable[str] | None
    ) -> dict[str, ConfigEntry]:
        wanted = None if names is None else tuple(names)
        return await self._asking(
            broker_id,
            lambda cluster, address, deadline_ms: admin_configs.describe(
                cluster, address, resource, wanted, deadline_ms
            ),
        )

    async def _ends(
        self, partitions: Iterable[TopicPartition], timestamp: int, *, read_committed: bool
    ) -> dict[TopicPartition, int]:
        return await admin_offsets.ends(
            self._cluster, partitions, timestamp, self._deadline_ms(), read_committed=read_committed
        )


def _broker_resource(broker_id: int | None) -> ConfigResource:
    return ConfigResource("broker", "" if broker_id is None else str(broker_id))


def _timestamp(spec: OffsetSpec | int) -> int:
    match spec:
        case Start():
            return EARLIEST_TIMESTAMP
        case End():
            return LATEST_TIMESTAMP
        case AtTime(timestamp_ms):
            return timestamp_ms
        case Exact() | FromEnd() | Ago():
            raise ValueError(f"{spec} is no question to a broker; resolve_offsets answers it")
        case _:
            return spec
