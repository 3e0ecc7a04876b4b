"""The consumer against a real broker: what stock producers wrote, places, ends, pauses, many partitions."""

from __future__ import annotations

import threading
import time

import pytest
from confluent_kafka import Producer as ConfluentProducer

from client.conftest import NewTopicName
from ottla.client.admin import Admin
from ottla.client.consumer import Consumer
from ottla.client.errors import (
    ClientError,
    Closed,
    Misused,
    OffsetOutOfRange,
    UnknownPartition,
    UnknownTopic,
)
from ottla.client.fetched import ConsumedRecord
from ottla.client.offset_spec import AtTime, End, FromEnd, Start
from ottla.client.producer import Producer
from ottla.client.reading import read
from ottla.model.topics import TopicPartition


@pytest.fixture(scope="session")
def filled(bootstrap: str, new_topic: NewTopicName) -> str:
    """Three partitions, each with the numbers 0 to 99 as values, a millisecond apart."""
    name = new_topic(3, retention_ms="-1")
    with Producer(bootstrap, batch_size=600, linger_ms=50) as producer:
        for number in range(100):
            for partition in range(3):
                producer.send(name, b"%d" % number, partition=partition, timestamp_ms=1_000_000 + number)
    return name


def poll_until(consumer: Consumer, count: int, seconds: float = 60) -> list[ConsumedRecord]:
    records: list[ConsumedRecord] = []
    deadline = time.monotonic() + seconds
    while len(records) < count and time.monotonic() < deadline:
        records += consumer.poll(0.5)
    return records


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_a_stock_client_wrote_is_read(bootstrap: str, new_topic: NewTopicName, codec: str) -> None:
    name = new_topic(retention_ms="-1")
    stock = ConfluentProducer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 20})
    for number in range(500):
        headers = [("h", b"%d" % number), ("none", None)] if number % 3 == 0 else None
        key = None if number % 5 == 0 else b"k%d" % number
        stock.produce(name, b"v%d" % number * 30, key, headers=headers, timestamp=1_000 + number)
    assert stock.flush(30) == 0
    with Consumer(bootstrap) as consumer:
        consumer.assign({TopicPartition(name, 0): Start()})
        records = poll_until(consumer, 500)
    assert [record.offset for record in records] == list(range(500))
    for number, record in enumerate(records):
        assert record.topic == name
        assert record.timestamp_ms == 1_000 + number
        assert record.key == (None if number % 5 == 0 else b"k%d" % number)
        assert record.value == b"v%d" % number * 30
        assert record.headers == ((("h", b"%d" % number), ("none", None)) if number % 3 == 0 else ())


@pytest.mark.parametrize(
    ("place", "first"),
    [
        ("start", 0),
        (Start(), 0),
        (42, 42),
        ("42", 42),
        ("-5", 95),
        (FromEnd(200), 0),
        (AtTime(1_000_050), 50),
        ("end", 100),
        (End(), 100),
        (AtTime(9_000_000), 100),
    ],
)
def test_every_place_can_be_the_start(bootstrap: str, filled: str, place: object, first: int) -> None:
    target = TopicPartition(filled, 1)
    with Consumer(bootstrap) as consumer:
        consumer.assign({target: place})  # type: ignore[dict-item]
        assert consumer.position(target) == first
        records = poll_until(consumer, 100 - first, 10 if first < 100 else 0)
    assert [record.value for record in records] == [b"%d" % number for number in range(first, 100)]


def test_several_partitions_are_read_each_in_its_order(bootstrap: str, filled: str) -> None:
    targets = [TopicPartition(filled, index) for index in range(3)]
    with Consumer(bootstrap, max_poll_records=7) as consumer:
        consumer.assign(dict.fromkeys(targets, "start"))
        records: list[ConsumedRecord] = []
        while len(records) < 300:
            polled = consumer.poll(30)
            assert 0 < len(polled) <= 7
            records += polled
        assert consumer.poll(0) == []
        assert all(consumer.at_end(target) for target in targets)
        assert {consumer.end_offset(target) for target in targets} == {100}
    for index in range(3):
        values = [record.value for record in records if record.partition == index]
        assert values == [b"%d" % number for number in range(100)]


def test_new_records_are_followed_across_many_fetches(bootstrap: str, new_topic: NewTopicName) -> None:
    name = new_topic(2)
    targets = [TopicPartition(name, 0), TopicPartition(name, 1)]
    with Consumer(bootstrap) as consumer, Producer(bootstrap, linger_ms=0) as producer:
        consumer.assign(dict.fromkeys(targets, "end"))
        assert consumer.poll(0) == []
        for number in range(40):
            producer.send(name, b"%d" % number, partition=number % 2).result(30)
            (record,) = poll_until(consumer, 1)
            assert record.value == b"%d" % number


