"""CreateTopics: each topic of a request is made whole and usable, or refused with its reason."""

from __future__ import annotations

import pytest

from calls import append, describe_topic, end_offset, topic_id_of, unique_name
from ottla.model.errors import ErrorCode
from ottla.model.limits import TOPICS_PER_CHANGE_MAX
from ottla.model.topics import NO_TOPIC_ID
from ottla.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from wire import WireClient


def create(
    client: WireClient, *topics: CreatableTopic, version: int = 7, validate_only: bool = False
) -> list[CreatableTopicResult]:
    request = CreateTopicsRequest(topics, validate_only=validate_only)
    return list(client.call(request, version).topics)


def exists(client: WireClient, name: str) -> bool:
    return describe_topic(client, name).error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", range(2, 8))
def test_every_version_makes_a_topic_that_can_be_used_at_once(client: WireClient, version: int) -> None:
    name = unique_name()
    config = CreatableTopicConfig("retention.ms", "1234567")
    (result,) = create(client, CreatableTopic(name, 3, 1, configs=[config]), version=version)
    assert (result.name, result.error_code) == (name, ErrorCode.NONE)
    assert result.error_message is None
    for partition in range(3):
        assert append(client, name, b"v", partition=partition) == 0
    assert (result.num_partitions, result.replication_factor) == ((3, 1) if version >= 5 else (-1, -1))
    assert result.topic_id == (topic_id_of(client, name) if version >= 7 else NO_TOPIC_ID)
    if version >= 5:
        told = {config.name: (config.value, config.config_source) for config in result.configs or ()}
        assert told["retention.ms"] == ("1234567", 1)  # the topic's own
        assert told["cleanup.policy"] == ("delete", 5)  # the default
        assert result.topic_config_error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", range(2, 8))
def test_the_broker_chooses_what_is_left_to_it(client: WireClient, version: int) -> None:
    name = unique_name()
    (result,) = create(client, CreatableTopic(name, -1, -1), version=version)
    assert result.error_code == ErrorCode.NONE
    assert len(describe_topic(client, name).partitions) == 1


@pytest.mark.parametrize("version", range(2, 8))
def test_replicas_assigned_by_hand(client: WireClient, version: int) -> None:
    name = unique_name()
    assignments = [CreatableReplicaAssignment(index, [1]) for index in (1, 0)]
    (result,) = create(client, CreatableTopic(name, -1, -1, assignments), version=version)
    assert result.error_code == ErrorCode.NONE
    assert len(describe_topic(client, name).partitions) == 2


@pytest.mark.parametrize("version", range(2, 8))
def test_validation_makes_nothing(client: WireClient, version: int) -> None:
    name = unique_name()
    good, bad = create(
        client, CreatableTopic(name, 2, 1), CreatableTopic("b/d", 2, 1), version=version, validate_only=True
    )
    assert (good.error_code, bad.error_code) == (ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION)
    assert good.num_partitions == (2 if version >= 5 else -1)
    assert good.topic_id == NO_TOPIC_ID
    assert not exists(client, name)


