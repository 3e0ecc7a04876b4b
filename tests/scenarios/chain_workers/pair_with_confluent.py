"""One of the workers of exactly_once_pair.py, with confluent-kafka.

A dynamic member, so its partitions go to the others when it dies, and come back with its successor.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

_PATIENCE_S = 30
_RECORDS_PER_TRANSACTION = 20


class Source:
    """Records of partitions that are its own, from what is committed on."""

    def __init__(self, bootstrap: str, topic: str, protocol: str) -> None:
        settings: dict[str, Any] = {"group.protocol": protocol}
        if protocol == "classic":
            settings |= {"session.timeout.ms": 3_000, "heartbeat.interval.ms": 500}
        self.consumer = Consumer(
            {
                **settings,
                "bootstrap.servers": bootstrap,
                "group.id": "chain",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "reconnect.backoff.max.ms": 200,
            }
        )
        self._has_moved = False
        self.consumer.subscribe([topic], on_assign=self._moved, on_revoke=self._moved, on_lost=self._moved)

    def _moved(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._has_moved = True

    def take(self) -> list[Message]:
        messages = [
            each for each in self.consumer.consume(_RECORDS_PER_TRANSACTION, 0.2) if each.error() is None
        ]
        if self._has_moved:  # some of them may be another's by now
            self._has_moved = False
            self.rewind()
            return []
        return messages

    def rewind(self) -> None:
        for place in self.consumer.committed(self.consumer.assignment(), _PATIENCE_S):
            if place.offset < 0:
                place.offset = 0
            with contextlib.suppress(KafkaException):  # it was taken away meanwhile
                self.consumer.seek(place)


def main(bootstrap: str, topic: str, target: str, partitions: int, name: str, protocol: str) -> None:
    source = Source(bootstrap, topic, protocol)
    while True:  # a producer that failed for good is replaced, as an application would
        with contextlib.suppress(KafkaException):
            run(bootstrap, source, target, partitions, name)


def run(bootstrap: str, source: Source, target: str, partitions: int, name: str) -> None:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": f"chain-{name}",
            "transaction.timeout.ms": 10_000,
            "metadata.recovery.strategy": "none",  # librdkafka 2.16 can hang when its only broker was away
            "linger.ms": 0,
            "reconnect.backoff.max.ms": 200,
        }
    )
    producer.init_transactions(_PATIENCE_S)
    source.rewind()
    while True:
        messages = source.take()
        if not messages:
            continue
        producer.begin_transaction()
        try:
            send(producer, source.consumer, messages, target, partitions)
            producer.commit_transaction(_PATIENCE_S)
            sys.stdout.write("committed\n")
            sys.stdout.flush()
        except KafkaException as failure:
            error: KafkaError = failure.args[0]
            if not error.fatal() and error.txn_requires_abort():
                producer.abort_transaction(_PATIENCE_S)
            source.rewind()
            if error.fatal():
                raise


def send(
    producer: Producer, consumer: Consumer, messages: list[Message], target: str, partitions: int
) -> None:
    ends: dict[tuple[str, int], int] = {}
    for message in messages:
        number = int(message.value() or b"")
        producer.produce(target, b"%d" % (number * 2), partition=number % partitions)
        ends[message.topic() or "", message.partition() or 0] = (message.offset() or 0) + 1
    offsets = [TopicPartition(topic, partition, end) for (topic, partition), end in ends.items()]
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), _PATIENCE_S)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5], sys.argv[6])