def test_seek_goes_anywhere_and_drops_what_was_fetched_ahead(bootstrap: str, filled: str) -> None:
    target = TopicPartition(filled, 0)
    with Consumer(bootstrap, max_poll_records=3) as consumer:
        consumer.assign({target: "start"})
        assert [record.offset for record in poll_until(consumer, 3)] == [0, 1, 2]
        for place, offset in ((50, 50), ("-1", 99), ("start", 0)):
            consumer.seek(target, place)
            assert poll_until(consumer, 1)[0].offset == offset
        consumer.seek_to_end()
        assert consumer.position(target) == 100
        consumer.seek_to_beginning(target)
        assert poll_until(consumer, 1)[0].offset == 0


def test_a_paused_partition_waits_and_loses_nothing(bootstrap: str, filled: str) -> None:
    first, second = TopicPartition(filled, 0), TopicPartition(filled, 1)
    with Consumer(bootstrap, max_poll_records=10) as consumer:
        consumer.assign({first: "start", second: "start"})
        before = poll_until(consumer, 10)
        consumer.pause(first)
        paused = poll_until(consumer, 100 - len([each for each in before if each.partition == 1]))
        assert {record.partition for record in paused} == {1}
        assert consumer.poll(0.3) == []
        consumer.resume(first)
        after = poll_until(consumer, 100 - len([each for each in before if each.partition == 0]))
    values = [record.value for record in before + after if record.partition == 0]
    assert values == [b"%d" % number for number in range(100)]


def test_an_offset_that_is_gone_is_reset_or_told(
    bootstrap: str, new_topic: NewTopicName, admin: Admin
) -> None:
    name = new_topic()
    target = TopicPartition(name, 0)
    with Producer(bootstrap, linger_ms=0) as producer:
        for number in range(10):
            producer.send(name, b"%d" % number).result(30)
    admin.delete_records({target: 6})
    for reset, expected in (("earliest", 6), ("latest", 10)):
        with Consumer(bootstrap, auto_offset_reset=reset) as consumer:
            consumer.assign({target: 2})
            records = poll_until(consumer, 4, 3 if reset == "latest" else 60)
            assert [record.offset for record in records] == list(range(expected, 10))
            assert consumer.position(target) == 10
    with Consumer(bootstrap, auto_offset_reset="none") as consumer:
        consumer.assign({target: 2})
        with pytest.raises(OffsetOutOfRange, match=f"{target} at offset 2"):
            poll_until(consumer, 1)
        with pytest.raises(ClientError, match=r"auto\.offset\.reset"):
            consumer.assign([TopicPartition("other", 0)])


def test_partitions_can_come_and_go(bootstrap: str, filled: str) -> None:
    first, second = TopicPartition(filled, 0), TopicPartition(filled, 2)
    with Consumer(bootstrap, max_poll_records=5) as consumer:
        consumer.assign({first: "start"})
        assert len(poll_until(consumer, 5)) == 5
        consumer.assign([first, second])  # goes on where it was; the new one is at the end
        assert poll_until(consumer, 5)[0].offset == 5
        assert consumer.position(second) == 100
        consumer.assign({second: 98})
        assert [record.offset for record in poll_until(consumer, 2)] == [98, 99]
        with pytest.raises(ClientError, match="not assigned"):
            consumer.position(first)


def test_a_batch_larger_than_the_limit_is_still_read(bootstrap: str, new_topic: NewTopicName) -> None:
    name = new_topic(2)
    with Producer(bootstrap) as producer:
        for partition in range(2):
            producer.send(name, b"x" * 300_000, partition=partition)
    with Consumer(bootstrap, max_partition_fetch_bytes=1000, fetch_max_bytes=1000) as consumer:
        consumer.assign({TopicPartition(name, 0): 0, TopicPartition(name, 1): 0})
        assert {record.partition for record in poll_until(consumer, 2)} == {0, 1}


def test_a_poll_has_records_when_there_are_enough_or_time_is_up(
    bootstrap: str, new_topic: NewTopicName
) -> None:
    name = new_topic()
    place = TopicPartition(name, 0)
    with Producer(bootstrap, linger_ms=0) as producer:
        producer.send(name, b"little").result(30)
        with Consumer(bootstrap, fetch_min_bytes=10_000_000, fetch_max_wait_ms=200) as consumer:
            consumer.assign({place: "start"})
            assert [record.value for record in consumer.poll(30)] == [b"little"]
        with Consumer(bootstrap, fetch_min_bytes=10_000, fetch_max_wait_ms=25_000) as consumer:
            consumer.assign({place: "start"})
            assert consumer.poll(0.5) == []
            producer.send(name, b"x" * 10_000).result(30)
            assert [record.offset for record in consumer.poll(20)] == [0, 1]


