"""Serializers, partitioners and interceptors of users and our own, on a real broker."""

from __future__ import annotations

import json
import logging
import struct
from collections.abc import Mapping
from typing import Any

import pytest

from client.conftest import NewTopicName
from compat.broker import unique_name
from ottla.client import Consumer, Producer, TopicPartition
from ottla.client.accumulator import Delivery
from ottla.client.cluster_view import ClusterView
from ottla.client.errors import (
    ClientError,
    Closed,
    DeserializationFailed,
    InvalidSetting,
    SerializationFailed,
)
from ottla.client.fetched import ConsumedRecord
from ottla.client.interceptors import ProducerRecord
from ottla.client.partitioners import OrderedQueue, partition_of_key
from ottla.client.reading import read


class Reversed:
    """A user's own, with all three methods."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def configure(self, configs: Mapping[str, object], is_key: bool) -> None:
        self.calls.append(("configure", configs["my.option"], is_key))

    def serialize(self, topic: str, data: str) -> bytes:
        return data[::-1].encode()

    def deserialize(self, topic: str, data: bytes) -> str:
        return data.decode()[::-1]

    def close(self) -> None:
        self.calls.append(("close",))


def read_all(bootstrap: str, topic: str, **settings: object) -> list[ConsumedRecord]:
    with read(bootstrap, topic, **settings) as reading:
        return list(reading)


def poll_until(consumer: Consumer, found: list[ConsumedRecord], count: int) -> None:
    while len(found) < count:
        found += consumer.poll(1)


@pytest.mark.parametrize(
    ("kind", "data", "encoded"),
    [
        ("string", "grüße", "grüße".encode()),
        ("integer", -2, struct.pack(">i", -2)),
        ("long", 2**40, struct.pack(">q", 2**40)),
        ("bytes", b"\x00\xff", b"\x00\xff"),
        ("json", {"id": 7, "tags": ["ä"]}, b'{"id":7,"tags":["\xc3\xa4"]}'),
        ("org.apache.kafka.common.serialization.StringSerializer", "text", b"text"),
        ("org.apache.kafka.common.serialization.IntegerSerializer", 9, struct.pack(">i", 9)),
    ],
)
def test_built_in_serializers_write_what_kafkas_read(
    bootstrap: str, new_topic: NewTopicName, kind: str, data: Any, encoded: bytes
) -> None:
    topic = new_topic(1)
    with Producer(bootstrap, key_serializer=kind, value_serializer=kind) as producer:
        producer.send(topic, data, key=data)
        producer.send(topic, None, key=None)
    plain = read_all(bootstrap, topic)
    assert [(each.key, each.value) for each in plain] == [(encoded, encoded), (None, None)]
    back = kind.replace("Serializer", "Deserializer")
    decoded = read_all(bootstrap, topic, key_deserializer=back, value_deserializer=back)
    assert [(each.key, each.value) for each in decoded] == [(data, data), (None, None)]


def test_users_own_serializers_are_configured_used_and_closed(
    bootstrap: str, new_topic: NewTopicName
) -> None:
    topic = new_topic(1)
    key, value = Reversed(), Reversed()
    settings = {"key.serializer": key, "value.serializer": value}
    with pytest.raises(InvalidSetting, match="my_option"):
        Producer(bootstrap, my_option=1, value_serializer="string")
    with Producer(bootstrap, configs={"my.option": 5}, **settings) as producer:  # type: ignore[arg-type]
        producer.send(topic, "abc", key="key")
    assert key.calls == [("configure", 5, True), ("close",)]
    assert value.calls == [("configure", 5, False), ("close",)]
    (record,) = read_all(bootstrap, topic)
    assert (record.key, record.value) == (b"yek", b"cba")


def test_what_a_serializer_cannot_take_is_refused_with_its_reason(
    bootstrap: str, new_topic: NewTopicName
) -> None:
    topic = new_topic(1)
    with Producer(bootstrap, value_serializer="integer") as producer:
        with pytest.raises(SerializationFailed, match=r"value for topic .* check what value\.serializer"):
            producer.send(topic, "text")
        with pytest.raises(SerializationFailed, match=r"the key is int, not bytes; encode it, or set key\."):
            producer.send(topic, 1, key=5)
    with pytest.raises(InvalidSetting, match="did you mean string"):
        Producer(bootstrap, value_serializer="strin")
    with pytest.raises(InvalidSetting, match="cannot be loaded"):
        Producer(bootstrap, value_serializer="no.such.Thing")


def test_a_record_that_cannot_be_read_stops_the_consumer_before_it(
    bootstrap: str, new_topic: NewTopicName
) -> None:
    topic = new_topic(1)
    with Producer(bootstrap) as producer:
        for value in (b"1", b"2", b"broken", b"4"):
            producer.send(topic, value)
    place = TopicPartition(topic, 0)
    with Consumer(bootstrap, value_deserializer="json") as consumer:
        consumer.assign({place: "start"})
        found: list[ConsumedRecord] = []
        poll_until(consumer, found, 2)
        for _ in range(2):
            with pytest.raises(DeserializationFailed, match="seek to offset 3") as caught:
                poll_until(consumer, found, 99)
        assert (caught.value.partition, caught.value.offset) == (place, 2)
        assert isinstance(caught.value.__cause__, json.JSONDecodeError)
        consumer.seek(place, 3)
        poll_until(consumer, found, 3)
    assert [each.value for each in found] == [1, 2, 4]


class Evens:
    """Partition 1 for even values, and it notes what it was given."""

    def __init__(self) -> None:
        self.seen: list[tuple[object, ...]] = []

    def configure(self, configs: Mapping[str, object]) -> None:
        self.seen.append(("configure", configs["linger.ms"]))

    def partition(
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        cluster: ClusterView,
    ) -> int:
        self.seen.append((topic, key, key_bytes, value, value_bytes, len(cluster.topics[topic].partitions)))
        return 1 if value % 2 == 0 else 0

    def close(self) -> None:
        self.seen.append(("close",))


def test_a_users_partitioner_sees_objects_and_bytes_and_an_explicit_partition_passes_it(
    bootstrap: str, new_topic: NewTopicName
) -> None:
    topic, own = new_topic(3), Evens()
    with Producer(
        bootstrap, partitioner=own, linger_ms=1, key_serializer="string", value_serializer="integer"
    ) as producer:
        assert producer.send(topic, 4, key="k").result(30).partition == 1
        assert producer.send(topic, 5).result(30).partition == 0
        assert producer.send(topic, 4, partition=2).result(30).partition == 2
    assert own.seen == [
        ("configure", 1),
        (topic, "k", b"k", 4, struct.pack(">i", 4), 3),
        (topic, None, None, 5, struct.pack(">i", 5), 3),
        ("close",),
    ]


def test_an_ordered_queue_keeps_one_order_in_one_partition(bootstrap: str, new_topic: NewTopicName) -> None:
    topic = new_topic(4)
    by_number = OrderedQueue(lambda _topic, _key, value: int(value["order"]))
    by_name = OrderedQueue(lambda _topic, _key, value: str(value["order"]))
    for own, expected in ((by_number, 10 % 4), (by_name, partition_of_key(b"10", 4))):
        with Producer(bootstrap, partitioner=own, value_serializer="json") as producer:
            futures = [
                producer.send(topic, {"order": 10, "step": step}, key=b"%d" % step) for step in range(5)
            ]
            assert {future.result(30).partition for future in futures} == {expected}


class Noting:
    def __init__(self, name: str, notes: list[tuple[object, ...]]) -> None:
        self.name, self.notes = name, notes

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        self.notes.append((self.name, "send", record.value))
        return record._replace(value=record.value + self.name)

    def on_acknowledgement(self, delivery: Delivery | None, error: BaseException | None) -> None:
        self.notes.append((self.name, "ack", None if delivery is None else delivery.offset, error))

    def on_consume(self, records: list[ConsumedRecord]) -> list[ConsumedRecord]:
        self.notes.append((self.name, "consume", len(records)))
        return [record._replace(value=record.value + self.name.encode()) for record in records]

    def on_commit(self, offsets: Mapping[TopicPartition, object]) -> None:
        self.notes.append((self.name, "commit", sorted(offsets)))

    def close(self) -> None:
        self.notes.append((self.name, "close"))


class Failing:
    def __getattr__(self, name: str) -> Any:
        if not name.startswith("on_"):
            raise AttributeError(name)

        def fail(*_: object) -> None:
            raise RuntimeError(f"{name} failed")

        return fail


def test_interceptors_see_records_in_order_and_a_failing_one_breaks_nothing(
    bootstrap: str, new_topic: NewTopicName, caplog: pytest.LogCaptureFixture
) -> None:
    topic = new_topic(1)
    notes: list[tuple[object, ...]] = []
    chain = [Noting("a", notes), Failing(), Noting("b", notes)]

    def delivered(delivery: Delivery | None, _error: ClientError | None) -> None:
        assert delivery is not None
        notes.append(("callback", delivery.offset))

    with (
        caplog.at_level(logging.ERROR),
        Producer(bootstrap, interceptor_classes=chain, value_serializer="string") as producer,
    ):
        producer.send(topic, "x", on_delivery=delivered)
        producer.flush(30)
        with pytest.raises(ClientError):
            producer.send(topic, "y", partition=9)
    assert notes[:5] == [
        ("a", "send", "x"),
        ("b", "send", "xa"),
        ("a", "ack", 0, None),
        ("b", "ack", 0, None),
        ("callback", 0),
    ]
    assert [each[:3] for each in notes[5:]] == [
        ("a", "send", "y"),
        ("b", "send", "ya"),
        ("a", "ack", None),
        ("b", "ack", None),
        ("a", "close"),
        ("b", "close"),
    ]
    assert "on_send of interceptor Failing failed" in caplog.text
    assert "on_acknowledgement of interceptor Failing failed" in caplog.text
    (record,) = read_all(bootstrap, topic)
    assert record.value == b"xab"


def test_interceptors_of_a_consumer_see_records_and_commits(bootstrap: str, new_topic: NewTopicName) -> None:
    topic = new_topic(1)
    with Producer(bootstrap) as producer:
        producer.send(topic, b"x")
    notes: list[tuple[object, ...]] = []
    chain = [Noting("a", notes), Failing(), Noting("b", notes)]
    place = TopicPartition(topic, 0)
    with Consumer(
        bootstrap, group_id=unique_name("group"), interceptor_classes=chain, enable_auto_commit=False
    ) as consumer:
        consumer.assign({place: "start"})
        found: list[ConsumedRecord] = []
        while not found:
            found = consumer.poll(1)
        consumer.commit()
    assert found[0].value == b"xab"
    assert notes == [
        ("a", "consume", 1),
        ("b", "consume", 1),
        ("a", "commit", [place]),
        ("b", "commit", [place]),
        ("a", "close"),
        ("b", "close"),
    ]


def test_close_0_fails_what_is_buffered_loudly(bootstrap: str, new_topic: NewTopicName) -> None:
    topic = new_topic(1)
    told: list[ClientError | None] = []
    producer = Producer(bootstrap, linger_ms=60_000)
    futures = [producer.send(topic, b"", on_delivery=lambda _, error: told.append(error)) for _ in range(5)]
    producer.close(0)
    assert all(isinstance(future.exception(0), Closed) for future in futures)
    assert all(isinstance(error, Closed) for error in told)
    assert len(told) == 5
    with pytest.raises(Closed):
        producer.send(topic, b"")
