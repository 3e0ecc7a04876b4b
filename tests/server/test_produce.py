"""Produce: every version writes what it was given, and answers when it is as safe as was asked for."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from calls import (
    LATEST,
    NEWEST_NAMED_PRODUCE,
    append,
    at,
    batch_of,
    batches_in,
    create_topic,
    delete_topic,
    end_offset,
    fetch,
    list_offset,
    produce,
    produce_request,
    topic_id_of,
    values_from,
)
from ottla.model.errors import ErrorCode
from ottla.model.topics import TopicId
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.produce import ProduceRequest
from ottla.records.batch import read_header
from ottla.testing import BrokerProcess
from wire import WireClient


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("version", range(3, 14))
def test_every_version_answers_with_the_offset(client: WireClient, version: int, acks: int) -> None:
    name = create_topic(client)
    topic = name if version < 13 else topic_id_of(client, name)
    first = produce(client, topic, batch_of(b"a", b"b"), acks=acks, version=version)
    second = produce(client, topic, batch_of(b"c"), acks=acks, version=version)
    assert (first.error_code, first.base_offset) == (0, 0)
    assert (second.error_code, second.base_offset) == (0, 2)
    assert second.log_append_time_ms == -1
    assert second.log_start_offset == (0 if version >= 5 else -1)
    assert second.error_message is None
    assert values_from(client, name) == [b"a", b"b", b"c"]


def test_a_batch_is_kept_byte_for_byte_behind_its_offset_and_epoch(client: WireClient) -> None:
    topic = create_topic(client)
    append(client, topic, b"before")
    batch = batch_of(b"a", b"b", codec=2)
    produce(client, topic, batch)
    (data,) = fetch(client, topic, at(1))
    (kept,) = batches_in(data)
    assert kept[16:] == batch[16:]
    assert read_header(kept).base_offset == 1
    assert read_header(kept).leader_epoch == 0


def test_acks_0_is_written_and_not_answered(client: WireClient) -> None:
    topic = create_topic(client)
    client.send_unanswered(produce_request(topic, batch_of(b"a"), acks=0), NEWEST_NAMED_PRODUCE)
    assert append(client, topic, b"b") == 1  # the next answer is that of the next request
    assert values_from(client, topic) == [b"a", b"b"]


def test_acks_0_that_is_refused_closes_the_connection(broker: BrokerProcess) -> None:
    with WireClient(broker.bootstrap) as client:
        client.send_unanswered(produce_request("nowhere", batch_of(b"a"), acks=0), NEWEST_NAMED_PRODUCE)
        assert client.is_closed_by_peer()
    assert "acks=0 was refused, UNKNOWN_TOPIC_OR_PARTITION" in broker.output()


def test_partitions_of_one_request_succeed_and_fail_by_themselves(client: WireClient) -> None:
    topic = create_topic(client, partitions=3)
    damaged = bytearray(batch_of(b"damaged"))
    damaged[-1] ^= 1
    request = produce_request(topic, batch_of(b"a"), bytes(damaged), batch_of(b"c"), batch_of(b"d"))
    (answered,) = client.call(request, NEWEST_NAMED_PRODUCE).responses
    assert [(part.index, part.error_code, part.base_offset) for part in answered.partition_responses] == [
        (0, ErrorCode.NONE, 0),
        (1, ErrorCode.CORRUPT_MESSAGE, -1),
        (2, ErrorCode.NONE, 0),
        (3, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
    ]
    assert "CRC" in answered.partition_responses[1].error_message
    assert [end_offset(client, topic, partition) for partition in range(3)] == [1, 0, 1]


def test_topics_of_one_request_are_answered_in_their_order(client: WireClient) -> None:
    names = [create_topic(client), "no-such-topic", create_topic(client)]
    data = [produce_request(name, batch_of(b"v")).topic_data[0] for name in names]
    response = client.call(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=data), 12)
    assert [answer.name for answer in response.responses] == names
    codes = [answer.partition_responses[0].error_code for answer in response.responses]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE]


@pytest.mark.parametrize("acks", [1, -1])
def test_requests_of_one_turn_to_one_partition_keep_their_order(client: WireClient, acks: int) -> None:
    topic = create_topic(client)
    values = [b"%d" % number for number in range(200)]
    client.send_together(*((produce_request(topic, batch_of(value), acks=acks), 9) for value in values))
    offsets = [client.receive().responses[0].partition_responses[0].base_offset for _ in values]
    assert offsets == list(range(200))
    assert values_from(client, topic) == values


def test_requests_of_several_connections_each_get_their_own_offset(
    connect: Callable[[], WireClient],
) -> None:
    clients = [connect() for _ in range(8)]
    topic = create_topic(clients[0])
    for number, client in enumerate(clients):
        client.send_together(
            *((produce_request(topic, batch_of(b"%d" % number)), 12) for _ in range(10)),
        )
    offsets: dict[int, int] = {}
    for number, client in enumerate(clients):
        for _ in range(10):
            offsets[client.receive().responses[0].partition_responses[0].base_offset] = number
    assert sorted(offsets) == list(range(80))
    assert values_from(clients[0], topic) == [b"%d" % offsets[offset] for offset in range(80)]


def test_requests_of_other_kinds_between_produces_are_answered_in_order(client: WireClient) -> None:
    topic = create_topic(client)
    client.send_together(
        (produce_request(topic, batch_of(b"a")), 12),
        (MetadataRequest([]), 12),
        (produce_request(topic, batch_of(b"b"), acks=1), 12),
    )
    assert client.receive().responses[0].partition_responses[0].base_offset == 0
    assert client.receive().brokers
    assert client.receive().responses[0].partition_responses[0].base_offset == 1


def test_a_request_without_topics_is_answered(client: WireClient) -> None:
    assert client.call(ProduceRequest(acks=-1), 12).responses == ()


def test_acks_1_then_latest_is_never_behind_the_write(client: WireClient) -> None:
    topic = create_topic(client)
    for number in range(50):
        produce(client, topic, batch_of(b"v"), acks=1)
        assert list_offset(client, topic, LATEST).offset == number + 1


def test_topic_id_of_a_deleted_topic_is_unknown_also_when_its_name_is_taken_again(client: WireClient) -> None:
    name = create_topic(client)
    old = topic_id_of(client, name)
    delete_topic(client, name)
    create_topic(client, name)
    assert topic_id_of(client, name) != old
    assert produce(client, old, batch_of(b"v")).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert end_offset(client, name) == 0


def test_known_topic_id_with_an_unknown_partition(client: WireClient) -> None:
    topic = topic_id_of(client, create_topic(client))
    answer = produce(client, topic, batch_of(b"v"), partition=1)
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_id_nobody_has_is_unknown(client: WireClient) -> None:
    answer = produce(client, TopicId(b"\x01" * 16), batch_of(b"v"))
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_log_append_time_is_told_and_stamped(client: WireClient) -> None:
    topic = create_topic(client, configs={"message.timestamp.type": "LogAppendTime"})
    answer = produce(client, topic, batch_of(b"a", b"b", timestamp=5))
    assert answer.log_append_time_ms > 1_700_000_000_000
    (data,) = fetch(client, topic, at(0))
    header = read_header(batches_in(data)[0])
    assert header.is_log_append_time
    assert header.max_timestamp == answer.log_append_time_ms
    assert values_from(client, topic) == [b"a", b"b"]  # whose checksum the reader has verified


@pytest.mark.parametrize("acks", [1, -1])
def test_without_syncing_on_every_write_acks_are_given_at_once(client: WireClient, acks: int) -> None:
    topic = create_topic(client, configs={"flush.messages": str(2**63 - 1)})
    for number in range(20):
        assert produce(client, topic, batch_of(b"v"), acks=acks).base_offset == number
    assert end_offset(client, topic) == 20


# -- versions 0 to 2 -----------------------------------------------------------------------------------------


def old_produce(version: int, acks: int, correlation_id: int = 77) -> bytes:
    """A request as clients of 2015 wrote it: two topics, with a message set that is not looked at."""
    message_set = bytes(30)
    out = struct.pack(">hhih", 0, version, correlation_id, 3) + b"old"
    out += struct.pack(">hii", acks, 1_000, 2)
    for topic, partitions in ((b"t1", (0, 1)), (b"t2", (7,))):
        out += struct.pack(">h", len(topic)) + topic + struct.pack(">i", len(partitions))
        for partition in partitions:
            out += struct.pack(">ii", partition, len(message_set)) + message_set
    return out


@pytest.mark.parametrize("version", [0, 1, 2])
def test_old_versions_are_refused_with_an_answer_in_their_own_format(
    client: WireClient, version: int
) -> None:
    client.send_frame(old_produce(version, acks=1))
    time = struct.pack(">q", -1) if version == 2 else b""
    refused = struct.pack(">hq", ErrorCode.UNSUPPORTED_VERSION, -1) + time
    expected = struct.pack(">ii", 77, 2)
    expected += struct.pack(">h", 2) + b"t1" + struct.pack(">i", 2)
    expected += struct.pack(">i", 0) + refused + struct.pack(">i", 1) + refused
    expected += struct.pack(">h", 2) + b"t2" + struct.pack(">i", 1) + struct.pack(">i", 7) + refused
    if version >= 1:
        expected += struct.pack(">i", 0)
    assert client.receive_frame() == expected
    create_topic(client)  # the connection can be used on


@pytest.mark.parametrize("version", [0, 1, 2])
def test_old_versions_with_acks_0_are_not_answered(client: WireClient, version: int) -> None:
    client.send_frame(old_produce(version, acks=0))
    create_topic(client)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_old_version_that_ends_early_closes_the_connection(client: WireClient, version: int) -> None:
    client.send_frame(old_produce(version, acks=1)[:-40])
    assert client.is_closed_by_peer()


def test_a_version_of_the_future_closes_the_connection(broker: BrokerProcess) -> None:
    with WireClient(broker.bootstrap) as client:
        client.send_frame(struct.pack(">hhih", 0, 14, 1, -1) + bytes(20))
        assert client.is_closed_by_peer()
    assert "Produce v14 is not spoken here, only 0 to 13" in broker.output()
