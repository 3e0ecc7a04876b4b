"""ListOffsets: the offset that belongs to a timestamp, or to one of the special ones."""

from __future__ import annotations

import pytest

from calls import EARLIEST, LATEST, append, batch_of, create_topic, list_offset, produce
from ottla.model.errors import ErrorCode
from ottla.model.offsets import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    MAX_TIMESTAMP,
)
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ottla.records.content import Record, build_batch
from wire import WireClient

T = 1_700_000_000_000


@pytest.fixture
def topic(client: WireClient) -> str:
    """Five records, a second apart, but for the middle one, which is the latest of all."""
    name = create_topic(client, configs={"retention.ms": "-1"})
    times = [T, T + 1_000, T + 9_000, T + 3_000, T + 4_000]
    produce(client, name, build_batch([Record(n, time, None, b"v") for n, time in enumerate(times[:3])]))
    produce(client, name, build_batch([Record(n, time, None, b"v") for n, time in enumerate(times[3:])]))
    return name


@pytest.mark.parametrize("version", range(1, 12))
def test_every_version_knows_the_ends_and_the_times_between(
    client: WireClient, topic: str, version: int
) -> None:
    epoch = 0 if version >= 4 else -1
    for timestamp, expected in (
        (LATEST, (-1, 5)),
        (EARLIEST, (-1, 0)),
        (0, (T, 0)),
        (T, (T, 0)),
        (T + 1, (T + 1_000, 1)),
        (T + 1_000, (T + 1_000, 1)),
        (T + 2_000, (T + 9_000, 2)),
    ):
        answer = list_offset(client, topic, timestamp, version=version)
        assert answer.error_code == ErrorCode.NONE
        assert (answer.timestamp, answer.offset, answer.leader_epoch) == (*expected, epoch)


@pytest.mark.parametrize("version", range(1, 12))
def test_after_the_last_record_there_is_no_offset(client: WireClient, topic: str, version: int) -> None:
    answer = list_offset(client, topic, T + 9_001, version=version)
    assert (answer.error_code, answer.timestamp, answer.offset, answer.leader_epoch) == (0, -1, -1, -1)


SPECIAL = {
    MAX_TIMESTAMP: (7, (T + 9_000, 2)),
    EARLIEST_LOCAL_TIMESTAMP: (8, (-1, 0)),
    LATEST_TIERED_TIMESTAMP: (9, (-1, -1)),
    EARLIEST_PENDING_UPLOAD_TIMESTAMP: (11, (-1, -1)),
    -99: (12, (-1, -1)),
}


@pytest.mark.parametrize("version", range(1, 12))
@pytest.mark.parametrize("timestamp", list(SPECIAL))
def test_special_timestamps_mean_something_since_their_version(
    client: WireClient, topic: str, timestamp: int, version: int
) -> None:
    since, expected = SPECIAL[timestamp]
    answer = list_offset(client, topic, timestamp, version=version)
    if version < since:
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    else:
        assert answer.error_code == ErrorCode.NONE
        assert (answer.timestamp, answer.offset) == expected


@pytest.mark.parametrize("version", range(2, 12))
def test_read_committed_ends_at_the_last_stable_offset(client: WireClient, topic: str, version: int) -> None:
    assert list_offset(client, topic, LATEST, version=version, isolation_level=1).offset == 5


def test_an_empty_partition(client: WireClient) -> None:
    topic = create_topic(client)
    for timestamp, offset in ((LATEST, 0), (EARLIEST, 0), (MAX_TIMESTAMP, -1), (T, -1)):
        answer = list_offset(client, topic, timestamp)
        assert (answer.error_code, answer.offset, answer.timestamp) == (ErrorCode.NONE, offset, -1)


@pytest.mark.parametrize("version", range(4, 12))
def test_a_leader_epoch_that_is_not_ours(client: WireClient, topic: str, version: int) -> None:
    assert list_offset(client, topic, LATEST, version=version, epoch=0).error_code == ErrorCode.NONE
    answer = list_offset(client, topic, LATEST, version=version, epoch=3)
    assert (answer.error_code, answer.offset) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1)


def test_what_was_trimmed_is_not_found(client: WireClient, topic: str) -> None:
    trim = DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, 3)])
    client.call(DeleteRecordsRequest([trim]), 2)
    assert list_offset(client, topic, EARLIEST).offset == 3
    assert list_offset(client, topic, EARLIEST_LOCAL_TIMESTAMP).offset == 3
    answer = list_offset(client, topic, T)
    assert (answer.offset, answer.timestamp) == (3, T + 3_000)


def test_log_append_time_is_what_is_looked_up(client: WireClient) -> None:
    topic = create_topic(client, configs={"message.timestamp.type": "LogAppendTime"})
    first = produce(client, topic, batch_of(b"a", b"b", timestamp=5)).log_append_time_ms
    answer = list_offset(client, topic, 6)
    assert (answer.offset, answer.timestamp) == (0, first)
    answer = list_offset(client, topic, MAX_TIMESTAMP)
    assert answer.timestamp == first


def test_topics_and_partitions_that_are_not_there(client: WireClient, topic: str) -> None:
    assert list_offset(client, "nowhere", LATEST).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    answer = list_offset(client, topic, LATEST, partition=1)
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_that_is_asked_about_twice_is_refused(client: WireClient, topic: str) -> None:
    asked = [ListOffsetsPartition(0, -1, LATEST), ListOffsetsPartition(0, -1, EARLIEST)]
    response = client.call(ListOffsetsRequest(-1, 0, [ListOffsetsTopic(topic, asked)]), 11)
    codes = [answer.error_code for answer in response.topics[0].partitions]
    assert codes == [ErrorCode.INVALID_REQUEST] * 2


def test_the_latest_offset_counts_records_on_their_way_to_the_disk(client: WireClient, topic: str) -> None:
    asked = [ListOffsetsTopic(topic, [ListOffsetsPartition(0, -1, LATEST)])]
    for number in range(20):
        produce(client, topic, batch_of(b"v"), acks=1)
        response = client.call(ListOffsetsRequest(-1, 0, asked), 11)
        assert response.topics[0].partitions[0].offset == 6 + number


def test_topics_are_answered_in_their_order(client: WireClient) -> None:
    topics = [create_topic(client) for _ in range(3)]
    append(client, topics[1], b"v")
    asked = [ListOffsetsTopic(topic, [ListOffsetsPartition(0, -1, LATEST)]) for topic in topics]
    response = client.call(ListOffsetsRequest(-1, 0, asked), 6)
    assert [(topic.name, topic.partitions[0].offset) for topic in response.topics] == [
        (topics[0], 0),
        (topics[1], 1),
        (topics[2], 0),
    ]
