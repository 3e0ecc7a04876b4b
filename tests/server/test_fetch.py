"""Fetch: batches as they were written, as many as the limits allow, and never a reader that starves."""

from __future__ import annotations

from pathlib import Path

import pytest

from calls import (
    NEWEST_FETCH,
    NEWEST_NAMED_FETCH,
    append,
    at,
    batch_of,
    batches_in,
    create_topic,
    delete_topic,
    fetch,
    fetch_request,
    produce,
    told,
    topic_id_of,
    values_in,
)
from in_process import running_broker
from ottla.model.errors import ErrorCode
from ottla.model.topics import TopicId
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from ottla.records.content import records_of
from wire import WireClient

SIZE = len(batch_of(b"x" * 100))


def three_batches(client: WireClient, partitions: int = 1) -> str:
    """A topic with three batches of SIZE bytes in each partition."""
    topic = create_topic(client, partitions=partitions)
    for partition in range(partitions):
        for letter in (b"a", b"b", b"c"):
            append(client, topic, letter * 100, partition=partition)
    return topic


@pytest.mark.parametrize("version", range(4, 19))
def test_every_version_gives_the_batches_as_they_lie_in_the_log(client: WireClient, version: int) -> None:
    name = create_topic(client)
    written = [batch_of(b"a", b"b"), batch_of(b"c", codec=1)]
    for batch in written:
        produce(client, name, batch)
    topic = name if version < 13 else topic_id_of(client, name)
    response = client.call(fetch_request(topic, at(0)), version)
    assert (response.error_code, response.session_id) == (ErrorCode.NONE, 0)
    (answered,) = response.responses
    assert (answered.topic, answered.topic_id) == ((name, bytes(16)) if version < 13 else ("", topic))
    (data,) = answered.partitions
    assert data.error_code == ErrorCode.NONE
    assert [batch[16:] for batch in batches_in(data)] == [batch[16:] for batch in written]
    assert (data.high_watermark, data.last_stable_offset) == (3, 3)
    assert data.log_start_offset == (0 if version >= 5 else -1)
    assert data.aborted_transactions is None
    assert data.preferred_read_replica == -1
    assert data.diverging_epoch.epoch == -1


@pytest.mark.parametrize("version", [4, 12, 18])
def test_read_committed_is_told_that_nothing_was_aborted(client: WireClient, version: int) -> None:
    name = create_topic(client)
    append(client, name, b"a")
    topic = name if version < 13 else topic_id_of(client, name)
    request = fetch_request(topic, at(0), isolation_level=1)
    (data,) = told(client.call(request, version).responses)
    assert values_in(data) == [b"a"]
    assert data.aborted_transactions == ()
    assert data.last_stable_offset == 1


def test_an_offset_within_a_batch_gives_the_whole_batch(client: WireClient) -> None:
    topic = create_topic(client)
    append(client, topic, b"a", b"b", b"c")
    append(client, topic, b"d")
    (data,) = fetch(client, topic, at(2))
    assert values_in(data) == [b"a", b"b", b"c", b"d"]


def test_at_the_end_there_is_nothing(client: WireClient) -> None:
    topic = three_batches(client)
    (data,) = fetch(client, topic, at(3))
    assert (data.error_code, data.records, data.high_watermark) == (ErrorCode.NONE, b"", 3)


@pytest.mark.parametrize("offset", [-1, 4, 2**62])
def test_an_offset_the_partition_does_not_have(client: WireClient, offset: int) -> None:
    topic = three_batches(client)
    (data,) = fetch(client, topic, at(offset))
    assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert data.records == b""


def test_an_offset_that_was_trimmed(client: WireClient) -> None:
    topic = three_batches(client)
    trim = DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, 2)])
    assert client.call(DeleteRecordsRequest([trim]), 2).topics[0].partitions[0].low_watermark == 2
    (data,) = fetch(client, topic, at(1))
    assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    (data,) = fetch(client, topic, at(2))
    assert (values_in(data), data.log_start_offset) == ([b"c" * 100], 2)


