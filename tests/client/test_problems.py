"""Clients tell why nothing goes on, and what is bounded ends with that reason."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from compat.waiting import eventually
from ottla.client import Admin, Consumer, Producer, TopicPartition, aio, read
from ottla.client.errors import BrokerError, ClientError, TimedOut
from ottla.testing import BrokerProcess

REASON = "a file of the partition cannot be read or written"


@pytest.fixture
def broker() -> Iterator[BrokerProcess]:
    with BrokerProcess() as broker:
        with Admin(broker.bootstrap) as admin:
            admin.create_topic("topic", partitions=1)
        with Producer(broker.bootstrap) as producer:
            producer.send("topic", b"first")
        yield broker


def reason(problem: ClientError | None) -> str:
    return "" if problem is None else problem.text


def test_a_producer_tells_why_records_are_not_delivered_until_they_are(broker: BrokerProcess) -> None:
    with Producer(broker.bootstrap) as producer:
        with broker.fail("Produce", "KAFKA_STORAGE_ERROR", times=None):
            sent = producer.send("topic", b"second")
            assert eventually(lambda: REASON in reason(producer.problem))
        sent.result(60)
        assert producer.problem is None


def test_a_consumer_tells_why_nothing_comes_until_it_does(broker: BrokerProcess) -> None:
    with Consumer(broker.bootstrap) as consumer:
        consumer.assign({TopicPartition("topic", 0): "start"})
        with broker.fail("Fetch", "KAFKA_STORAGE_ERROR", times=None):
            assert eventually(lambda: not consumer.poll(0.1) and REASON in reason(consumer.problem))
        assert eventually(lambda: bool(consumer.poll(0.1)))
        assert consumer.problem is None


def test_a_place_that_cannot_be_looked_up_is_a_reason_too(broker: BrokerProcess) -> None:
    with Consumer(broker.bootstrap) as consumer:
        consumer.assign({TopicPartition("topic", 0): "start"})
        with broker.fail("ListOffsets", "KAFKA_STORAGE_ERROR", times=None):
            assert eventually(lambda: not consumer.poll(0.1) and REASON in reason(consumer.problem))
        assert eventually(lambda: bool(consumer.poll(0.1)))


def test_a_reading_with_a_stop_ends_when_brokers_do_not_give_it(broker: BrokerProcess) -> None:
    with broker.fail("Fetch", "KAFKA_STORAGE_ERROR", times=None):
        with pytest.raises(TimedOut, match=r"nothing came for 1 s: .*KAFKA_STORAGE_ERROR") as failed:
            list(read(broker.bootstrap, "topic", default_api_timeout_ms=1_000))
        assert isinstance(failed.value.__cause__, BrokerError)
        with read(broker.bootstrap, "topic", stop=None, default_api_timeout_ms=300) as following:
            assert eventually(lambda: not following.poll(0.5) and REASON in reason(following.problem))
            following.poll(0.5)  # for ever, because so it was asked for
    assert [record.value for record in read(broker.bootstrap, "topic")] == [b"first"]


def test_asyncio_tells_the_same(broker: BrokerProcess) -> None:
    async def stuck() -> None:
        async with aio.Producer(broker.bootstrap) as producer:
            with broker.fail("Produce", "KAFKA_STORAGE_ERROR", times=None):
                sent = await producer.send("topic", b"second")
                while REASON not in reason(producer.problem):
                    await asyncio.sleep(0.01)
            await sent

    asyncio.run(stuck())
