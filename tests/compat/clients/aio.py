"""aiokafka with assigned partitions and no group."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.structs import RecordMetadata

from compat.cases import Lane
from compat.clients.client import PATIENCE_S
from compat.record import CREATE_TIME, LOG_APPEND_TIME, Delivered, Receipt, Record

_TYPES = {0: CREATE_TIME, 1: LOG_APPEND_TIME}


def producer(bootstrap: str, lane: Lane) -> AIOKafkaProducer:
    return AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        acks=lane.acks,
        enable_idempotence=lane.idempotent,
        compression_type=None if lane.codec == "none" else lane.codec,
        max_request_size=12 * 1024 * 1024,
        max_batch_size=100 if lane.many_requests else 16_384,
        linger_ms=0 if lane.many_requests else 5,
    )


def delivered(record: ConsumerRecord[bytes, bytes]) -> Delivered:
    return Delivered(
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp,
        timestamp_type=_TYPES.get(record.timestamp_type),
        key=record.key,
        value=record.value,
        headers=tuple((name, value) for name, value in record.headers),
    )


def _receipt(answer: RecordMetadata) -> Receipt:
    """aiokafka reports the first create time of a batch for all of its records: only append times count."""
    return Receipt(
        answer.offset, answer.timestamp if _TYPES[answer.timestamp_type] == LOG_APPEND_TIME else None
    )


async def _write(
    bootstrap: str, topic: str, partition: int, records: Sequence[Record], lane: Lane
) -> list[Receipt]:
    async with producer(bootstrap, lane) as sender:
        futures = [
            await sender.send(
                topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                partition=partition,
                timestamp_ms=record.timestamp_ms,
            )
            for record in records
        ]
        answers = await asyncio.wait_for(asyncio.gather(*futures), PATIENCE_S)
    if lane.acks == 0:
        return [Receipt() for _ in answers]
    return [_receipt(answer) for answer in answers]


async def _read(bootstrap: str, topic: str, counts: Mapping[int, int]) -> dict[int, list[Delivered]]:
    seen: dict[int, list[Delivered]] = {partition: [] for partition in counts}
    async with AIOKafkaConsumer(
        bootstrap_servers=bootstrap, group_id=None, auto_offset_reset="earliest"
    ) as reader:
        reader.assign([TopicPartition(topic, partition) for partition in counts])
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and any(len(seen[p]) < n for p, n in counts.items()):
            for batch in (await reader.getmany(timeout_ms=200)).values():
                for record in batch:
                    seen[record.partition].append(delivered(record))
    return seen


class AioKafka:
    name = "aiokafka"
    chooses_timestamps = True

    def unwritable(self, record: Record) -> str | None:
        if record.key is None and record.value is None:
            return "wants a key or a value"
        return None

    def write(
        self, bootstrap: str, topic: str, partition: int, records: Sequence[Record], lane: Lane
    ) -> list[Receipt]:
        return asyncio.run(_write(bootstrap, topic, partition, records, lane))

    def read(self, bootstrap: str, topic: str, counts: Mapping[int, int]) -> dict[int, list[Delivered]]:
        return asyncio.run(_read(bootstrap, topic, counts))

    def view(self, record: Delivered) -> Delivered:
        return record