def test_topics_and_partitions_that_are_not_there(client: WireClient) -> None:
    topic = create_topic(client)
    (data,) = fetch(client, topic, at(0, partition=1))
    assert data.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (data,) = fetch(client, "no-such-topic", at(0))
    assert data.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (data,) = fetch(client, topic_id_of(client, topic), at(0, partition=1))
    assert data.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (data,) = fetch(client, TopicId(b"\x07" * 16), at(0))
    assert data.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_the_id_of_a_deleted_topic_is_unknown_also_when_its_name_is_taken_again(client: WireClient) -> None:
    topic = three_batches(client)
    old = topic_id_of(client, topic)
    delete_topic(client, topic)
    create_topic(client, topic)
    (data,) = fetch(client, old, at(0))
    assert data.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    (data,) = fetch(client, topic, at(0))
    assert (data.error_code, data.high_watermark) == (ErrorCode.NONE, 0)


def test_one_partition_that_fails_does_not_keep_the_others_from_being_read(client: WireClient) -> None:
    topic = three_batches(client, partitions=2)
    good, bad, other = fetch(client, topic, at(0, 0), at(99, 1), at(0, 7))
    assert len(values_in(good)) == 3
    assert bad.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert other.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# -- sizes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bytes_max", [0, 1, SIZE - 1, SIZE, SIZE + 1, 2 * SIZE - 1])
def test_the_first_batch_is_whole_however_small_the_partitions_limit(
    client: WireClient, bytes_max: int
) -> None:
    topic = three_batches(client)
    (data,) = fetch(client, topic, at(0, bytes_max=bytes_max))
    assert values_in(data) == [b"a" * 100]
    assert len(data.records) == max(SIZE, bytes_max)


def test_the_partitions_limit_bounds_what_it_gives(client: WireClient) -> None:
    topic = three_batches(client)
    (data,) = fetch(client, topic, at(0, bytes_max=2 * SIZE))
    assert values_in(data) == [b"a" * 100, b"b" * 100]
    assert len(data.records) == 2 * SIZE


@pytest.mark.parametrize("bytes_max", [-1, 0, 1, SIZE])
def test_the_answers_limit_leaves_later_partitions_empty_but_the_first_batch_whole(
    client: WireClient, bytes_max: int
) -> None:
    topic = three_batches(client, partitions=2)
    request = fetch_request(topic, at(0, 0), at(0, 1), max_bytes=bytes_max)
    first, second = told(client.call(request, NEWEST_NAMED_FETCH).responses)
    assert values_in(first) == [b"a" * 100]
    assert (second.records, second.error_code, second.high_watermark) == (b"", ErrorCode.NONE, 3)


def test_later_partitions_get_no_part_of_a_batch(client: WireClient) -> None:
    """What is left for the second partition is less than its first batch: a part would bring nobody on."""
    topic = three_batches(client, partitions=2)
    request = fetch_request(topic, at(0, 0), at(0, 1), max_bytes=3 * SIZE + SIZE // 2)
    first, second = told(client.call(request, NEWEST_NAMED_FETCH).responses)
    assert len(values_in(first)) == 3
    assert second.records == b""
    request = fetch_request(topic, at(0, 0), at(0, 1), max_bytes=4 * SIZE)
    first, second = told(client.call(request, NEWEST_NAMED_FETCH).responses)
    assert len(values_in(second)) == 1


def test_a_partition_without_data_does_not_use_up_the_right_to_one_whole_batch(client: WireClient) -> None:
    topic = three_batches(client, partitions=2)
    request = fetch_request(topic, at(3, 0), at(0, 1, bytes_max=1), max_bytes=1)
    first, second = told(client.call(request, NEWEST_NAMED_FETCH).responses)
    assert first.records == b""
    assert values_in(second) == [b"a" * 100]


def test_a_batch_larger_than_any_limit_is_given(client: WireClient) -> None:
    topic = create_topic(client, configs={"max.message.bytes": str(12 * 1024 * 1024)})
    value = bytes(range(256)) * 40_000
    append(client, topic, value)
    (data,) = fetch(client, topic, at(0, bytes_max=1))
    assert values_in(data) == [value]


def test_the_brokers_limit_bounds_an_answer_whatever_the_client_asks_for(tmp_path: Path) -> None:
    settings = {"fetch.max.bytes": "1024"}
    with running_broker(tmp_path, settings) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client)
        for _ in range(10):
            append(client, topic, b"x" * 400)
        (data,) = fetch(client, topic, at(0))
        assert len(values_in(data)) == 2
        assert len(data.records) == 1024


