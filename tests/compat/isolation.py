"""What a consumer reads under either isolation level."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, TopicPartition

from compat.broker import unique_name

_PATIENCE_S = 60


def read(bootstrap: str, topic: str, count: int, isolation: str = "read_committed") -> list[bytes]:
    """Everything in the topic's first partition, as soon as `count` records are there."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": unique_name("reader"),
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error() is None:
            values.append(message.value())
        elif len(values) >= count:
            break
    consumer.close()
    return values
