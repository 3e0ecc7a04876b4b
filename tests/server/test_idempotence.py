"""Idempotent producers: what is sent twice is written once, and what is missing is noticed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from calls import (
    batch_of,
    create_topic,
    end_offset,
    new_producer,
    produce,
    produce_request,
    values_from,
)
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.produce import PartitionProduceResponse
from ottla.testing import BrokerProcess
from wire import WireClient

SEQUENCE_MAX = 2**31 - 1


class Producer:
    """A producer id, and batches of it that a test sends as it likes."""

    def __init__(self, client: WireClient, topic: str, epoch: int = 0) -> None:
        self.client = client
        self.topic = topic
        self.id, _ = new_producer(client)
        self.epoch = epoch

    def batch(self, sequence: int, *values: bytes) -> bytes:
        return batch_of(*values or (b"%d" % sequence,), producer=(self.id, self.epoch), sequence=sequence)

    def send(self, sequence: int, *values: bytes) -> PartitionProduceResponse:
        return produce(self.client, self.topic, self.batch(sequence, *values))

    def send_together(self, *sequences: int) -> list[tuple[int, int]]:
        """In one turn of the broker: (error code, base offset) of each."""
        requests = [produce_request(self.topic, self.batch(sequence)) for sequence in sequences]
        self.client.send_together(*((request, 12) for request in requests))
        answers = [self.client.receive().responses[0].partition_responses[0] for _ in requests]
        return [(answer.error_code, answer.base_offset) for answer in answers]


@pytest.fixture
def producer(client: WireClient) -> Producer:
    return Producer(client, create_topic(client))


def test_a_batch_sent_again_is_answered_with_its_first_offset(client: WireClient, producer: Producer) -> None:
    assert producer.send(0, b"a", b"b").base_offset == 0
    assert producer.send(2, b"c").base_offset == 2
    again = producer.send(2, b"c")
    assert (again.error_code, again.base_offset) == (ErrorCode.NONE, 2)
    assert producer.send(0, b"a", b"b").base_offset == 0
    assert producer.send(3, b"d").base_offset == 3
    assert values_from(client, producer.topic) == [b"a", b"b", b"c", b"d"]


def test_the_last_five_batches_are_remembered(client: WireClient, producer: Producer) -> None:
    for sequence in range(7):
        assert producer.send(sequence).base_offset == sequence
    for sequence in range(2, 7):
        assert (producer.send(sequence).error_code, producer.send(sequence).base_offset) == (0, sequence)
    assert producer.send(1).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert end_offset(client, producer.topic) == 7


def test_a_gap_is_refused_and_can_be_filled(client: WireClient, producer: Producer) -> None:
    producer.send(0)
    assert producer.send(2).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.send(1).base_offset == 1
    assert producer.send(2).base_offset == 2
    assert values_from(client, producer.topic) == [b"0", b"1", b"2"]


def test_a_batch_that_overlaps_a_known_one_is_no_duplicate(client: WireClient, producer: Producer) -> None:
    producer.send(0, b"a", b"b", b"c")
    assert producer.send(1, b"b").error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.send(0, b"a", b"b").error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert end_offset(client, producer.topic) == 3


def test_a_producer_nobody_remembers_may_begin_anywhere(producer: Producer) -> None:
    assert producer.send(41).base_offset == 0
    assert producer.send(42).base_offset == 1


def test_a_new_epoch_begins_with_sequence_0_and_fences_the_old_one(
    client: WireClient, producer: Producer
) -> None:
    producer.send(0)
    producer.send(1)
    producer.epoch = 1
    assert producer.send(2).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.send(0).base_offset == 2
    producer.epoch = 0
    assert producer.send(2).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert end_offset(client, producer.topic) == 3


def test_sequences_go_on_at_0_after_the_largest(client: WireClient, producer: Producer) -> None:
    assert producer.send(SEQUENCE_MAX - 1, b"a").base_offset == 0
    assert producer.send(SEQUENCE_MAX, b"b", b"c", b"d").base_offset == 1  # sequences max, 0 and 1
    assert producer.send(SEQUENCE_MAX, b"b", b"c", b"d").base_offset == 1
    assert producer.send(2, b"e").base_offset == 4
    assert producer.send(0, b"x").error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert values_from(client, producer.topic) == [b"a", b"b", b"c", b"d", b"e"]


def test_each_partition_has_its_own_sequences(client: WireClient) -> None:
    topic = create_topic(client, partitions=2)
    producer = Producer(client, topic)
    for partition in (0, 1, 0, 1):
        sequence = end_offset(client, topic, partition)
        answer = produce(client, topic, producer.batch(sequence), partition=partition)
        assert answer.base_offset == sequence


def test_producers_do_not_disturb_each_other(client: WireClient) -> None:
    topic = create_topic(client)
    one, other = Producer(client, topic), Producer(client, topic)
    offsets = [each.send(sequence).base_offset for sequence in range(5) for each in (one, other)]
    assert offsets == list(range(10))
    assert one.send(3).base_offset == 6
    assert other.send(3).base_offset == 7


# -- within one turn -----------------------------------------------------------------------------------------


def test_five_requests_in_flight_keep_their_order(client: WireClient, producer: Producer) -> None:
    assert producer.send_together(0, 1, 2, 3, 4) == [(0, offset) for offset in range(5)]
    assert values_from(client, producer.topic) == [b"0", b"1", b"2", b"3", b"4"]


def test_a_duplicate_within_one_turn_is_written_once(client: WireClient, producer: Producer) -> None:
    assert producer.send_together(0, 1, 1, 0, 2) == [(0, 0), (0, 1), (0, 1), (0, 0), (0, 2)]
    assert values_from(client, producer.topic) == [b"0", b"1", b"2"]


def test_after_a_gap_within_one_turn_nothing_of_the_producer_is_written(
    client: WireClient, producer: Producer
) -> None:
    refused = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert producer.send_together(0, 2, 3, 4) == [(0, 0), refused, refused, refused]
    assert producer.send_together(1, 2, 3, 4) == [(0, 1), (0, 2), (0, 3), (0, 4)]
    assert values_from(client, producer.topic) == [b"0", b"1", b"2", b"3", b"4"]


def test_first_batches_out_of_order_within_one_turn(client: WireClient, producer: Producer) -> None:
    """Nobody remembers the producer, so its first batch may have any sequence; the next must follow it."""
    refused = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert producer.send_together(5, 7, 6) == [(0, 0), refused, (0, 1)]


def test_others_in_the_turn_are_written_around_a_refused_batch(client: WireClient) -> None:
    topic = create_topic(client)
    one, other = Producer(client, topic), Producer(client, topic)
    batches = [
        one.batch(0, b"one-0"),
        other.batch(0, b"other-0"),
        batch_of(b"plain"),
        one.batch(2, b"one-2"),  # a gap
        other.batch(1, b"other-1"),
        other.batch(0, b"other-0"),  # again
        one.batch(1, b"one-1"),
    ]
    client.send_together(*((produce_request(topic, batch), 12) for batch in batches))
    answers = [client.receive().responses[0].partition_responses[0] for _ in batches]
    assert [answer.base_offset for answer in answers] == [0, 1, 2, -1, 3, 1, 4]
    assert answers[3].error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert values_from(client, topic) == [b"one-0", b"other-0", b"plain", b"other-1", b"one-1"]


def test_the_same_partition_twice_in_one_request(client: WireClient, producer: Producer) -> None:
    one = produce_request(producer.topic, producer.batch(0))
    (topic,) = one.topic_data
    (data,) = topic.partition_data
    topic.partition_data = [data, data]  # type: ignore[misc]
    (answer,) = client.call(one, 12).responses
    assert [part.base_offset for part in answer.partition_responses] == [0, 0]
    assert end_offset(client, producer.topic) == 1


def test_duplicates_tell_the_append_time_of_the_first(client: WireClient) -> None:
    producer = Producer(client, create_topic(client, configs={"message.timestamp.type": "LogAppendTime"}))
    first = producer.send(0)
    assert first.log_append_time_ms > 0
    assert producer.send(0).log_append_time_ms == first.log_append_time_ms


# -- over restarts -------------------------------------------------------------------------------------------


@pytest.fixture
def own_broker() -> Iterator[BrokerProcess]:
    with BrokerProcess() as broker:
        yield broker


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_what_was_sent_is_remembered_over_a_restart(own_broker: BrokerProcess, end: str) -> None:
    with WireClient(own_broker.bootstrap) as client:
        producer = Producer(client, create_topic(client))
        for sequence in range(7):
            producer.send(sequence)
    for _ in range(2):  # the second start reads what the first one wrote
        assert getattr(own_broker, end)() in (0, -9)
        own_broker.start()
    with WireClient(own_broker.bootstrap) as client:
        producer.client = client
        # Kafka's snapshot of a clean stop keeps one batch of each producer; the log itself, five.
        remembered = range(6, 7) if end == "stop" else range(2, 7)
        for sequence in remembered:
            assert producer.send(sequence).base_offset == sequence
        assert producer.send(1).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert producer.send(8).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert producer.send(7).base_offset == 7
        assert values_from(client, producer.topic) == [b"%d" % number for number in range(8)]
