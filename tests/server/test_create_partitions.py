"""CreatePartitions: topics grow and never shrink."""

from __future__ import annotations

import pytest

from calls import append, create_topic, describe_topic, end_offset
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from wire import WireClient


def grow(
    client: WireClient, *topics: CreatePartitionsTopic, version: int = 3, validate_only: bool = False
) -> list[CreatePartitionsTopicResult]:
    return list(client.call(CreatePartitionsRequest(topics, 1_000, validate_only), version).results)


def partition_count(client: WireClient, topic: str) -> int:
    return len(describe_topic(client, topic).partitions)


@pytest.mark.parametrize("version", range(4))
def test_every_version_adds_partitions_that_can_be_used_at_once(client: WireClient, version: int) -> None:
    topic = create_topic(client)
    append(client, topic, b"v")
    (result,) = grow(client, CreatePartitionsTopic(topic, 4), version=version)
    assert (result.name, result.error_code, result.error_message) == (topic, ErrorCode.NONE, None)
    assert partition_count(client, topic) == 4
    assert append(client, topic, b"w", partition=3) == 0
    assert end_offset(client, topic, 0) == 1


@pytest.mark.parametrize("version", range(4))
def test_validation_changes_nothing(client: WireClient, version: int) -> None:
    topic = create_topic(client)
    (result,) = grow(client, CreatePartitionsTopic(topic, 4), version=version, validate_only=True)
    assert result.error_code == ErrorCode.NONE
    assert partition_count(client, topic) == 1


@pytest.mark.parametrize("count", [-1, 0, 1, 2])
def test_not_an_increase(client: WireClient, count: int) -> None:
    topic = create_topic(client, partitions=2)
    (result,) = grow(client, CreatePartitionsTopic(topic, count))
    assert result.error_code == ErrorCode.INVALID_PARTITIONS
    assert result.error_message


@pytest.mark.parametrize(
    ("brokers", "code"),
    [
        ([[1], [1]], ErrorCode.NONE),
        ([[1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([[1], [9]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([[1], [1, 1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([[1], []], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_replicas_assigned_by_hand(client: WireClient, brokers: list[list[int]], code: ErrorCode) -> None:
    topic = create_topic(client)
    assignments = [CreatePartitionsAssignment(each) for each in brokers]
    (result,) = grow(client, CreatePartitionsTopic(topic, 3, assignments))
    assert ErrorCode(result.error_code) == code
    assert partition_count(client, topic) == (3 if code == ErrorCode.NONE else 1)


def test_each_topic_succeeds_or_fails_by_itself(client: WireClient) -> None:
    topic, twice = create_topic(client), create_topic(client)
    results = grow(
        client,
        CreatePartitionsTopic("nowhere", 4),
        CreatePartitionsTopic(topic, 4),
        CreatePartitionsTopic(twice, 4),
        CreatePartitionsTopic(twice, 5),
    )
    assert {result.name: ErrorCode(result.error_code) for result in results} == {
        "nowhere": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        topic: ErrorCode.NONE,
        twice: ErrorCode.INVALID_REQUEST,
    }
    assert (partition_count(client, topic), partition_count(client, twice)) == (4, 1)
