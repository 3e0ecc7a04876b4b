"""Consumers with assigned partitions: resets, long polls, fetch sessions, positions and times."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from compat.admins.confluent import ConfluentAdmin
from compat.broker import CreateTopic
from compat.cases import QUICK, Lane, few_cases
from compat.clients.confluent import Confluent
from compat.consumers.aio import AioConsumer
from compat.consumers.confluent import ConfluentConsumer
from compat.consumers.consumer import EARLIEST, ERROR, LATEST, AssignedConsumer, OutOfRange, Settings, read
from compat.consumers.kafka_python import KafkaPythonConsumer
from compat.record import Delivered, Record

OpenConsumer = Callable[..., AssignedConsumer]


@pytest.fixture(params=[ConfluentConsumer, KafkaPythonConsumer, AioConsumer], ids=lambda kind: kind.name)
def open_consumer(request: pytest.FixtureRequest, bootstrap: str) -> Iterator[OpenConsumer]:
    """Opens consumers of each stock client in turn, and closes them after the test."""
    opened: list[AssignedConsumer] = []

    def open_one(topic: str, **settings: object) -> AssignedConsumer:
        opened.append(request.param(bootstrap, topic, Settings(**settings)))  # type: ignore[arg-type]
        return opened[-1]

    yield open_one
    for consumer in opened:
        consumer.close()


@pytest.fixture
def write(bootstrap: str) -> Callable[..., None]:
    """Writes records with the given values."""

    def write_values(topic: str, *values: bytes, partition: int = 0, lane: Lane = QUICK) -> None:
        Confluent().write(
            bootstrap, topic, partition, [Record("value", value=value) for value in values], lane
        )

    return write_values


Write = Callable[..., None]


def _values(records: list[Delivered]) -> list[bytes | None]:
    return [record.value for record in records]


@pytest.mark.parametrize("position", [999, 2], ids=["beyond the end", "before the beginning"])
class TestAtAnOffsetThatIsNotThere:
    @pytest.fixture
    def topic(self, bootstrap: str, create_topic: CreateTopic, write: Write) -> str:
        """Offsets 5 to 9 exist."""
        topic = create_topic("ranged")
        write(topic, *(b"%d" % i for i in range(10)))
        ConfluentAdmin(bootstrap).delete_records(topic, 0, 5)
        return topic

    def test_earliest_reads_from_the_beginning(
        self, open_consumer: OpenConsumer, topic: str, position: int
    ) -> None:
        consumer = open_consumer(topic, reset=EARLIEST)
        consumer.assign({0: position})
        assert _values(read(consumer, 5)) == [b"5", b"6", b"7", b"8", b"9"]

    def test_latest_reads_what_comes(
        self, open_consumer: OpenConsumer, write: Write, topic: str, position: int
    ) -> None:
        consumer = open_consumer(topic, reset=LATEST)
        consumer.assign({0: position})
        assert consumer.poll(1.0) == []
        write(topic, b"new")
        assert _values(read(consumer, 1)) == [b"new"]

    def test_without_a_reset_the_application_is_told(
        self, open_consumer: OpenConsumer, topic: str, position: int
    ) -> None:
        consumer = open_consumer(topic, reset=ERROR)
        consumer.assign({0: position})
        with pytest.raises(OutOfRange):
            read(consumer, 1)


def test_waiting_fetch_answers_as_soon_as_a_record_arrives(
    open_consumer: OpenConsumer, create_topic: CreateTopic, write: Write
) -> None:
    topic = create_topic("awaited")
    consumer = open_consumer(topic, wait_ms=20_000)
    consumer.assign({0: EARLIEST})
    assert consumer.poll(0.3) == []
    written_at: list[float] = []

    def write_later() -> None:
        time.sleep(1.0)
        written_at.append(time.monotonic())
        write(topic, b"now")

    writer = threading.Thread(target=write_later)
    writer.start()
    records = consumer.poll(15.0)
    arrived_at = time.monotonic()
    writer.join()
    assert _values(records) == [b"now"]
    assert arrived_at - written_at[0] < 12.0  # the fetch itself would wait for 20


def test_waiting_fetch_answers_when_enough_bytes_are_there(
    open_consumer: OpenConsumer, create_topic: CreateTopic, write: Write
) -> None:
    """One small record is not enough, so the fetch stays; the large one completes it long before its time."""
    topic = create_topic("enough")
    write(topic, b"small")
    consumer = open_consumer(topic, wait_ms=25_000, min_bytes=5_000)
    consumer.assign({0: EARLIEST})
    assert consumer.poll(1.0) == []
    writer = threading.Thread(target=write, args=(topic, bytes(6_000)))
    started = time.monotonic()
    writer.start()
    records = read(consumer, 2)
    elapsed = time.monotonic() - started
    writer.join()
    assert _values(records) == [b"small", bytes(6_000)]
    assert elapsed < 20.0  # the fetch itself would wait for 25


def test_waiting_fetch_gives_what_there_is_when_its_time_is_up(
    open_consumer: OpenConsumer, create_topic: CreateTopic, write: Write
) -> None:
    topic = create_topic("timed-out")
    write(topic, b"small")
    consumer = open_consumer(topic, wait_ms=1_500, min_bytes=5_000)
    started = time.monotonic()
    consumer.assign({0: EARLIEST})
    assert _values(read(consumer, 1)) == [b"small"]
    assert time.monotonic() - started > 1.2


def test_read_committed_sees_what_is_written_without_transactions(
    open_consumer: OpenConsumer, create_topic: CreateTopic, write: Write
) -> None:
    topic = create_topic("committed")
    write(topic, b"idempotent", lane=Lane("idempotent", few_cases))
    write(topic, b"plain")
    consumer = open_consumer(topic, read_committed=True)
    consumer.assign({0: EARLIEST})
    assert _values(read(consumer, 2)) == [b"idempotent", b"plain"]


def test_batches_larger_than_the_fetch_limit_are_read_one_at_a_time(
    open_consumer: OpenConsumer, create_topic: CreateTopic, write: Write
) -> None:
    topic = create_topic("narrow")
    values = [bytes([i]) * 5_000 for i in range(20)]
    write(topic, *values, lane=Lane("pairs", few_cases, idempotent=False, many_requests=True))
    consumer = open_consumer(topic, partition_bytes=1_000)
    consumer.assign({0: EARLIEST})
    assert _values(read(consumer, 20)) == values


def test_many_partitions_are_followed_as_records_come_and_assignments_change(
    open_consumer: OpenConsumer, bootstrap: str, create_topic: CreateTopic
) -> None:
    """An incremental fetch session sees few partitions change out of many, then others added and dropped."""
    topic = create_topic("many", partitions=30)
    consumer = open_consumer(topic)

    def write_round(number: int, partitions: range) -> set[tuple[int, bytes | None]]:
        for partition in partitions:
            Confluent().write(bootstrap, topic, partition, [Record("round", value=b"%d" % number)], QUICK)
        return {(partition, b"%d" % number) for partition in partitions}

    def seen(count: int) -> set[tuple[int, bytes | None]]:
        records = read(consumer, count)
        assert len(records) == count
        return {(record.partition, record.value) for record in records}

    first = write_round(0, range(30))
    consumer.assign(dict.fromkeys(range(30), EARLIEST))
    assert seen(30) == first
    for number in range(1, 4):
        written = write_round(number, range(number * 3, number * 3 + 3))
        assert seen(3) == written
    consumer.assign(dict.fromkeys(range(10), LATEST))
    assert consumer.poll(1.0) == []
    written = write_round(4, range(5, 8))
    write_round(4, range(20, 22))
    assert seen(3) == written
    consumer.assign(dict.fromkeys(range(20, 30), EARLIEST))
    assert len(seen(12)) == 12


def test_paused_partition_waits_for_its_resumption(
    open_consumer: OpenConsumer, create_topic: CreateTopic, write: Write
) -> None:
    topic = create_topic("paused", partitions=2)
    write(topic, b"a", partition=0)
    write(topic, b"b", partition=1)
    consumer = open_consumer(topic)
    consumer.assign({0: EARLIEST, 1: EARLIEST})
    assert sorted(_values(read(consumer, 2))) == [b"a", b"b"]  # type: ignore[type-var]
    consumer.pause([0])
    write(topic, b"c", partition=0)
    write(topic, b"d", partition=1)
    assert _values(read(consumer, 1)) == [b"d"]
    assert consumer.poll(0.7) == []
    consumer.resume([0])
    assert _values(read(consumer, 1)) == [b"c"]


def test_watermarks_and_times_are_answered(
    open_consumer: OpenConsumer, bootstrap: str, create_topic: CreateTopic
) -> None:
    topic = create_topic("looked-up", configs={"retention.ms": "-1"})
    consumer = open_consumer(topic)
    assert consumer.watermarks(0) == (0, 0)
    start_ms = 1_700_000_000_000
    records = [Record("timed", value=b"v", timestamp_ms=start_ms + 1000 * i) for i in range(8)]
    Confluent().write(bootstrap, topic, 0, records, QUICK)
    assert consumer.watermarks(0) == (0, 8)
    assert consumer.offset_at(0, start_ms) == 0
    assert consumer.offset_at(0, start_ms + 2001) == 3
    ConfluentAdmin(bootstrap).delete_records(topic, 0, 5)
    assert consumer.watermarks(0) == (5, 8)
    assert consumer.offset_at(0, start_ms) == 5


def test_two_consumers_of_one_partition_both_read_all(
    open_consumer: OpenConsumer, create_topic: CreateTopic, write: Write
) -> None:
    topic = create_topic("shared")
    first, second = open_consumer(topic), open_consumer(topic)
    first.assign({0: EARLIEST})
    second.assign({0: EARLIEST})
    write(topic, b"1", b"2", b"3")
    assert _values(read(first, 3)) == [b"1", b"2", b"3"]
    assert _values(read(second, 3)) == [b"1", b"2", b"3"]