def test_a_topic_created_anew_is_read_from_its_start(
    bootstrap: str, admin: Admin, new_topic: NewTopicName
) -> None:
    name = new_topic()
    target = TopicPartition(name, 0)
    with Consumer(bootstrap, auto_offset_reset="earliest", metadata_max_age_ms=300) as consumer:
        consumer.assign({target: 0})
        with Producer(bootstrap) as producer:
            producer.send(name, b"old").result(30)
        assert poll_until(consumer, 1)[0].value == b"old"
        admin.delete_topic(name)
        admin.create_topic(name, partitions=1)
        with Producer(bootstrap) as producer:
            for value in (b"new 0", b"new 1"):
                producer.send(name, value).result(30)
        assert poll_until(consumer, 1)[0].value in (b"new 0", b"new 1")


def test_a_closed_consumer_says_so(bootstrap: str) -> None:
    consumer = Consumer(bootstrap)
    consumer.close()
    with pytest.raises(Closed):
        consumer.poll()


@pytest.mark.parametrize(
    ("start", "stop", "offsets"),
    [
        ("start", "end", range(100)),
        (10, 20, range(10, 20)),
        ("-3", "end", range(97, 100)),
        ("start", "-97", range(3)),
        (AtTime(1_000_010), AtTime(1_000_012), range(10, 12)),
        (20, 10, range(0)),
        ("end", "end", range(0)),
    ],
)
def test_read_goes_from_place_to_place_and_ends(
    bootstrap: str, filled: str, start: object, stop: object, offsets: range
) -> None:
    found: dict[int, list[int]] = {0: [], 1: [], 2: []}
    with read(bootstrap, filled, start, stop) as reading:  # type: ignore[arg-type]
        for record in reading:
            found[record.partition].append(record.offset)
    assert found == {partition: list(offsets) for partition in range(3)}


def test_read_takes_some_partitions_only(bootstrap: str, filled: str) -> None:
    with read(bootstrap, filled, "-1", partitions=[2]) as reading:
        assert [(record.partition, record.offset) for record in reading] == [(2, 99)]
    with pytest.raises(UnknownPartition):
        read(bootstrap, filled, partitions=[3])
    with pytest.raises(UnknownTopic, match=filled):
        read(bootstrap, filled[:-1])


def test_read_without_a_stop_follows(bootstrap: str, new_topic: NewTopicName) -> None:
    name = new_topic()
    with read(bootstrap, name, "end", None) as reading, Producer(bootstrap) as producer:
        assert reading.poll(0.05) == []
        producer.send(name, b"later").result(30)
        assert [record.value for record in reading.poll(30)] == [b"later"]
        assert not reading.is_over


def test_without_a_commit_a_group_starts_so_long_ago(bootstrap: str, new_topic: NewTopicName) -> None:
    topic, now_ms = new_topic(1), time.time_ns() // 1_000_000
    with Producer(bootstrap) as producer:
        for hours in (3, 2, 1, 0):
            producer.send(topic, b"%d" % hours, timestamp_ms=now_ms - hours * 3_600_000)
    settings: dict[str, object] = {"group.id": topic, "auto.offset.reset": "by_duration:PT2H30M"}
    with Consumer(bootstrap, strategy=(), **settings) as consumer:
        consumer.subscribe([topic])
        found: list[bytes] = []
        while len(found) < 3:
            found += [record.value for record in consumer.poll(1)]
    assert found == [b"2", b"1", b"0"]


def test_a_second_thread_is_refused_while_the_first_one_polls(
    bootstrap: str, new_topic: NewTopicName
) -> None:
    refused: list[Exception] = []
    with Consumer(bootstrap) as consumer:
        consumer.assign([TopicPartition(new_topic(), 0)])
        polls = threading.Event()

        def intrude() -> None:
            polls.wait()
            while not refused:
                try:
                    consumer.poll(0)
                except Misused as error:
                    refused.append(error)

        intruder = threading.Thread(target=intrude)
        intruder.start()
        polls.set()
        while intruder.is_alive():
            try:
                consumer.poll(0.5)
            except Misused:  # the other one was first, this time
                continue
        intruder.join()
        assert consumer.poll(0) == []
    assert "give each thread one of its own" in str(refused[0])
