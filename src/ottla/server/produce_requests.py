"""A Produce request as its handler works on it: what was asked of each partition, and what became of it.

Nearly every one is read straight from its frame into these; what `FrameReader` leaves alone goes through the
message (`messages.produce`), which says what is wrong with a frame that nobody can read.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.model.errors import Refused
from ottla.model.limits import REQUEST_ELEMENTS_MAX
from ottla.model.topics import NO_TOPIC_ID, TopicId
from ottla.protocol.codec import decode
from ottla.protocol.frame_reader import FrameReader
from ottla.protocol.messages.produce import ProduceRequest
from ottla.protocol.primitives import Buffer
from ottla.records.batch import CheckedBatch
from ottla.replica.partition import Partition

_FLEXIBLE_SINCE = 9
_IDS_SINCE = 13


class ProducePart:
    """One partition's share of one request."""

    __slots__ = (
        "base_offset", "batch", "end_offset", "error", "index", "log_start_offset", "partition", "records",
        "time_ms",
    )  # fmt: skip

    def __init__(self, index: int, records: Buffer | None) -> None:
        self.index = index
        self.records = records  # out of the frame; None once they were looked at, or when there are none
        self.partition: Partition | None = None
        self.batch: CheckedBatch | None = None  # what is to be appended
        self.error: Refused | None = None
        self.base_offset = -1
        self.log_start_offset = -1
        self.end_offset = -1  # the high watermark that acks=all waits for
        self.time_ms = -1  # log append time, where the topic has that


class ProduceTopic:
    __slots__ = ("name", "parts", "topic_id")

    def __init__(self, name: str, topic_id: TopicId, parts: list[ProducePart]) -> None:
        self.name = name  # up to version 12
        self.topic_id = topic_id  # from 13 on
        self.parts = parts


class ProduceWork:
    __slots__ = ("acks", "is_refused", "size", "timeout_ms", "topics", "transactional_id")

    def __init__(
        self, transactional_id: str | None, acks: int, timeout_ms: int, topics: list[ProduceTopic]
    ) -> None:
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topics = topics
        self.size = 0  # bytes of batches that were taken
        self.is_refused = False  # a part of it was, at least


def reader_of(version: int) -> Callable[[Buffer, int], tuple[ProduceWork, int]]:
    """What reads Produce requests of a version from frames. It raises Malformed."""

    def read(frame: Buffer, position: int) -> tuple[ProduceWork, int]:
        return read_produce(frame, position, version)

    return read


def read_produce(frame: Buffer, position: int, version: int) -> tuple[ProduceWork, int]:
    work = read_usual(frame, position, version)
    if work is None:
        message, position = decode(ProduceRequest, version, frame, position)
        work = of_message(message)
    return work, position


def read_usual(frame: Buffer, position: int, version: int) -> ProduceWork | None:
    """None for a request that is malformed, or not as they usually are."""
    compact = version >= _FLEXIBLE_SINCE
    reader = FrameReader(frame, position)
    work = ProduceWork(reader.nullable_string(compact), reader.int16(), reader.int32(), [])
    left = REQUEST_ELEMENTS_MAX
    topics = reader.count(compact, left)
    left -= topics
    while topics and not reader.is_broken:
        topics -= 1
        topic = _begin_topic(reader, version, compact)
        parts = reader.count(compact, left)
        left -= parts
        while parts and not reader.is_broken:
            parts -= 1
            index = reader.int32()
            topic.parts.append(ProducePart(index, reader.nullable_view(compact)))
            reader.no_tags(compact)
        reader.no_tags(compact)
        work.topics.append(topic)
    reader.no_tags(compact)
    return None if reader.is_broken else work


def _begin_topic(reader: FrameReader, version: int, compact: bool) -> ProduceTopic:
    if version >= _IDS_SINCE:
        return ProduceTopic("", TopicId(reader.uuid()), [])
    return ProduceTopic(reader.string(compact), NO_TOPIC_ID, [])


def of_message(message: ProduceRequest) -> ProduceWork:
    topics = [
        ProduceTopic(
            topic.name,
            topic.topic_id,
            [ProducePart(data.index, data.records) for data in topic.partition_data],  # type: ignore[arg-type]
        )
        for topic in message.topic_data
    ]
    return ProduceWork(message.transactional_id, message.acks, message.timeout_ms, topics)
