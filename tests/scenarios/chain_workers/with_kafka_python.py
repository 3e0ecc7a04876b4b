"""The worker of exactly_once_chain.py with kafka-python."""

from __future__ import annotations

import contextlib
import sys

from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata, TopicPartition

_RECORDS_PER_TRANSACTION = 20


def main(bootstrap: str, source: str, target: str, partitions: int) -> None:
    while True:  # clients that failed for good are replaced, as an application would
        with contextlib.suppress(KafkaError):
            run(bootstrap, source, target, partitions)


def run(bootstrap: str, source: str, target: str, partitions: int) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id="chain")
    consumer = KafkaConsumer(
        source,
        bootstrap_servers=bootstrap,
        group_id="chain",
        group_instance_id="worker",  # takes its predecessor's place without waiting for its session
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    try:
        producer.init_transactions()  # before any offset is asked for: it ends what the predecessor left open
        while True:
            polled = consumer.poll(200, max_records=_RECORDS_PER_TRANSACTION)
            messages = [message for part in polled.values() for message in part]
            if not messages:
                continue
            producer.begin_transaction()
            for message in messages:
                number = int(message.value)
                producer.send(target, b"%d" % (number * 2), partition=number % partitions)
            producer.send_offsets_to_transaction(positions(consumer), consumer.group_metadata())
            producer.commit_transaction()
            sys.stdout.write("committed\n")
            sys.stdout.flush()
    finally:
        producer.close(timeout=0)
        consumer.close(autocommit=False)


def positions(consumer: KafkaConsumer) -> dict[TopicPartition, OffsetAndMetadata]:
    return {place: OffsetAndMetadata(consumer.position(place), "", -1) for place in consumer.assignment()}


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
