"""An OffsetCommit request as its handler works on it: what is to be committed, and what became of it.

As `produce_requests`: nearly every one is read straight from its frame; the rest goes through the message.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.model.limits import REQUEST_ELEMENTS_MAX
from ottla.model.topics import NO_TOPIC_ID, TopicId
from ottla.protocol.codec import decode
from ottla.protocol.frame_reader import FrameReader
from ottla.protocol.messages.offset_commit import OffsetCommitRequest
from ottla.protocol.primitives import Buffer

_RETENTION_UNTIL = 4
_LEADER_EPOCHS_SINCE = 6
_STATIC_MEMBERS_SINCE = 7
_FLEXIBLE_SINCE = 8
_IDS_SINCE = 10


class CommitPart:
    """One partition's share of one request."""

    __slots__ = ("code", "index", "leader_epoch", "metadata", "offset")

    def __init__(self, index: int, offset: int, leader_epoch: int, metadata: str | None) -> None:
        self.index = index
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.metadata = metadata
        self.code = 0  # what the answer says of it


class CommitTopic:
    __slots__ = ("name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: TopicId, partitions: list[CommitPart]) -> None:
        self.name = name  # up to version 9
        self.topic_id = topic_id  # from 10 on
        self.partitions = partitions


class CommitWork:
    __slots__ = (
        "generation", "group_id", "instance_id", "member_id", "partition_count", "retention_ms", "topics",
        "unfinished",
    )  # fmt: skip

    def __init__(self, group_id: str, generation: int, member_id: str) -> None:
        self.group_id = group_id
        self.generation = generation  # or the member's epoch; -1 with an empty member id: not by a member
        self.member_id = member_id
        self.instance_id: str | None = None
        self.retention_ms = -1  # -1: the broker's
        self.topics: list[CommitTopic] = []
        self.partition_count = 0  # of all topics
        self.unfinished = 1  # parts that are decided and written by themselves; the last one is answered


def reader_of(version: int) -> Callable[[Buffer, int], tuple[CommitWork, int]]:
    """What reads OffsetCommit requests of a version from frames. It raises Malformed."""

    def read(frame: Buffer, position: int) -> tuple[CommitWork, int]:
        return read_commit(frame, position, version)

    return read


def read_commit(frame: Buffer, position: int, version: int) -> tuple[CommitWork, int]:
    work = read_usual(frame, position, version)
    if work is None:
        message, position = decode(OffsetCommitRequest, version, frame, position)
        work = of_message(message)
    return work, position


def read_usual(frame: Buffer, position: int, version: int) -> CommitWork | None:
    """None for a request that is malformed, or not as they usually are."""
    compact = version >= _FLEXIBLE_SINCE
    reader = FrameReader(frame, position)
    group_id = reader.string(compact)
    generation = reader.int32()
    work = CommitWork(group_id, generation, reader.string(compact))
    if version >= _STATIC_MEMBERS_SINCE:
        work.instance_id = reader.nullable_string(compact)
    if version <= _RETENTION_UNTIL:
        work.retention_ms = reader.int64()
    left = REQUEST_ELEMENTS_MAX
    topics = reader.count(compact, left)
    left -= topics
    while topics and not reader.is_broken:
        topics -= 1
        topic = _begin_topic(reader, version, compact)
        partitions = reader.count(compact, left)
        left -= partitions
        work.partition_count += partitions
        while partitions and not reader.is_broken:
            partitions -= 1
            index = reader.int32()
            offset = reader.int64()
            leader_epoch = reader.int32() if version >= _LEADER_EPOCHS_SINCE else -1
            topic.partitions.append(CommitPart(index, offset, leader_epoch, reader.nullable_string(compact)))
            reader.no_tags(compact)
        reader.no_tags(compact)
        work.topics.append(topic)
    reader.no_tags(compact)
    return None if reader.is_broken else work


def _begin_topic(reader: FrameReader, version: int, compact: bool) -> CommitTopic:
    if version >= _IDS_SINCE:
        return CommitTopic("", TopicId(reader.uuid()), [])
    return CommitTopic(reader.string(compact), NO_TOPIC_ID, [])


def of_message(message: OffsetCommitRequest) -> CommitWork:
    work = CommitWork(message.group_id, message.generation_id_or_member_epoch, message.member_id)
    work.instance_id = message.group_instance_id
    work.retention_ms = message.retention_time_ms
    for topic in message.topics:
        partitions = [
            CommitPart(
                each.partition_index,
                each.committed_offset,
                each.committed_leader_epoch,
                each.committed_metadata,
            )
            for each in topic.partitions
        ]
        work.topics.append(CommitTopic(topic.name, topic.topic_id, partitions))
        work.partition_count += len(partitions)
    return work
