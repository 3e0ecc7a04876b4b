"""Faults that a test asks for meet clients no one here wrote: they retry, and nothing is lost or doubled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

import aiokafka
import confluent_kafka
import pytest

from compat.clients.kafka_package import kafka
from ottla.client import Producer, read
from ottla.testing import BrokerProcess, BrokerThread

NewTopic = Callable[..., str]
Produce = Callable[[str, str, list[bytes]], None]

COUNT = 30
VALUES = [b"%04d" % number for number in range(COUNT)]


def with_confluent(bootstrap: str, topic: str, values: list[bytes]) -> None:
    failed: list[object] = []
    settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "batch.num.messages": 5}
    producer = confluent_kafka.Producer({**settings, "retry.backoff.ms": 10, "reconnect.backoff.ms": 10})
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: error and failed.append(error))
    assert producer.flush(30) == 0
    assert not failed


def with_kafka_python(bootstrap: str, topic: str, values: list[bytes]) -> None:
    producer = kafka.KafkaProducer(
        bootstrap_servers=bootstrap, enable_idempotence=True, retry_backoff_ms=10, batch_size=200
    )
    futures = [producer.send(topic, value) for value in values]
    for future in futures:
        future.get(30)
    producer.close()


def with_aiokafka(bootstrap: str, topic: str, values: list[bytes]) -> None:
    async def produce() -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, enable_idempotence=True, retry_backoff_ms=10, max_batch_size=200
        )
        async with producer:
            sent = [await producer.send(topic, value) for value in values]
            await asyncio.wait_for(asyncio.gather(*sent), 30)

    asyncio.run(produce())


def with_ottla(bootstrap: str, topic: str, values: list[bytes]) -> None:
    with Producer(bootstrap, retry_backoff_ms=10, batch_size=200) as producer:
        futures = [producer.send(topic, value) for value in values]
    for future in futures:
        future.result()


PRODUCERS = [with_confluent, with_kafka_python, with_aiokafka, with_ottla]


def named(function: Produce) -> str:
    return function.__name__.removeprefix("with_")


@pytest.fixture
def broker(ottla_faults: BrokerProcess) -> Iterator[BrokerProcess]:
    yield ottla_faults
    assert ottla_faults.faults_left == 0, "a fault met no request"


def values_of(broker: BrokerProcess | BrokerThread, topic: str) -> list[bytes | None]:
    return [record.value for record in read(broker.bootstrap, topic)]


@pytest.mark.parametrize("produce", PRODUCERS, ids=named)
@pytest.mark.parametrize(
    "error",
    [
        "NOT_LEADER_OR_FOLLOWER",
        pytest.param("UNKNOWN_TOPIC_OR_PARTITION", marks=pytest.mark.slow),
        pytest.param("REQUEST_TIMED_OUT", marks=pytest.mark.slow),
    ],
)
def test_a_failed_produce_is_retried_in_order_and_once(
    broker: BrokerProcess, ottla_topic: str, produce: Produce, error: str
) -> None:
    broker.fail(api="Produce", error=error, times=2)
    produce(broker.bootstrap, ottla_topic, VALUES)
    assert values_of(broker, ottla_topic) == VALUES


@pytest.mark.parametrize("produce", PRODUCERS, ids=named)
@pytest.mark.parametrize("after", [False, True], ids=["before_the_work", "after_the_work"])
def test_a_cut_connection_loses_and_doubles_nothing(
    broker: BrokerProcess, ottla_topic: str, produce: Produce, after: bool
) -> None:
    broker.disconnect("Produce", after=after)
    produce(broker.bootstrap, ottla_topic, VALUES)
    assert values_of(broker, ottla_topic) == VALUES


@pytest.mark.parametrize("produce", PRODUCERS, ids=named)
def test_a_client_waits_for_a_delayed_answer(
    broker: BrokerProcess, ottla_topic: str, produce: Produce
) -> None:
    broker.delay("Produce", seconds=0.3)
    began = time.monotonic()
    produce(broker.bootstrap, ottla_topic, VALUES)
    assert time.monotonic() - began >= 0.3
    assert values_of(broker, ottla_topic) == VALUES


def test_a_corrupt_answer_is_told_by_librdkafka_to_who_sent_the_records(
    broker: BrokerProcess, ottla_topic: str
) -> None:
    broker.corrupt("Produce")
    with pytest.raises(AssertionError, match="_UNDERFLOW"):
        with_confluent(broker.bootstrap, ottla_topic, VALUES)


def test_our_own_producer_outlives_a_corrupt_answer_exactly_once(
    broker: BrokerProcess, ottla_topic: str
) -> None:
    broker.corrupt("Produce", times=2)
    with_ottla(broker.bootstrap, ottla_topic, VALUES)
    assert values_of(broker, ottla_topic) == VALUES


@pytest.mark.parametrize("produce", PRODUCERS, ids=named)
@pytest.mark.parametrize(
    ("api", "error"),
    [("Metadata", "LEADER_NOT_AVAILABLE"), ("InitProducerId", "COORDINATOR_LOAD_IN_PROGRESS")],
)
def test_what_comes_before_the_first_record_is_tried_again(
    broker: BrokerProcess, ottla_topic: str, produce: Produce, api: str, error: str
) -> None:
    broker.fail(api, error)
    produce(broker.bootstrap, ottla_topic, VALUES)
    assert values_of(broker, ottla_topic) == VALUES


# -- consumers ---------------------------------------------------------------------------------------------


def consumed_by_confluent(bootstrap: str, topic: str, group: str) -> list[bytes]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "reconnect.backoff.ms": 10,
            "fetch.error.backoff.ms": 10,
        }
    )
    consumer.subscribe([topic])
    values: list[bytes] = []
    deadline = time.monotonic() + 40
    while len(values) < COUNT and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            values.append(message.value())
    consumer.commit(asynchronous=False)
    consumer.close()
    return values


def consumed_by_kafka_python(bootstrap: str, topic: str, group: str) -> list[bytes]:
    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        retry_backoff_ms=10,
        reconnect_backoff_ms=10,
    )
    values: list[bytes] = []
    deadline = time.monotonic() + 40
    while len(values) < COUNT and time.monotonic() < deadline:
        for records in consumer.poll(500).values():
            values += [record.value for record in records]
    consumer.commit()
    consumer.close()
    return values


def consumed_by_aiokafka(bootstrap: str, topic: str, group: str) -> list[bytes]:
    async def consume() -> list[bytes]:
        consumer = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            retry_backoff_ms=10,
        )
        async with consumer:
            values = [(await asyncio.wait_for(consumer.getone(), 40)).value for _ in range(COUNT)]
            await consumer.commit()
            return values

    return asyncio.run(consume())


def consumed_by_ottla(bootstrap: str, topic: str, group: str) -> list[bytes]:
    from ottla.client import Consumer

    values: list[bytes] = []
    deadline = time.monotonic() + 40
    with Consumer(bootstrap, group_id=group, auto_offset_reset="earliest", retry_backoff_ms=10) as consumer:
        consumer.subscribe([topic])
        while len(values) < COUNT and time.monotonic() < deadline:
            values += [record.value or b"" for record in consumer.poll(0.5)]
        consumer.commit()
    return values


CONSUMERS = [consumed_by_confluent, consumed_by_kafka_python, consumed_by_aiokafka, consumed_by_ottla]


@pytest.mark.parametrize("consume", CONSUMERS, ids=lambda each: each.__name__.removeprefix("consumed_by_"))
@pytest.mark.parametrize(
    "fault",
    [
        "fetch fails",
        "answer is lost",
        "commit fails",
        pytest.param("fetch is cut", marks=pytest.mark.slow),
        pytest.param("join fails", marks=pytest.mark.slow),
        pytest.param("offsets fail", marks=pytest.mark.slow),
    ],
)
def test_a_group_reads_everything_once_through_a_fault(
    broker: BrokerProcess, ottla_topic: str, consume: Callable[[str, str, str], list[bytes]], fault: str
) -> None:
    with_ottla(broker.bootstrap, ottla_topic, VALUES)
    match fault:
        case "fetch fails":
            broker.fail("Fetch", "NOT_LEADER_OR_FOLLOWER")
        case "fetch is cut":
            broker.disconnect("Fetch")
        case "answer is lost":
            broker.disconnect("Fetch", after=True)
        case "join fails":
            broker.fail("JoinGroup", "COORDINATOR_LOAD_IN_PROGRESS")
        case "commit fails":
            broker.fail("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS")
        case _:
            broker.fail("OffsetFetch", "COORDINATOR_LOAD_IN_PROGRESS")
    group = f"group-of-{ottla_topic}"
    assert consume(broker.bootstrap, ottla_topic, group) == VALUES
