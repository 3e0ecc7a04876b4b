"""Metadata: brokers, topics and leaders, and topics that come into being by being asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from calls import create_topic, delete_topic, describe_topic, topic_id_of, unique_name
from group_calls import find_coordinator
from ottla.model.errors import ErrorCode
from ottla.model.topics import NO_TOPIC_ID, TopicId
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.testing import BrokerProcess
from wire import WireClient

NOT_ASKED = -(2**31)


def ask(client: WireClient, version: int, *names: str | None, **rest: bool) -> MetadataResponse:
    topics = [MetadataRequestTopic(name=name) for name in names]
    response = client.call(MetadataRequest(topics, **rest), version)
    assert isinstance(response, MetadataResponse)
    return response


@pytest.mark.parametrize("version", range(14))
def test_every_version_tells_brokers_topics_and_leaders(
    broker: BrokerProcess, client: WireClient, version: int
) -> None:
    name = create_topic(client, partitions=3)
    response = ask(client, version, name)
    (node,) = response.brokers
    assert (node.node_id, f"{node.host}:{node.port}", node.rack) == (1, broker.bootstrap, None)
    assert bool(response.cluster_id) == (version >= 2)
    assert response.controller_id == (1 if version >= 1 else -1)
    (topic,) = response.topics
    assert (topic.error_code, topic.name, topic.is_internal) == (ErrorCode.NONE, name, False)
    assert topic.topic_id == (topic_id_of(client, name) if version >= 10 else NO_TOPIC_ID)
    assert [
        (each.error_code, each.partition_index, each.leader_id, each.replica_nodes, each.isr_nodes)
        for each in topic.partitions
    ] == [(ErrorCode.NONE, index, 1, (1,), (1,)) for index in range(3)]
    assert {each.leader_epoch for each in topic.partitions} == {0 if version >= 7 else -1}
    assert topic.topic_authorized_operations == NOT_ASKED
    assert response.cluster_authorized_operations == NOT_ASKED


@pytest.mark.parametrize("version", range(14))
def test_all_topics(client: WireClient, version: int) -> None:
    names = {create_topic(client), create_topic(client)}
    everything = MetadataRequest(() if version == 0 else None)
    assert names <= {topic.name for topic in client.call(everything, version).topics}


@pytest.mark.parametrize("version", range(1, 14))
def test_an_empty_list_is_no_topic(client: WireClient, version: int) -> None:
    assert client.call(MetadataRequest([]), version).topics == ()


@pytest.mark.parametrize("version", range(14))
def test_a_missing_topic_is_made_if_both_sides_allow_it(client: WireClient, version: int) -> None:
    name = unique_name("made")
    (topic,) = ask(client, version, name, allow_auto_topic_creation=True).topics
    assert (topic.error_code, topic.name, len(topic.partitions)) == (ErrorCode.NONE, name, 1)
    assert topic.partitions[0].leader_id == 1
    assert describe_topic(client, name).error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", range(4, 14))
def test_a_missing_topic_is_not_made_if_the_client_forbids_it(client: WireClient, version: int) -> None:
    name = unique_name("unwanted")
    for _ in range(2):
        (topic,) = ask(client, version, name, allow_auto_topic_creation=False).topics
        assert (topic.error_code, topic.name) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name)
        assert topic.partitions == ()


@pytest.mark.parametrize("version", [0, 4, 9, 13])
@pytest.mark.parametrize("name", ["a/b", "..", "x" * 250, "colon:", ""])
def test_names_that_cannot_be_are_refused_and_not_made(client: WireClient, version: int, name: str) -> None:
    (topic,) = ask(client, version, name).topics
    assert (topic.error_code, topic.name) == (ErrorCode.INVALID_TOPIC_EXCEPTION, name)


@pytest.mark.parametrize("version", [0, 4, 9, 13])
def test_a_name_that_collides_with_another_is_refused_and_not_made(client: WireClient, version: int) -> None:
    name = unique_name("co.llide")
    create_topic(client, name)
    (topic,) = ask(client, version, name.replace(".", "_")).topics
    assert topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_several_clients_that_make_the_same_topic_all_get_it(broker: BrokerProcess) -> None:
    name = unique_name("wanted")
    clients = [WireClient(broker.bootstrap) for _ in range(10)]
    for client in clients:
        client.send(MetadataRequest([MetadataRequestTopic(name=name)]), 12)
    topics = [client.receive().topics[0] for client in clients]
    for client in clients:
        client.close()
    codes = {ErrorCode(topic.error_code) for topic in topics}
    assert codes == {ErrorCode.NONE}
    assert len({topic.topic_id for topic in topics}) == 1


def test_one_request_can_mix_topics_that_are_there_missing_and_impossible(client: WireClient) -> None:
    there, missing = create_topic(client), unique_name("missing")
    response = ask(client, 12, there, missing, "im/possible", there)
    assert [(topic.name, topic.error_code) for topic in response.topics] == [
        (there, ErrorCode.NONE),
        (missing, ErrorCode.NONE),
        ("im/possible", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]


@pytest.mark.parametrize("version", [12, 13])
def test_topics_by_id(client: WireClient, version: int) -> None:
    name = create_topic(client)
    topic_id = topic_id_of(client, name)
    request = MetadataRequest([MetadataRequestTopic(topic_id, None)])
    (topic,) = client.call(request, version).topics
    assert (topic.error_code, topic.name, topic.topic_id) == (ErrorCode.NONE, name, topic_id)
    delete_topic(client, name)
    (topic,) = client.call(request, version).topics
    assert (topic.error_code, topic.name, topic.topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id)


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize(
    "asked", [MetadataRequestTopic(TopicId(b"\x05" * 16), None), MetadataRequestTopic(name=None)]
)
def test_ids_before_version_12_are_refused_with_an_answer(
    client: WireClient, version: int, asked: MetadataRequestTopic
) -> None:
    (topic,) = client.call(MetadataRequest([asked]), version).topics
    assert (topic.error_code, topic.name) == (ErrorCode.INVALID_REQUEST, "")
    assert topic.partitions == ()


@pytest.mark.parametrize("version", [12, 13])
def test_neither_name_nor_id_or_both_are_refused_with_an_answer(client: WireClient, version: int) -> None:
    name = create_topic(client)
    both = MetadataRequestTopic(topic_id_of(client, name), name)
    neither = MetadataRequestTopic(NO_TOPIC_ID, None)
    topics = client.call(MetadataRequest([both, neither]), version).topics
    assert all(topic.error_code != ErrorCode.NONE for topic in topics)


@pytest.mark.parametrize("version", range(8, 14))
def test_authorized_operations_are_told_to_those_who_ask(client: WireClient, version: int) -> None:
    name = create_topic(client)
    response = ask(
        client,
        version,
        name,
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=version <= 10,
    )
    assert response.topics[0].topic_authorized_operations == sum(
        1 << bit for bit in (3, 4, 5, 6, 7, 8, 10, 11)
    )
    cluster = sum(1 << bit for bit in (5, 7, 8, 9, 10, 11, 12))
    assert response.cluster_authorized_operations == (cluster if version <= 10 else NOT_ASKED)


def test_internal_topics_are_marked(client: WireClient) -> None:
    find_coordinator(client, "a group, which makes the topic")
    (topic,) = ask(client, 12, "__consumer_offsets").topics
    assert (topic.error_code, topic.is_internal) == (ErrorCode.NONE, True)


def test_requests_with_bytes_behind_them_are_answered(client: WireClient) -> None:
    """librdkafka's Metadata 13 has some."""
    frame = client.frame(MetadataRequest([]), 13)
    body = frame[4:] + b"\0"
    client.send_frame(body)
    assert client.receive().brokers


@pytest.fixture(scope="module")
def strict() -> Iterator[BrokerProcess]:
    settings = {"auto.create.topics.enable": "false", "broker.rack": "r1", "node.id": "5"}
    with BrokerProcess(settings=settings) as broker:
        yield broker


@pytest.mark.parametrize("version", [0, 4, 13])
def test_a_broker_that_makes_no_topics_by_itself(strict: BrokerProcess, version: int) -> None:
    name = unique_name("never")
    with WireClient(strict.bootstrap) as client:
        response = ask(client, version, name, allow_auto_topic_creation=True)
        assert response.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert (response.brokers[0].node_id, response.brokers[0].rack) == (5, "r1" if version else None)
        assert ask(client, version, name).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
