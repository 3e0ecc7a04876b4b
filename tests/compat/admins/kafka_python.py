"""kafka-python's KafkaAdminClient."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

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
from compat.clients.kafka_package import ConfigResource, KafkaAdminClient, OffsetSpec, TopicPartition, errors

_SPECS = {
    EARLIEST: OffsetSpec.EARLIEST,
    LATEST: OffsetSpec.LATEST,
    MAX_TIMESTAMP: OffsetSpec.MAX_TIMESTAMP,
}
_SOURCES = {
    "DYNAMIC_TOPIC_CONFIG": 1,
    "DYNAMIC_BROKER_CONFIG": 2,
    "DYNAMIC_DEFAULT_BROKER_CONFIG": 3,
    "STATIC_BROKER_CONFIG": 4,
    "DEFAULT_CONFIG": 5,
}


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except errors.BrokerResponseError as failure:
        raise Refusal(failure.errno, str(failure)) from failure


def _check_altered(answer: dict[str, dict[str, str]]) -> None:
    """Config changes answer with a text per resource instead of raising."""
    [[text]] = [list(resources.values()) for resources in answer.values()]
    if text != "OK":
        number = re.match(r"\[Error (-?\d+)\]", text)
        assert number, f"kafka-python answered {text!r}"
        raise Refusal(int(number[1]), text)


class KafkaPythonAdmin:
    name = "kafka-python"

    def __init__(self, bootstrap: str) -> None:
        self._client = KafkaAdminClient(bootstrap_servers=bootstrap)

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
        options: dict[str, Any] = {
            "num_partitions": -1 if assignment else partitions,
            "replication_factor": -1 if assignment else replication_factor,
            "configs": dict(configs or {}),
            "assignments": dict(enumerate(assignment or [])),
        }
        with _refusals():
            self._client.create_topics({topic: options}, validate_only=validate_only)

    def delete_topic(self, topic: str) -> None:
        with _refusals():
            self._client.delete_topics([topic])

    def topics(self) -> set[str]:
        return set(self._client.list_topics())

    def describe_topic(self, topic: str) -> TopicView:
        [found] = self._client.describe_topics([topic])
        if found["error_code"]:
            raise Refusal(found["error_code"], f"describing {topic}")
        return TopicView(
            topic_id=str(found["topic_id"]),
            replicas={p["partition_index"]: list(p["replica_nodes"]) for p in found["partitions"]},
            leaders={p["partition_index"]: p["leader_id"] for p in found["partitions"]},
        )

    def grow_topic(self, topic: str, partitions: int, *, validate_only: bool = False) -> None:
        with _refusals():
            self._client.create_partitions({topic: partitions}, validate_only=validate_only)

    def topic_configs(self, topic: str) -> dict[str, ConfigValue]:
        return self._configs("topic", topic)

    def broker_configs(self, broker: int) -> dict[str, ConfigValue]:
        return self._configs("broker", str(broker))

    def _configs(self, kind: str, name: str) -> dict[str, ConfigValue]:
        answer = self._client.describe_configs([ConfigResource(kind, name)], config_filter="all")
        return {
            setting: ConfigValue(entry["value"], _SOURCES[entry["config_source"]], entry["read_only"])
            for setting, entry in answer[kind][name].items()
        }

    def change_topic_configs(
        self, topic: str, changes: Mapping[str, tuple[str, str | None]], *, validate_only: bool = False
    ) -> None:
        self._alter("topic", topic, dict(changes), incremental=True, validate_only=validate_only)

    def change_broker_configs(self, broker: int, changes: Mapping[str, tuple[str, str | None]]) -> None:
        self._alter("broker", str(broker), dict(changes), incremental=True)

    def replace_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        self._alter("topic", topic, dict(configs), incremental=False)

    def _alter(
        self, kind: str, name: str, configs: dict[str, Any], *, incremental: bool, validate_only: bool = False
    ) -> None:
        answer = self._client.alter_configs(
            [ConfigResource(kind, name, configs)],
            validate_only=validate_only,
            raise_on_unknown=False,
            incremental=incremental,
        )
        _check_altered(answer)

    def offset(self, topic: str, partition: int, of: str | int) -> Position:
        spec = _SPECS[of] if isinstance(of, str) else of
        place = TopicPartition(topic, partition)
        with _refusals():
            found = self._client.list_partition_offsets({place: spec})[place]
        return Position(found.offset, found.timestamp)

    def delete_records(self, topic: str, partition: int, before_offset: int) -> int:
        place = TopicPartition(topic, partition)
        with _refusals():
            return int(self._client.delete_records({place: before_offset})[place]["low_watermark"])

    def cluster(self) -> ClusterView:
        found = self._client.describe_cluster()
        return ClusterView(
            cluster_id=found["cluster_id"],
            controller=found["controller_id"],
            brokers={node["broker_id"]: f"{node['host']}:{node['port']}" for node in found["brokers"]},
        )

    def describe_by_partition(
        self, topic: str, partitions_max: int, cursor: dict[str, Any] | None
    ) -> dict[str, Any]:
        """DescribeTopicPartitions, a page at a time; no other Python client asks it."""
        answer: dict[str, Any] = self._client.describe_topic_partitions([topic], partitions_max, cursor)
        return answer

    def log_dirs(self, topic: str) -> list[dict[str, Any]]:
        """The log directories of all brokers, with the topic's partitions in them."""
        answer = self._client.describe_log_dirs([topic])
        return [directory for broker in answer for directory in broker["log_dirs"]]

    def config_resources(self, kind: str) -> set[str]:
        return set(self._client.list_config_resources([kind]).get(kind.lower(), ()))

    def close(self) -> None:
        self._client.close()
