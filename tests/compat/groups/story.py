"""What happens to a group under load, whatever its members are written in."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from itertools import count

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat.broker import unique_name
from compat.groups.crew import PYTHON_CLIENTS, Crew
from ottla.testing import BrokerProcess

PARTITIONS = 6
SETTINGS = {
    "group.initial.rebalance.delay.ms": "300",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.heartbeat.interval.ms": "300",
}


def new_topic(broker: BrokerProcess, partitions: int) -> str:
    name = unique_name("topic")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result(30)
    return name


class Load:
    """A producer that writes numbered records until it is told to stop."""

    def __init__(self, broker: BrokerProcess, topic: str) -> None:
        self.acknowledged: set[str] = set()
        self._topic = topic
        self._stopping = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "enable.idempotence": True,
                "reconnect.backoff.max.ms": 200,
                "message.timeout.ms": 60_000,
            }
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        for number in count():
            if self._stopping.wait(0.005):
                break
            value = str(number)
            self._producer.produce(
                self._topic, value, partition=number % PARTITIONS, on_delivery=self._delivered
            )
            self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            value = message.value()
            assert value is not None
            self.acknowledged.add(value.decode())

    def stop(self) -> set[str]:
        self._stopping.set()
        self._thread.join()
        assert self._producer.flush(60) == 0
        return self.acknowledged


def committed(broker: BrokerProcess, group: str, topic: str) -> list[int]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    asked = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    offsets = [each.offset for each in consumer.committed(asked, timeout=30)]
    consumer.close()
    return offsets


def ends(broker: BrokerProcess, topic: str) -> list[int]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "nobody"})
    found = [
        consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)[1]
        for partition in range(PARTITIONS)
    ]
    consumer.close()
    return found


def members_come_and_go(
    broker: BrokerProcess, client: str, strategy: str, commands: Mapping[str, list[str]] = PYTHON_CLIENTS
) -> None:
    """From one to five; one is killed, one leaves; nothing that was acknowledged is missed."""
    topic, group = new_topic(broker, PARTITIONS), unique_name("group")
    load = Load(broker, topic)
    try:
        with Crew(client, strategy, broker.bootstrap, group, topic, commands) as crew:
            crew.add()
            crew.wait_for_shares(6)
            crew.add(2)
            crew.wait_for_shares(2, 2, 2)
            crew.alive[1].kill()
            crew.wait_for_shares(3, 3)
            crew.add(3)
            crew.wait_for_shares(2, 1, 1, 1, 1)
            crew.alive[0].leave()
            crew.wait_for_shares(2, 2, 1, 1)
            crew.wait_for(load.stop())
            for member in crew.alive:
                member.leave()
    finally:
        load.stop()
    assert committed(broker, group, topic) == ends(broker, topic)
