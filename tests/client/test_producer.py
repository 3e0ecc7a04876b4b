"""The producer against a real broker: what arrives is what was sent, in order, in all codings."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import Message
from confluent_kafka import TopicPartition as ConfluentPartition

from client.conftest import NewTopicName
from ottla.client.accumulator import Delivery
from ottla.client.admin import Admin
from ottla.client.errors import (
    BrokerError,
    BrokerUnreachable,
    BufferFull,
    ClientError,
    Closed,
    InvalidSetting,
    MessageTooLarge,
    TimedOut,
    UnknownPartition,
)
from ottla.client.producer import Producer
from ottla.model.errors import ErrorCode
from ottla.model.topics import TopicPartition

UNREACHABLE = "127.0.0.1:1"


def read_with_confluent(bootstrap: str, topic: str, count: int, partition: int = 0) -> list[Message]:
    consumer = ConfluentConsumer({"bootstrap.servers": bootstrap, "group.id": "reader", "check.crcs": True})
    try:
        consumer.assign([ConfluentPartition(topic, partition, 0)])
        messages: list[Message] = []
        deadline = time.monotonic() + 60
        while len(messages) < count and time.monotonic() < deadline:
            messages += [each for each in consumer.consume(1000, 0.5) if each.error() is None]
        return messages
    finally:
        consumer.close()


@pytest.fixture
def producer(bootstrap: str) -> Iterator[Producer]:
    with Producer(bootstrap) as client:
        yield client


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_stock_client_reads_what_was_sent(bootstrap: str, new_topic: NewTopicName, codec: str) -> None:
    name = new_topic(retention_ms="-1")
    with Producer(bootstrap, compression_type=codec, linger_ms=50) as producer:
        futures = [
            producer.send(
                name,
                None if number % 7 == 0 else b"value %d" % number * 20,
                None if number % 5 == 0 else b"key %d" % number,
                headers=[("ä", b"\x00"), ("none", None)] if number % 3 == 0 else (),
                timestamp_ms=1_700_000_000_000 + number,
            )
            for number in range(300)
        ]
    assert [future.result(0).offset for future in futures] == list(range(300))
    messages = read_with_confluent(bootstrap, name, 300)
    assert [message.timestamp()[1] for message in messages] == [1_700_000_000_000 + n for n in range(300)]
    for number, message in enumerate(messages):
        assert message.value() == (None if number % 7 == 0 else b"value %d" % number * 20)
        assert message.key() == (None if number % 5 == 0 else b"key %d" % number)
        assert message.headers() == ([("ä", b"\x00"), ("none", None)] if number % 3 == 0 else None)


def test_a_future_tells_where_the_record_lies(producer: Producer, new_topic: NewTopicName) -> None:
    name = new_topic(3)
    before_ms = time.time_ns() // 1_000_000
    first = producer.send(name, b"a", partition=2).result(30)
    second = producer.send(name, b"b", partition=2, timestamp_ms=5).result(30)
    assert (first.topic, first.partition, first.offset) == (name, 2, 0)
    assert first.timestamp_ms >= before_ms
    assert second == Delivery(name, 2, 1, 5)


def test_a_topic_that_stamps_records_itself_tells_its_time(
    producer: Producer, new_topic: NewTopicName
) -> None:
    name = new_topic(message_timestamp_type="LogAppendTime")
    assert producer.send(name, b"", timestamp_ms=5).result(30).timestamp_ms > 1_600_000_000_000


def test_callbacks_get_the_delivery_or_the_error(producer: Producer, new_topic: NewTopicName) -> None:
    name = new_topic(1, max_message_bytes="1000")
    outcomes: list[tuple[Delivery | None, ClientError | None]] = []
    producer.send(name, b"x" * 5000, on_delivery=lambda *outcome: outcomes.append(outcome))
    producer.flush(30)
    producer.send(name, b"small", on_delivery=lambda *outcome: outcomes.append(outcome))
    producer.flush(30)
    (refused_delivery, error), (delivery, no_error) = outcomes
    assert refused_delivery is None
    assert isinstance(error, MessageTooLarge)
    assert "max.message.bytes" in str(error)
    assert delivery is not None
    assert delivery.offset == 0
    assert no_error is None


def test_a_callback_may_send_and_a_failing_one_harms_nobody(
    producer: Producer, new_topic: NewTopicName, admin: Admin
) -> None:
    name = new_topic()

    def send_again(delivery: Delivery | None, _error: ClientError | None) -> None:
        producer.send(name, b"second")
        raise RuntimeError("a user's mistake")

    producer.send(name, b"first", on_delivery=send_again)
    deadline = time.monotonic() + 30
    while admin.latest_offsets([TopicPartition(name, 0)])[(name, 0)] < 2 and time.monotonic() < deadline:
        producer.flush(30)
    assert admin.latest_offsets([TopicPartition(name, 0)])[(name, 0)] == 2


def test_a_batch_too_large_for_its_topic_is_split(bootstrap: str, new_topic: NewTopicName) -> None:
    name = new_topic(1, max_message_bytes="4000")
    with Producer(bootstrap, linger_ms=200) as producer:
        futures = [producer.send(name, b"%04d" % number * 100) for number in range(100)]
        assert [future.result(30).offset for future in futures] == list(range(100))
    messages = read_with_confluent(bootstrap, name, 100)
    assert [message.value() for message in messages] == [b"%04d" % number * 100 for number in range(100)]


def test_keyless_records_fill_one_batch_after_the_other(bootstrap: str, new_topic: NewTopicName) -> None:
    name = new_topic(8)
    with Producer(bootstrap, linger_ms=0) as producer:
        placed = [producer.send(name, b"").result(30).partition for _ in range(60)]
    with Producer(bootstrap, linger_ms=5000) as producer:
        together = [producer.send(name, b"") for _ in range(60)]
        producer.flush(30)
    assert len(set(placed)) > 3
    assert len({future.result(0).partition for future in together}) == 1


def test_several_threads_send_and_each_keeps_its_order(bootstrap: str, new_topic: NewTopicName) -> None:
    name = new_topic()
    with Producer(bootstrap, batch_size=2000) as producer:

        def send_all(sender: int) -> None:
            for number in range(500):
                producer.send(name, b"%d" % number, b"%d" % sender)

        threads = [threading.Thread(target=send_all, args=(sender,)) for sender in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    messages = read_with_confluent(bootstrap, name, 2000)
    for sender in range(4):
        numbers = [int(message.value()) for message in messages if message.key() == b"%d" % sender]
        assert numbers == list(range(500))


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_kind_of_acknowledgement_delivers(
    bootstrap: str, new_topic: NewTopicName, admin: Admin, acks: str
) -> None:
    name = new_topic()
    with Producer(bootstrap, acks=acks) as producer:
        delivery = producer.send(name, b"value").result(30)
    assert delivery.offset == (None if acks == "0" else 0)
    assert len(read_with_confluent(bootstrap, name, 1)) == 1


def test_a_missing_topic_is_created_where_the_broker_does_that(producer: Producer, admin: Admin) -> None:
    (broker, *_) = admin.cluster().brokers
    creates = admin.broker_configs(broker.id, ["auto.create.topics.enable"])[
        "auto.create.topics.enable"
    ].value
    name = f"auto-{time.time_ns()}"
    if creates == "true":
        assert producer.send(name, b"").result(30).offset == 0
    else:
        with pytest.raises(BrokerError):
            producer.send(name, b"")


def test_what_cannot_be_sent_is_refused_at_once(producer: Producer, new_topic: NewTopicName) -> None:
    name = new_topic(2)
    with pytest.raises(UnknownPartition, match="0 to 1"):
        producer.send(name, b"", partition=2)
    with pytest.raises(MessageTooLarge, match=r"max\.request\.size"):
        producer.send(name, b"x" * 2_000_000)
    with pytest.raises(BrokerError) as caught:
        producer.send("no/topic", b"")
    assert caught.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    with pytest.raises(TypeError):
        producer.send(name, "text")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        producer.send(name, b"", headers=[("name", "text")])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="timestamp"):
        producer.send(name, b"", timestamp_ms=-1)


def test_a_topic_that_nobody_tells_of_is_waited_for_up_to_max_block() -> None:
    with Producer(UNREACHABLE, max_block_ms=200) as producer:
        with pytest.raises(TimedOut, match="no broker at"):
            producer.send("topic", b"")
        producer.close(0)


def test_a_full_buffer_raises_after_max_block(bootstrap: str, new_topic: NewTopicName) -> None:
    name = new_topic()
    with Producer(bootstrap, max_block_ms=1000, buffer_memory=3000) as producer:
        producer.send(name, b"").result(30)
        with pytest.raises(BufferFull, match=r"buffer\.memory"):
            producer.send(name, b"x" * 4000)
        for _ in range(100):  # each waits for room, and gets it
            producer.send(name, b"x" * 1000)


def test_closing_at_once_fails_what_is_buffered_loudly(bootstrap: str, new_topic: NewTopicName) -> None:
    name = new_topic()
    producer = Producer(bootstrap, linger_ms=60_000)
    producer.partition_count(name)
    errors: list[ClientError | None] = []
    future = producer.send(name, b"", on_delivery=lambda _, error: errors.append(error))
    producer.close(0)
    with pytest.raises(Closed):
        future.result(0)
    assert [type(error) for error in errors] == [Closed]
    with pytest.raises(Closed):
        producer.send(name, b"")
    producer.close()


def test_a_result_is_waited_for_as_long_as_the_caller_says(bootstrap: str, new_topic: NewTopicName) -> None:
    with Producer(bootstrap, linger_ms=60_000) as producer:
        future = producer.send(new_topic(), b"")
        with pytest.raises(TimedOut):
            future.result(0.01)
        producer.flush(30)
        assert future.result(0).offset == 0


def test_settings_that_contradict_idempotence_are_refused_only_when_it_is_asked_for(bootstrap: str) -> None:
    for settings in ({"acks": "1"}, {"retries": 0}, {"max.in.flight.requests.per.connection": 6}):
        Producer(bootstrap, **settings).close()  # type: ignore[arg-type]
        with pytest.raises(InvalidSetting, match="idempotence"):
            Producer(bootstrap, enable_idempotence=True, **settings)  # type: ignore[arg-type]


def test_a_broker_that_is_away_is_named_with_its_address() -> None:
    with Admin(UNREACHABLE) as admin, pytest.raises(BrokerUnreachable, match="ottla up"):
        admin.cluster()


def test_headers_as_a_dict_are_refused_with_what_to_give_instead(bootstrap: str) -> None:
    with Producer(bootstrap) as producer, pytest.raises(TypeError, match=r"list\(headers.items\(\)\)"):
        producer.send("topic", b"value", headers={"name": b"content"})  # type: ignore[arg-type]
