"""The dead letters of a pipeline: listed, shown, mended, and sent back to the topics they came from.

`replay` sends what has not been replayed yet, in one transaction with the place up to which that was done:
a letter goes back once, whatever is interrupted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ottla.client import Admin, Producer, TopicPartition, read
from ottla.client.access import Access
from ottla.client.admin_values import GroupMetadata
from ottla.client.errors import UnknownTopic
from ottla.client.fetched import ConsumedRecord
from ottla.pipeline import dead_letters as headers
from ottla.pipeline.problems import PipelineError


@dataclass(frozen=True, slots=True)
class Letter:
    partition: int
    offset: int  # of the letter itself
    timestamp_ms: int
    reason: str
    part: str
    topic: str | None  # where the record came from; None: a step had left that behind
    source_partition: int | None
    source_offset: int | None
    key: bytes | None
    value: bytes | None


def read_letters(access: Access, topic: str) -> Iterator[Letter]:
    """Everything in the topic, partition by partition; nothing when it is not there."""
    try:
        reading = read(
            access.bootstrap, topic, partitions=None, isolation_level="read_committed", **access.settings
        )
    except UnknownTopic:
        return
    with reading:
        for record in reading:
            yield _letter(record)


def unreplayed(access: Access, topic: str, group: str) -> list[Letter]:
    committed = _committed(access, group)
    return [
        letter
        for letter in read_letters(access, topic)
        if letter.offset >= committed.get(TopicPartition(topic, letter.partition), 0)
    ]


def replay(
    access: Access,
    topic: str,
    group: str,
    letters: list[Letter],
    mended: Mapping[tuple[int, int], bytes | None],
) -> int:
    """Sends letters back, with the values in `mended` (by partition and offset) instead of their own."""
    lost = [letter for letter in letters if letter.topic is None]
    if lost:
        first = lost[0]
        raise PipelineError(
            f"{len(lost)} letters do not know their topic, the first at {first.partition}/{first.offset}",
            f"step {first.part} comes behind a SQL step that drops _source; select it there too",
        )
    ends: dict[TopicPartition, int] = {}
    with Producer(access.bootstrap, transactional_id=group, **access.settings) as producer:
        producer.init_transactions()
        with producer.transaction():
            for letter in letters:
                assert letter.topic is not None
                value = mended.get((letter.partition, letter.offset), letter.value)
                producer.send(letter.topic, value, letter.key)
                place = TopicPartition(topic, letter.partition)
                ends[place] = max(ends.get(place, 0), letter.offset + 1)
            producer.send_offsets_to_transaction(ends, GroupMetadata(group))
    return len(letters)


def _committed(access: Access, group: str) -> dict[TopicPartition, int]:
    with Admin(access.bootstrap, **access.settings) as admin:
        return {place: each.offset for place, each in admin.group_offsets(group).items()}


def _letter(record: ConsumedRecord) -> Letter:
    told = {name: value.decode(errors="replace") for name, value in record.headers if value is not None}
    partition, offset = told.get(headers.PARTITION), told.get(headers.OFFSET)
    return Letter(
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        reason=told.get(headers.REASON, "unknown"),
        part=told.get(headers.PART, "unknown"),
        topic=told.get(headers.TOPIC),
        source_partition=None if partition is None else int(partition),
        source_offset=None if offset is None else int(offset),
        key=record.key,
        value=record.value,
    )
