"""One of the workers of exactly_once_pair.py, with kafka-python, which speaks the classic protocol only.

The group is told who commits (KIP-447): what another member owns by now is refused, and everything that was
read for it is read again by its owner.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable

from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata, TopicPartition

_RECORDS_PER_TRANSACTION = 20


class Moves(ConsumerRebalanceListener):
    """Notes that partitions have come or gone."""

    def __init__(self) -> None:
        self.have_happened = False

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self.have_happened = True

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self.have_happened = True


def main(bootstrap: str, source: str, target: str, partitions: int, name: str) -> None:
    while True:  # clients that failed for good are replaced, as an application would
        with contextlib.suppress(KafkaError):
            run(bootstrap, source, target, partitions, name)


def run(bootstrap: str, source: str, target: str, partitions: int, name: str) -> None:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, transactional_id=f"chain-{name}", transaction_timeout_ms=10_000
    )
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id="chain",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        session_timeout_ms=3_000,
        heartbeat_interval_ms=500,
        max_poll_interval_ms=20_000,  # one that hangs does not hold up the other
    )
    moves = Moves()
    try:
        producer.init_transactions()
        consumer.subscribe([source], listener=moves)
        while True:
            moves.have_happened = False
            polled = consumer.poll(200, max_records=_RECORDS_PER_TRANSACTION)
            if moves.have_happened:  # some of them may be another's by now
                rewind(consumer)
                continue
            if polled:
                transform(producer, consumer, polled, target, partitions)
    finally:
        producer.close(timeout=0)
        consumer.close(autocommit=False)


def transform(
    producer: KafkaProducer, consumer: KafkaConsumer, polled: dict, target: str, partitions: int
) -> None:
    producer.begin_transaction()
    for message in (message for part in polled.values() for message in part):
        number = int(message.value)
        producer.send(target, b"%d" % (number * 2), partition=number % partitions)
    ends = {place: OffsetAndMetadata(part[-1].offset + 1, "", -1) for place, part in polled.items()}
    producer.send_offsets_to_transaction(ends, consumer.group_metadata())
    producer.commit_transaction()
    sys.stdout.write("committed\n")
    sys.stdout.flush()


def rewind(consumer: KafkaConsumer) -> None:
    for place in consumer.assignment():
        consumer.seek(place, consumer.committed(place) or 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
