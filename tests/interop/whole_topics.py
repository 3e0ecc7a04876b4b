"""Everything that a topic holds, as a stock client sees it."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, KafkaError, TopicPartition

_PATIENCE_SECONDS = 90

Seen = tuple[int, tuple[int, int], bytes | None, bytes | None, list[tuple[str, bytes | None]] | None]
"""Offset, (timestamp type, timestamp), key, value, headers."""


def read_whole(bootstrap: str, topic: str, *, committed: bool = False) -> dict[int, list[Seen]]:
    """Every partition from its beginning to its end."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "fetch.message.max.bytes": 16 * 1024 * 1024,
        }
    )
    try:
        partitions = list(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        seen: dict[int, list[Seen]] = {partition: [] for partition in partitions}
        left = set(partitions)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while left:
            assert time.monotonic() < deadline, f"no end of {topic} {left} in sight"
            message = consumer.poll(1)
            if message is None:
                continue
            if message.error():
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                left.discard(message.partition())
                continue
            seen[message.partition()].append(
                (message.offset(), message.timestamp(), message.key(), message.value(), message.headers())
            )
        return seen
    finally:
        consumer.close()
