"""Numbered orders, written by an idempotent producer, and read back."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

TOPIC = "orders"
PARTITIONS = 2
_PATIENCE_SECONDS = 60  # without any news


def create_orders_topic(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)


class Orders:
    """Numbered orders, alternating over the partitions, with acks=all from an idempotent producer."""

    def __init__(self, bootstrap: str, value_bytes: int = 0) -> None:
        self.count = 0
        self._padding = b" " * value_bytes
        self.failed: list[KafkaError] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.num.messages": 20,
                "message.timeout.ms": 300_000,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 200,
            }
        )

    def value(self, number: int) -> bytes:
        return b"%d" % number + self._padding

    def write(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for _ in range(20):
                value = self.value(self.count)
                self._producer.produce(
                    TOPIC, value, partition=self.count % PARTITIONS, on_delivery=self._delivered
                )
                self.count += 1
            self._producer.poll(0.005)

    def finish(self) -> None:
        left, deadline = len(self._producer), time.monotonic() + _PATIENCE_SECONDS
        while left and time.monotonic() < deadline:
            if (still := self._producer.flush(1)) < left:
                left, deadline = still, time.monotonic() + _PATIENCE_SECONDS
        assert left == 0

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self.failed.append(error)


def read(bootstrap: str, partition: int, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, partition, 0)])
    values: list[bytes] = []
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while len(values) < count and time.monotonic() < deadline:
        if came := [message.value() for message in consumer.consume(500, 0.5) if message.error() is None]:
            values += came
            deadline = time.monotonic() + _PATIENCE_SECONDS
    values += [message.value() for message in consumer.consume(500, 0.2) if message.error() is None]
    consumer.close()
    return values
