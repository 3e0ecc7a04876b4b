"""kafka-python with assigned partitions and no group."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from compat.cases import Lane
from compat.clients.client import PATIENCE_S
from compat.clients.kafka_package import ConsumerRecord, KafkaConsumer, KafkaProducer, TopicPartition
from compat.record import CREATE_TIME, LOG_APPEND_TIME, Delivered, Receipt, Record

_TYPES = {0: CREATE_TIME, 1: LOG_APPEND_TIME}


def producer(bootstrap: str, lane: Lane) -> KafkaProducer:
    return KafkaProducer(
        bootstrap_servers=bootstrap,
        acks=lane.acks,
        enable_idempotence=lane.idempotent,
        compression_type=None if lane.codec == "none" else lane.codec,
        max_request_size=12 * 1024 * 1024,
        batch_size=100 if lane.many_requests else 16_384,
        linger_ms=0 if lane.many_requests else 5,
    )


def delivered(record: ConsumerRecord) -> Delivered:
    return Delivered(
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp,
        timestamp_type=_TYPES.get(record.timestamp_type),
        key=record.key,
        value=record.value,
        headers=tuple((name, value) for name, value in record.headers),
    )


class KafkaPython:
    name = "kafka-python"
    chooses_timestamps = True

    def unwritable(self, record: Record) -> str | None:
        if record.key is None and record.value is None:
            return "wants a key or a value"
        if any(value is None for _, value in record.headers):
            return "takes no null header"
        return None

    def write(
        self, bootstrap: str, topic: str, partition: int, records: Sequence[Record], lane: Lane
    ) -> list[Receipt]:
        with producer(bootstrap, lane) as sender:
            futures = [
                sender.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=partition,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            sender.flush(PATIENCE_S)
            answers = [future.get(PATIENCE_S) for future in futures]
        if lane.acks == 0:
            return [Receipt() for _ in answers]
        return [Receipt(answer.offset, answer.timestamp) for answer in answers]

    def read(self, bootstrap: str, topic: str, counts: Mapping[int, int]) -> dict[int, list[Delivered]]:
        seen: dict[int, list[Delivered]] = {partition: [] for partition in counts}
        with KafkaConsumer(
            bootstrap_servers=bootstrap, group_id=None, auto_offset_reset="earliest"
        ) as reader:
            reader.assign([TopicPartition(topic, partition) for partition in counts])
            deadline = time.monotonic() + PATIENCE_S
            while time.monotonic() < deadline and any(len(seen[p]) < n for p, n in counts.items()):
                for batch in reader.poll(timeout_ms=200).values():
                    for record in batch:
                        seen[record.partition].append(delivered(record))
        return seen

    def view(self, record: Delivered) -> Delivered:
        return record
