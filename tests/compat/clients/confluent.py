"""confluent-kafka (librdkafka) with assigned partitions and explicit offsets."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from confluent_kafka import (
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)

from compat.cases import Lane
from compat.clients.client import PATIENCE_S
from compat.record import CREATE_TIME, LOG_APPEND_TIME, Delivered, Receipt, Record


def producer_settings(bootstrap: str, lane: Lane) -> dict[str, object]:
    settings: dict[str, object] = {
        "bootstrap.servers": bootstrap,
        "enable.idempotence": lane.idempotent,
        "acks": lane.acks,
        "compression.type": lane.codec,
        "message.max.bytes": 12 * 1024 * 1024,
        "linger.ms": 5,
    }
    if lane.many_requests:
        settings |= {"batch.num.messages": 2, "linger.ms": 0}
    return settings


def consumer(bootstrap: str, **settings: object) -> Consumer:
    """A consumer that never joins a group; librdkafka wants a group id all the same."""
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "assigned-only",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )


def delivered(message: Message) -> Delivered:
    kind, timestamp_ms = message.timestamp()
    return Delivered(
        partition=message.partition(),
        offset=message.offset(),
        timestamp_ms=timestamp_ms,
        timestamp_type=LOG_APPEND_TIME if kind == TIMESTAMP_LOG_APPEND_TIME else CREATE_TIME,
        key=message.key(),
        value=message.value(),
        headers=tuple((name, value) for name, value in message.headers() or ()),
    )


def produce_code(bootstrap: str, topic: str, *, idempotent: bool = False, **record: object) -> int:
    """Produce one record to partition 0 and return the code of its acknowledgement."""
    codes: list[int] = []

    def acknowledged(error: KafkaError | None, message: Message) -> None:
        codes.append(0 if error is None else error.code())

    producer = Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": idempotent, "message.max.bytes": 5_000_000}
    )
    producer.produce(topic, partition=0, on_delivery=acknowledged, **record)
    assert producer.flush(PATIENCE_S) == 0
    [code] = codes
    return code


def _missing(counts: Mapping[int, int], seen: Mapping[int, Sequence[Delivered]]) -> int:
    return sum(max(count - len(seen[partition]), 0) for partition, count in counts.items())


class Confluent:
    name = "confluent"
    chooses_timestamps = True

    def unwritable(self, record: Record) -> str | None:
        return None

    def write(
        self, bootstrap: str, topic: str, partition: int, records: Sequence[Record], lane: Lane
    ) -> list[Receipt]:
        receipts: list[Receipt] = []
        failures: list[str] = []

        def acknowledged(error: object, message: Message) -> None:
            if error is not None:
                failures.append(str(error))
            known = lane.acks != 0
            receipts.append(Receipt(message.offset(), message.timestamp()[1]) if known else Receipt())

        producer = Producer(producer_settings(bootstrap, lane))
        for record in records:
            stamp = {} if record.timestamp_ms is None else {"timestamp": record.timestamp_ms}
            producer.produce(
                topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                partition=partition,
                on_delivery=acknowledged,
                **stamp,
            )
            producer.poll(0)
        left = producer.flush(PATIENCE_S)
        assert not failures, f"{len(failures)} records refused, the first with: {failures[0]}"
        assert left == 0, f"{left} records not acknowledged within {PATIENCE_S} s"
        return receipts

    def read(self, bootstrap: str, topic: str, counts: Mapping[int, int]) -> dict[int, list[Delivered]]:
        seen: dict[int, list[Delivered]] = {partition: [] for partition in counts}
        reader = consumer(bootstrap, auto_offset_reset="earliest")
        try:
            # Offset 0 rather than OFFSET_BEGINNING, for which librdkafka waits half a second before it asks.
            reader.assign([TopicPartition(topic, partition, 0) for partition in counts])
            deadline = time.monotonic() + PATIENCE_S
            while time.monotonic() < deadline and (missing := _missing(counts, seen)):
                for message in reader.consume(min(missing, 500), timeout=1.0):
                    assert message.error() is None, message.error()
                    seen[message.partition()].append(delivered(message))
        finally:
            reader.close()
        return seen

    def view(self, record: Delivered) -> Delivered:
        return record
