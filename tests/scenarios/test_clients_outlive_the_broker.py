"""A stock client that writes and reads while its broker is stopped, killed and started again."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from ottla.testing import BrokerProcess
from scenarios.orders import PARTITIONS, TOPIC, Orders, create_orders_topic, read


@pytest.fixture
def broker() -> Iterator[BrokerProcess]:
    with BrokerProcess() as process:
        create_orders_topic(process.bootstrap)
        yield process


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
