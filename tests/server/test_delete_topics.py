"""DeleteTopics: topics go by name or by id, and what waits on them fails at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from calls import append, at, batch_of, create_topic, describe_topic, fetch_request, produce, topic_id_of
from ottla.model.errors import ErrorCode
from ottla.model.topics import NO_TOPIC_ID, TopicId
from ottla.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from ottla.testing import BrokerProcess
from wire import WireClient


def delete(client: WireClient, *targets: str | TopicId, version: int = 6) -> list[DeletableTopicResult]:
    if version < 6:
        request = DeleteTopicsRequest(topic_names=[str(target) for target in targets])
    else:
        states = [
            DeleteTopicState(target) if isinstance(target, str) else DeleteTopicState(None, target)
            for target in targets
        ]
        request = DeleteTopicsRequest(topics=states)
    return list(client.call(request, version).responses)


@pytest.mark.parametrize("version", range(1, 7))
def test_every_version_deletes_by_name(client: WireClient, version: int) -> None:
    name = create_topic(client, partitions=2)
    topic_id = topic_id_of(client, name)
    append(client, name, b"v")
    (result,) = delete(client, name, version=version)
    assert (result.error_code, result.name, result.error_message) == (ErrorCode.NONE, name, None)
    assert result.topic_id == (topic_id if version >= 6 else NO_TOPIC_ID)
    assert describe_topic(client, name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(client, name, batch_of(b"v")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_by_id(client: WireClient) -> None:
    name = create_topic(client)
    topic_id = topic_id_of(client, name)
    (result,) = delete(client, topic_id)
    assert (result.error_code, result.name, result.topic_id) == (ErrorCode.NONE, name, topic_id)
    (result,) = delete(client, topic_id)
    assert (result.error_code, result.name, result.topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id)


@pytest.mark.parametrize("version", range(1, 7))
def test_a_topic_that_is_not_there(client: WireClient, version: int) -> None:
    (result,) = delete(client, "nowhere", version=version)
    assert (result.error_code, result.name) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "nowhere")
    assert bool(result.error_message) == (version >= 5)


def test_each_topic_succeeds_or_fails_by_itself(client: WireClient) -> None:
    first, second = create_topic(client), create_topic(client)
    results = delete(client, first, "nowhere", topic_id_of(client, second))
    assert {result.name: ErrorCode(result.error_code) for result in results} == {
        first: ErrorCode.NONE,
        "nowhere": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        second: ErrorCode.NONE,
    }


def test_a_topic_named_twice_stays(client: WireClient) -> None:
    name = create_topic(client)
    for targets in ((name, name), (name, topic_id_of(client, name))):
        assert {result.error_code for result in delete(client, *targets)} == {ErrorCode.INVALID_REQUEST}
    assert describe_topic(client, name).error_code == ErrorCode.NONE


def test_neither_name_nor_id_and_both_of_them_are_refused(client: WireClient) -> None:
    name = create_topic(client)
    states = [DeleteTopicState(None, NO_TOPIC_ID), DeleteTopicState(name, topic_id_of(client, name))]
    results = client.call(DeleteTopicsRequest(topics=states), 6).responses
    assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST] * 2
    assert describe_topic(client, name).error_code == ErrorCode.NONE


def test_what_waits_on_a_partition_fails_at_once(client: WireClient, reader: WireClient) -> None:
    name = create_topic(client, partitions=3)
    partitions = [at(0, partition) for partition in range(3)]
    reader.send(fetch_request(name, *partitions, max_wait_ms=600_000), 12)
    assert reader.is_silent(0.05)
    delete(client, name)
    codes = {data.error_code for topic in reader.receive().responses for data in topic.partitions}
    assert codes == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_an_empty_request(client: WireClient) -> None:
    assert delete(client) == []


@pytest.fixture(scope="module")
def keeping() -> Iterator[BrokerProcess]:
    with BrokerProcess(settings={"delete.topic.enable": "false"}) as broker:
        yield broker


@pytest.mark.parametrize("version", range(1, 7))
def test_a_broker_that_deletes_no_topics(keeping: BrokerProcess, version: int) -> None:
    with WireClient(keeping.bootstrap) as client:
        name = create_topic(client)
        (result,) = delete(client, name, version=version)
        assert result.error_code == ErrorCode.TOPIC_DELETION_DISABLED
        assert describe_topic(client, name).error_code == ErrorCode.NONE
