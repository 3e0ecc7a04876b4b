"""confluent-kafka's AdminClient."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from compat.admins.admin import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    ClusterView,
    ConfigValue,
    Position,
    Refusal,
    TopicView,
)
from ottla.model.errors import ErrorCode

_TIMEOUT_S = 30
_SPECS = {
    EARLIEST: OffsetSpec.earliest(),
    LATEST: OffsetSpec.latest(),
    MAX_TIMESTAMP: OffsetSpec.max_timestamp(),
}


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except KafkaException as failure:
        error = failure.args[0]
        if error.code() < ErrorCode.UNKNOWN_SERVER_ERROR:
            raise  # librdkafka's own, never sent by a broker
        raise Refusal(error.code(), error.str()) from failure


def _only(futures: dict[Any, Any]) -> Any:
    """The result of the one thing that was asked for."""
    [future] = futures.values()
    with _refusals():
        return future.result(_TIMEOUT_S)


class ConfluentAdmin:
    name = "confluent"

    def __init__(self, bootstrap: str) -> None:
        self._client = AdminClient({"bootstrap.servers": bootstrap})

    def create_topic(
        self,
        topic: str,
        partitions: int = -1,
        configs: Mapping[str, str] | None = None,
        *,
        replication_factor: int = -1,
        assignment: list[list[int]] | None = None,
        validate_only: bool = False,
    ) -> None:
        placed = (
            {"replica_assignment": assignment} if assignment else {"replication_factor": replication_factor}
        )
        count = len(assignment) if assignment else partitions
        new_topic = NewTopic(topic, num_partitions=count, config=dict(configs or {}), **placed)
        _only(self._client.create_topics([new_topic], validate_only=validate_only))

    def delete_topic(self, topic: str) -> None:
        _only(self._client.delete_topics([topic]))

    def topics(self) -> set[str]:
        return set(self._client.list_topics(timeout=_TIMEOUT_S).topics)

    def describe_topic(self, topic: str) -> TopicView:
        found = _only(self._client.describe_topics(TopicCollection([topic])))
        return TopicView(
            topic_id=str(found.topic_id),
            replicas={p.id: [node.id for node in p.replicas] for p in found.partitions},
            leaders={p.id: p.leader.id for p in found.partitions},
        )

    def grow_topic(self, topic: str, partitions: int, *, validate_only: bool = False) -> None:
        _only(self._client.create_partitions([NewPartitions(topic, partitions)], validate_only=validate_only))

    def topic_configs(self, topic: str) -> dict[str, ConfigValue]:
        return self._configs(ConfigResource(ResourceType.TOPIC, topic))

    def broker_configs(self, broker: int) -> dict[str, ConfigValue]:
        return self._configs(ConfigResource(ResourceType.BROKER, str(broker)))

    def _configs(self, resource: ConfigResource) -> dict[str, ConfigValue]:
        found = _only(self._client.describe_configs([resource]))
        return {
            name: ConfigValue(entry.value, int(entry.source), bool(entry.is_read_only))
            for name, entry in found.items()
        }

    def change_topic_configs(
        self, topic: str, changes: Mapping[str, tuple[str, str | None]], *, validate_only: bool = False
    ) -> None:
        self._change(ResourceType.TOPIC, topic, changes, validate_only)

    def change_broker_configs(self, broker: int, changes: Mapping[str, tuple[str, str | None]]) -> None:
        self._change(ResourceType.BROKER, str(broker), changes, validate_only=False)

    def _change(
        self,
        kind: ResourceType,
        name: str,
        changes: Mapping[str, tuple[str, str | None]],
        validate_only: bool,
    ) -> None:
        entries = [
            ConfigEntry(setting, value, incremental_operation=AlterConfigOpType[operation])
            for setting, (operation, value) in changes.items()
        ]
        resource = ConfigResource(kind, name, incremental_configs=entries)
        _only(self._client.incremental_alter_configs([resource], validate_only=validate_only))

    def replace_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = ConfigResource(ResourceType.TOPIC, topic, set_config=dict(configs))
        with pytest.deprecated_call():
            futures = self._client.alter_configs([resource])
        _only(futures)

    def offset(self, topic: str, partition: int, of: str | int) -> Position:
        spec = _SPECS[of] if isinstance(of, str) else OffsetSpec.for_timestamp(of)
        found = _only(self._client.list_offsets({TopicPartition(topic, partition): spec}))
        return Position(found.offset, found.timestamp)

    def delete_records(self, topic: str, partition: int, before_offset: int) -> int:
        return int(
            _only(
                self._client.delete_records([TopicPartition(topic, partition, before_offset)])
            ).low_watermark
        )

    def cluster(self) -> ClusterView:
        found = self._client.describe_cluster(request_timeout=_TIMEOUT_S).result(_TIMEOUT_S)
        return ClusterView(
            cluster_id=found.cluster_id,
            controller=found.controller.id,
            brokers={node.id: f"{node.host}:{node.port}" for node in found.nodes},
        )

    def close(self) -> None:
        """The C client goes with its last reference."""
