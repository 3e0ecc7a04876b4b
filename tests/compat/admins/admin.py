"""The one face that the tests see of the stock admin clients, with the broker's error codes made equal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import pytest

from ottla.model.errors import ErrorCode

EARLIEST = "earliest"
LATEST = "latest"
MAX_TIMESTAMP = "max timestamp"

# What a topic's setting comes from, by the protocol's numbers.
FROM_TOPIC = 1
FROM_BROKER = 2
FROM_STATIC = 4
FROM_DEFAULT = 5


class Refusal(Exception):
    """The broker answered with an error code."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{ErrorCode(code).name}: {text}")
        self.code = ErrorCode(code)


def refusal_of(call: Callable[[], object]) -> ErrorCode:
    """The code with which the broker refuses the call; fails when it does not."""
    with pytest.raises(Refusal) as caught:
        call()
    return caught.value.code


@dataclass(frozen=True, slots=True)
class ConfigValue:
    value: str | None
    source: int
    read_only: bool


@dataclass(frozen=True, slots=True)
class TopicView:
    topic_id: str
    # Broker ids of the replicas, by partition.
    replicas: dict[int, list[int]]
    leaders: dict[int, int]


@dataclass(frozen=True, slots=True)
class ClusterView:
    cluster_id: str
    controller: int
    # "host:port" by broker id.
    brokers: dict[int, str]


@dataclass(frozen=True, slots=True)
class Position:
    """An offset with the timestamp of the record there; -1 for either one means that there is none."""

    offset: int
    timestamp_ms: int


class Admin(Protocol):
    name: str

    def create_topic(
        self,
        topic: str,
        partitions: int = -1,
        configs: Mapping[str, str] | None = None,
        *,
        replication_factor: int = -1,
        assignment: list[list[int]] | None = None,
        validate_only: bool = False,
    ) -> None: ...

    def delete_topic(self, topic: str) -> None: ...

    def topics(self) -> set[str]: ...

    def describe_topic(self, topic: str) -> TopicView: ...

    def grow_topic(self, topic: str, partitions: int, *, validate_only: bool = False) -> None: ...

    def topic_configs(self, topic: str) -> dict[str, ConfigValue]: ...

    def broker_configs(self, broker: int) -> dict[str, ConfigValue]: ...

    def change_topic_configs(
        self, topic: str, changes: Mapping[str, tuple[str, str | None]], *, validate_only: bool = False
    ) -> None:
        """Changes are (SET | DELETE | APPEND | SUBTRACT, value) by name; all others stay."""

    def change_broker_configs(self, broker: int, changes: Mapping[str, tuple[str, str | None]]) -> None: ...

    def replace_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        """The old AlterConfigs: what is not named goes back to its default."""

    def offset(self, topic: str, partition: int, of: str | int) -> Position:
        """EARLIEST, LATEST, MAX_TIMESTAMP or the first record at or after a timestamp."""

    def delete_records(self, topic: str, partition: int, before_offset: int) -> int:
        """Returns the new first offset; -1 deletes everything up to the high watermark."""

    def cluster(self) -> ClusterView: ...

    def close(self) -> None: ...
