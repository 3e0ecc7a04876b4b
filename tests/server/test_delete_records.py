"""DeleteRecords: the log's start moves up, never down, and never past what readers may see."""

from __future__ import annotations

import pytest

from calls import EARLIEST, append, at, batch_of, create_topic, fetch, list_offset, produce, values_in
from in_process import running_broker
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from transaction_calls import Producer
from wire import WireClient


def trim(
    client: WireClient, topic: str, offset: int, partition: int = 0, version: int = 2
) -> DeleteRecordsPartitionResult:
    asked = DeleteRecordsTopic(topic, [DeleteRecordsPartition(partition, offset)])
    (result,) = client.call(DeleteRecordsRequest([asked], 1_000), version).topics[0].partitions
    assert isinstance(result, DeleteRecordsPartitionResult)
    return result


@pytest.fixture
def topic(client: WireClient) -> str:
    name = create_topic(client)
    for number in range(5):
        append(client, name, b"%d" % number)
    return name


@pytest.mark.parametrize("version", range(3))
def test_every_version_moves_the_start(client: WireClient, topic: str, version: int) -> None:
    result = trim(client, topic, 2, version=version)
    assert (result.error_code, result.low_watermark) == (ErrorCode.NONE, 2)
    assert list_offset(client, topic, EARLIEST).offset == 2
    (data,) = fetch(client, topic, at(2))
    assert (values_in(data), data.log_start_offset) == ([b"2", b"3", b"4"], 2)
    assert produce(client, topic, batch_of(b"v")).log_start_offset == 2


def test_minus_1_trims_everything_readers_may_see(client: WireClient, topic: str) -> None:
    assert trim(client, topic, -1).low_watermark == 5
    assert append(client, topic, b"next") == 5


def test_minus_1_counts_what_was_just_written(client: WireClient) -> None:
    topic = create_topic(client)
    for number in range(20):
        produce(client, topic, batch_of(b"v"), acks=1)
        assert trim(client, topic, -1).low_watermark == number + 1


def test_the_start_does_not_go_back(client: WireClient, topic: str) -> None:
    trim(client, topic, 3)
    result = trim(client, topic, 1)
    assert (result.error_code, result.low_watermark) == (ErrorCode.NONE, 3)


def test_within_a_batch(client: WireClient) -> None:
    topic = create_topic(client)
    append(client, topic, b"a", b"b", b"c")
    assert trim(client, topic, 1).low_watermark == 1
    (data,) = fetch(client, topic, at(0))
    assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    (data,) = fetch(client, topic, at(1))
    assert data.error_code == ErrorCode.NONE


def test_the_records_of_an_open_transaction_can_go_and_it_ends_as_any_other(client: WireClient) -> None:
    topic = create_topic(client)
    append(client, topic, b"before")
    producer = Producer(client)
    producer.send(topic, b"open")
    assert trim(client, topic, -1).low_watermark == 2
    assert stable_offsets(client, topic) == (2, 2, 2)
    assert producer.end().error_code == ErrorCode.NONE
    assert stable_offsets(client, topic) == (2, 3, 3)


def stable_offsets(client: WireClient, topic: str) -> tuple[int, int, int]:
    (data,) = fetch(client, topic, at(2))
    return data.log_start_offset, data.last_stable_offset, data.high_watermark


@pytest.mark.parametrize("offset", [6, 2**62, -2])
def test_offsets_that_cannot_be_trimmed_to(client: WireClient, topic: str, offset: int) -> None:
    result = trim(client, topic, offset)
    assert (result.error_code, result.low_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert list_offset(client, topic, EARLIEST).offset == 0


@pytest.mark.parametrize(
    ("policy", "code"),
    [
        ("compact", ErrorCode.POLICY_VIOLATION),
        ("compact,delete", ErrorCode.NONE),
        ("delete", ErrorCode.NONE),
        ("", ErrorCode.NONE),
    ],
)
def test_topics_that_are_only_compacted_are_refused(client: WireClient, policy: str, code: ErrorCode) -> None:
    topic = create_topic(client, configs={"cleanup.policy": policy})
    append(client, topic, b"v")
    assert trim(client, topic, 1).error_code == code


def test_topics_and_partitions_that_are_not_there(client: WireClient, topic: str) -> None:
    assert trim(client, "nowhere", 0).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert trim(client, topic, 0, partition=1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_named_twice(client: WireClient, topic: str) -> None:
    partitions = [DeleteRecordsPartition(0, 2), DeleteRecordsPartition(0, 1)]
    response = client.call(DeleteRecordsRequest([DeleteRecordsTopic(topic, partitions)], 1_000), 2)
    assert [result.low_watermark for result in response.topics[0].partitions] == [2, 2]


def test_the_start_is_kept_over_a_restart(tmp_path_factory: pytest.TempPathFactory) -> None:
    data_dir = tmp_path_factory.mktemp("data")
    with running_broker(data_dir) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client)
        append(client, topic, b"a", b"b", b"c")
        trim(client, topic, 2)
    with running_broker(data_dir) as running, WireClient(running.bootstrap) as client:
        assert list_offset(client, topic, EARLIEST).offset == 2
