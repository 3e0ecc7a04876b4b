"""The worker of exactly_once_chain.py with confluent-kafka."""

from __future__ import annotations

import contextlib
import sys

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

_PATIENCE_S = 30
_RECORDS_PER_TRANSACTION = 20


def main(bootstrap: str, source: str, target: str, partitions: int) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "chain",
            "group.instance.id": "worker",  # takes its predecessor's place without waiting for its session
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "reconnect.backoff.max.ms": 200,
        }
    )
    consumer.subscribe([source])
    while True:  # a producer that failed for good is replaced, as an application would
        with contextlib.suppress(KafkaException):
            run(bootstrap, consumer, target, partitions)


def run(bootstrap: str, consumer: Consumer, target: str, partitions: int) -> None:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": "chain",
            "metadata.recovery.strategy": "none",  # librdkafka 2.16 can hang when its only broker was away
            "linger.ms": 0,
            "reconnect.backoff.max.ms": 200,
        }
    )
    producer.init_transactions(_PATIENCE_S)
    consumer.resume(consumer.assignment())
    while True:
        messages = consumer.consume(_RECORDS_PER_TRANSACTION, 0.2)
        messages = [message for message in messages if message.error() is None]
        if not messages:
            continue
        producer.begin_transaction()
        try:
            for message in messages:
                number = int(message.value())
                producer.produce(target, b"%d" % (number * 2), partition=number % partitions)
            producer.send_offsets_to_transaction(
                consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), _PATIENCE_S
            )
            producer.commit_transaction(_PATIENCE_S)
            sys.stdout.write("committed\n")
            sys.stdout.flush()
        except KafkaException as failure:
            undo(producer, consumer, failure)


def undo(producer: Producer, consumer: Consumer, failure: KafkaException) -> None:
    """Aborts, and goes back to what is committed."""
    error: KafkaError = failure.args[0]
    if error.fatal():
        rewind(consumer)
        raise failure
    if error.txn_requires_abort():
        producer.abort_transaction(_PATIENCE_S)
    rewind(consumer)


def rewind(consumer: Consumer) -> None:
    for place in consumer.committed(consumer.assignment(), _PATIENCE_S):
        if place.offset < 0:
            place.offset = 0
        consumer.seek(place)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