REFUSED = {
    "no partitions": (CreatableTopic("", 0, 1), ErrorCode.INVALID_PARTITIONS),
    "fewer than none": (CreatableTopic("", -2, 1), ErrorCode.INVALID_PARTITIONS),
    "too many partitions": (CreatableTopic("", 2**31 - 1, 1), ErrorCode.INVALID_PARTITIONS),
    "no replicas": (CreatableTopic("", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
    "more replicas than brokers": (CreatableTopic("", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR),
    "both counts and assignments": (
        CreatableTopic("", 1, 1, [CreatableReplicaAssignment(0, [1])]),
        ErrorCode.INVALID_REQUEST,
    ),
    "a broker that is not there": (
        CreatableTopic("", -1, -1, [CreatableReplicaAssignment(0, [7])]),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    ),
    "a gap in the assignments": (
        CreatableTopic("", -1, -1, [CreatableReplicaAssignment(1, [1])]),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    ),
    "a setting that is none": (
        CreatableTopic("", 1, 1, (), [CreatableTopicConfig("no.such", "1")]),
        ErrorCode.INVALID_CONFIG,
    ),
    "a value that is not valid": (
        CreatableTopic("", 1, 1, (), [CreatableTopicConfig("retention.ms", "long")]),
        ErrorCode.INVALID_CONFIG,
    ),
    "no value": (
        CreatableTopic("", 1, 1, (), [CreatableTopicConfig("retention.ms", None)]),
        ErrorCode.INVALID_CONFIG,
    ),
}


@pytest.mark.parametrize("what", list(REFUSED))
def test_what_cannot_be_is_refused_with_its_reason(client: WireClient, what: str) -> None:
    spec, code = REFUSED[what]
    name = unique_name()
    topic = CreatableTopic(name, spec.num_partitions, spec.replication_factor, spec.assignments, spec.configs)
    (result,) = create(client, topic)
    assert ErrorCode(result.error_code) == code
    assert result.error_message
    assert (result.configs, result.num_partitions) == (None, -1)
    assert not exists(client, name)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "x" * 250, "ä", "__cluster_metadata"])
def test_names_that_cannot_be(client: WireClient, name: str) -> None:
    (result,) = create(client, CreatableTopic(name, 1, 1))
    assert result.error_code in (ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.INVALID_REQUEST)


def test_the_longest_name_can_be_used(client: WireClient) -> None:
    name = unique_name("n").ljust(249, "x")
    (result,) = create(client, CreatableTopic(name, 1, 1))
    assert result.error_code == ErrorCode.NONE
    assert append(client, name, b"v") == 0


def test_a_topic_that_exists(client: WireClient) -> None:
    name = unique_name()
    create(client, CreatableTopic(name, 1, 1))
    append(client, name, b"v")
    (result,) = create(client, CreatableTopic(name, 5, 1))
    assert result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert end_offset(client, name) == 1


def test_names_that_differ_only_in_dots_and_underscores(client: WireClient) -> None:
    name = unique_name("a.b_c")
    create(client, CreatableTopic(name, 1, 1))
    (result,) = create(client, CreatableTopic(name.replace(".", "_"), 1, 1))
    assert result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert name in (result.error_message or "")


def test_a_name_twice_in_one_request_is_refused_and_others_are_made(client: WireClient) -> None:
    twice, once = unique_name(), unique_name()
    results = create(
        client, CreatableTopic(twice, 1, 1), CreatableTopic(once, 1, 1), CreatableTopic(twice, 2, 1)
    )
    assert {result.name: ErrorCode(result.error_code) for result in results} == {
        twice: ErrorCode.INVALID_REQUEST,
        once: ErrorCode.NONE,
    }
    assert not exists(client, twice)
    assert exists(client, once)


def test_requests_in_one_piece_for_the_same_name_make_one_topic(client: WireClient) -> None:
    name = unique_name()
    request = CreateTopicsRequest([CreatableTopic(name, 1, 1)])
    client.send_together(*((request, 7) for _ in range(5)))
    codes = [client.receive().topics[0].error_code for _ in range(5)]
    assert codes == [ErrorCode.NONE] + [ErrorCode.TOPIC_ALREADY_EXISTS] * 4


def test_many_topics_in_one_request(client: WireClient) -> None:
    names = [unique_name() for _ in range(50)]
    results = create(client, *(CreatableTopic(name, 2, 1) for name in names))
    assert [(result.name, result.error_code) for result in results] == [
        (name, ErrorCode.NONE) for name in names
    ]


def test_an_empty_request(client: WireClient) -> None:
    assert create(client) == []


def test_more_topics_than_one_request_may_make_are_refused_and_none_is_made(client: WireClient) -> None:
    names = [unique_name() for _ in range(TOPICS_PER_CHANGE_MAX + 1)]
    results = create(client, *(CreatableTopic(name, 1, 1) for name in names))
    assert {result.error_code for result in results} == {ErrorCode.POLICY_VIOLATION}
    assert f"at most {TOPICS_PER_CHANGE_MAX}" in (results[0].error_message or "")
    assert not exists(client, names[0])
