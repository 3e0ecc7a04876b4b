"""Let a client fill a topic, lane by lane, and work out what every reader must then see in it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from confluent_kafka import TopicPartition

from compat.cases import Lane
from compat.clients.client import Client
from compat.clients.confluent import Confluent, consumer
from compat.record import CREATE_TIME, Delivered, Receipt, Record, differences
from compat.waiting import eventually


@dataclass(frozen=True, slots=True)
class WrittenTopic:
    name: str
    expected: dict[int, list[Delivered]]
    # What was written at (partition, offset), for reports.
    labels: dict[tuple[int, int], str]

    @property
    def counts(self) -> dict[int, int]:
        return {partition: len(records) for partition, records in self.expected.items()}

    def unread_by(self, reader: Client, bootstrap: str) -> list[str]:
        """What this reader sees differently, as lines of a report."""
        seen = reader.read(bootstrap, self.name, self.counts)
        wanted = {p: [reader.view(record) for record in records] for p, records in self.expected.items()}
        return differences(wanted, seen, self.labels)


def write_topic(
    writer: Client, bootstrap: str, topic: str, lanes: Sequence[Lane], timestamp_type: str = CREATE_TIME
) -> WrittenTopic:
    """Write every lane into the partition of its place; check receipts, settle offsets and timestamps."""
    written = WrittenTopic(topic, {}, {})
    started_ms = _now_ms()
    receipts: dict[int, list[Receipt]] = {}
    for partition, lane in enumerate(lanes):
        records = _writable(writer, lane.records())
        receipts[partition] = writer.write(bootstrap, topic, partition, records, lane)
        assert len(receipts[partition]) == len(records)
        written.expected[partition] = [
            _expected(partition, offset, record, timestamp_type) for offset, record in enumerate(records)
        ]
        for offset, record in enumerate(records):
            written.labels[partition, offset] = f"{lane.name}: {record.case}"
    _check_end_offsets(written, bootstrap)
    _settle_timestamps(written, bootstrap, started_ms, _now_ms())
    _check_receipts(written, receipts)
    return written


def _writable(writer: Client, records: Sequence[Record]) -> list[Record]:
    kept = [record for record in records if writer.unwritable(record) is None]
    return kept if writer.chooses_timestamps else [replace(record, timestamp_ms=None) for record in kept]


def _expected(partition: int, offset: int, record: Record, timestamp_type: str) -> Delivered:
    return Delivered(
        partition=partition,
        offset=offset,
        timestamp_ms=record.timestamp_ms if timestamp_type == CREATE_TIME else None,
        timestamp_type=timestamp_type,
        key=record.key,
        value=record.value,
        headers=record.headers,
    )


def _check_end_offsets(written: WrittenTopic, bootstrap: str) -> None:
    """No record twice, none missing; with acks=0 the last ones may still be on their way."""
    reader = consumer(bootstrap)
    try:
        for partition, count in written.counts.items():
            place = TopicPartition(written.name, partition)
            assert eventually(
                lambda place=place, count=count: reader.get_watermark_offsets(place, 10) == (0, count)
            ), f"partition {partition} holds {reader.get_watermark_offsets(place, 10)}, written were {count}"
    finally:
        reader.close()


def _settle_timestamps(written: WrittenTopic, bootstrap: str, started_ms: int, ended_ms: int) -> None:
    """A timestamp that nobody chose must lie within the time of writing; then all must see that one."""
    seen = Confluent().read(bootstrap, written.name, written.counts)
    for partition, records in written.expected.items():
        for index, (wanted, stored) in enumerate(zip(records, seen[partition], strict=False)):
            if wanted.timestamp_ms is not None:
                continue
            label = written.labels[partition, wanted.offset]
            assert stored.timestamp_ms is not None
            assert started_ms - 1 <= stored.timestamp_ms <= ended_ms + 1, (
                f"partition {partition} offset {wanted.offset} ({label}): timestamp {stored.timestamp_ms} is "
                f"outside of the time of writing, {started_ms} to {ended_ms}"
            )
            records[index] = replace(wanted, timestamp_ms=stored.timestamp_ms)


def _check_receipts(written: WrittenTopic, receipts: dict[int, list[Receipt]]) -> None:
    for partition, answers in receipts.items():
        for wanted, receipt in zip(written.expected[partition], answers, strict=True):
            label = f"partition {partition} ({written.labels[partition, wanted.offset]})"
            for name in ("offset", "timestamp_ms"):
                told, stored = getattr(receipt, name), getattr(wanted, name)
                assert told in (None, stored), f"{label}: acknowledged {name} {told}, stored {stored}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
