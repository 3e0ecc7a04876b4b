"""A stock client that writes and reads while its broker is stopped, killed and started again."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing import BrokerProcess

TOPIC = "orders"
PARTITIONS = 2


@pytest.fixture
def broker() -> Iterator[BrokerProcess]:
    with BrokerProcess() as process:
        admin = AdminClient({"bootstrap.servers": process.bootstrap})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)
        yield process


class Orders:
    """Numbered orders, alternating over the partitions, written by an idempotent producer."""

    def __init__(self, bootstrap: str) -> None:
        self.count = 0
        self.failed: list[KafkaError] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.num.messages": 20,
                "message.timeout.ms": 60_000,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 200,
            }
        )

    def write(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for _ in range(20):
                value = b"%d" % self.count
                self._producer.produce(
                    TOPIC, value, partition=self.count % PARTITIONS, on_delivery=self._delivered
                )
                self.count += 1
            self._producer.poll(0.005)

    def finish(self) -> None:
        assert self._producer.flush(60) == 0

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self.failed.append(error)


def read(bootstrap: str, partition: int, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, partition, 0)])
    values: list[bytes] = []
    deadline = time.monotonic() + 30
    while len(values) < count and time.monotonic() < deadline:
        values += [message.value() for message in consumer.consume(500, 0.5) if message.error() is None]
    values += [message.value() for message in consumer.consume(500, 0.2) if message.error() is None]
    consumer.close()
    return values


def test_an_idempotent_producer_writes_each_order_once_and_in_order(broker: BrokerProcess) -> None:
    orders = Orders(broker.bootstrap)
    for end in (broker.kill, broker.stop, broker.kill):
        orders.write(0.3)
        end()
        orders.write(0.1)
        broker.start()
    orders.write(0.2)
    orders.finish()
    assert not orders.failed
    for partition in range(PARTITIONS):
        expected = [b"%d" % number for number in range(partition, orders.count, PARTITIONS)]
        assert read(broker.bootstrap, partition, len(expected)) == expected


def test_a_reader_goes_on_where_it_was(broker: BrokerProcess) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "reconnect.backoff.max.ms": 200,
        }
    )
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    orders = Orders(broker.bootstrap)
    seen: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}

    def read_on() -> None:
        deadline = time.monotonic() + 30
        while sum(map(len, seen.values())) < orders.count and time.monotonic() < deadline:
            for message in consumer.consume(500, 0.2):
                if message.error() is None:
                    seen[message.partition()].append(message.value())

    for end in (broker.stop, broker.kill):
        orders.write(0.2)
        orders.finish()
        read_on()
        end()
        broker.start()
    orders.write(0.2)
    orders.finish()
    read_on()
    consumer.close()
    assert not orders.failed
    for partition in range(PARTITIONS):
        assert seen[partition] == [b"%d" % number for number in range(partition, orders.count, PARTITIONS)]