def test_reading_goes_on_over_segments(client: WireClient) -> None:
    topic = create_topic(client, configs={"segment.bytes": str(1024 * 1024)})
    values = [b"%d" % number * 100_000 for number in range(9)] * 5
    for value in values:
        append(client, topic, value)
    read: list[bytes | None] = []
    while len(read) < len(values):
        (data,) = fetch(client, topic, at(len(read), bytes_max=10_000_000))
        got = values_in(data)
        assert got
        read += got
    assert read == values


# -- epochs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(9, 19))
def test_leader_epochs_are_checked(client: WireClient, version: int) -> None:
    name = three_batches(client)
    topic = name if version < 13 else topic_id_of(client, name)
    (data,) = fetch(client, topic, at(0, current_leader_epoch=0), version=version)
    assert data.error_code == ErrorCode.NONE
    (data,) = fetch(client, topic, at(0, current_leader_epoch=1), version=version)
    assert data.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


@pytest.mark.parametrize("version", range(12, 19))
def test_a_reader_whose_log_differs_is_told_where(client: WireClient, version: int) -> None:
    name = three_batches(client)
    topic = name if version < 13 else topic_id_of(client, name)
    (data,) = fetch(client, topic, at(3, last_fetched_epoch=0), version=version)
    assert (data.error_code, data.diverging_epoch.epoch) == (ErrorCode.NONE, -1)
    # It has records of our epoch that we have not: it must cut them off.
    (data,) = fetch(client, topic, at(5, last_fetched_epoch=0), version=version)
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 3)
    assert (data.error_code, data.records) == (ErrorCode.NONE, b"")
    # It has an epoch that we never had.
    (data,) = fetch(client, topic, at(3, last_fetched_epoch=4), version=version)
    assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


# -- replicas ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [4, 12, 14, 15, 18])
def test_nobody_reads_as_a_follower_here(client: WireClient, version: int) -> None:
    name = three_batches(client)
    topic = FetchTopic(topic=name) if version < 13 else FetchTopic(topic_id=topic_id_of(client, name))
    follower = (
        {"replica_id": 5} if version < 15 else {"replica_state": ReplicaState(replica_id=5, replica_epoch=1)}
    )
    request = FetchRequest(min_bytes=1, topics=[FetchTopic(topic.topic, topic.topic_id, [at(0)])], **follower)
    (data,) = told(client.call(request, version).responses)
    assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert data.records == b""


def test_the_debugging_consumer_reads_as_any_other(client: WireClient) -> None:
    topic = three_batches(client)
    request = FetchRequest(replica_id=-2, min_bytes=1, topics=[FetchTopic(topic=topic, partitions=[at(0)])])
    (data,) = told(client.call(request, 12).responses)
    assert len(values_in(data)) == 3


# -- requests of odd shapes ----------------------------------------------------------------------------------


def test_a_fetch_of_nothing_is_answered_at_once(client: WireClient) -> None:
    request = FetchRequest(max_wait_ms=60_000, min_bytes=1)
    assert client.call(request, NEWEST_FETCH).responses == ()


def test_the_same_partition_twice_is_answered_once_as_asked_last(client: WireClient) -> None:
    topic = three_batches(client)
    (data,) = fetch(client, topic, at(0), at(2))
    assert values_in(data) == [b"c" * 100]


def test_many_fetches_in_one_piece_are_answered_in_order(client: WireClient) -> None:
    topic = three_batches(client)
    client.send_together(*((fetch_request(topic, at(number % 3, bytes_max=1)), 12) for number in range(60)))
    for number in range(60):
        (data,) = told(client.receive().responses)
        assert next(records_of(batches_in(data)[0])).offset == number % 3


def test_a_reader_may_ask_for_partitions_of_many_topics(client: WireClient) -> None:
    topics = [three_batches(client) for _ in range(4)]
    asked = [
        FetchTopic(topic=topic, partitions=[FetchPartition(0, partition_max_bytes=1)]) for topic in topics
    ]
    response = client.call(FetchRequest(min_bytes=1, topics=asked), 12)
    assert [answer.topic for answer in response.responses] == topics
    assert [len(values_in(data)) for data in told(response.responses)] == [1, 0, 0, 0]
