"""A Fetch request as its handler works on it: limits, the session, and what is asked of each partition.

Nearly every one is read straight from its frame into these; what `FrameReader` leaves alone goes through the
message (`messages.fetch`), which says what is wrong with a frame that nobody can read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ottla.model.limits import REQUEST_ELEMENTS_MAX
from ottla.model.topics import TopicId
from ottla.protocol.codec import decode
from ottla.protocol.frame_reader import FrameReader
from ottla.protocol.messages.fetch import FetchRequest
from ottla.protocol.primitives import Buffer

_LOG_START_SINCE = 5
_SESSIONS_SINCE = 7
_EPOCHS_SINCE = 9
_RACKS_SINCE = 11
_FLEXIBLE_SINCE = 12
_IDS_SINCE = 13
_REPLICA_ID_UNTIL = 14

TopicKey = str | TopicId
"""Name up to Fetch 12, id from 13 on."""


class Followed:
    """One partition of a session, or of a fetch without one: what is asked, and what was told last."""

    __slots__ = (
        "bytes_max", "current_leader_epoch", "fetch_offset", "high_watermark", "index", "last_fetched_epoch",
        "log_start_offset", "topic",
    )  # fmt: skip

    def __init__(
        self,
        topic: TopicKey,
        index: int,
        current_leader_epoch: int,
        fetch_offset: int,
        last_fetched_epoch: int,
        bytes_max: int,
    ) -> None:
        self.topic = topic
        self.index = index
        self.current_leader_epoch = current_leader_epoch
        self.fetch_offset = fetch_offset
        self.last_fetched_epoch = last_fetched_epoch
        self.bytes_max = bytes_max
        self.high_watermark = -1  # as last told
        self.log_start_offset = -1  # as last told

    def ask(self, other: Followed) -> None:
        """The same partition, asked anew."""
        self.current_leader_epoch = other.current_leader_epoch
        self.fetch_offset = other.fetch_offset
        self.last_fetched_epoch = other.last_fetched_epoch
        self.bytes_max = other.bytes_max

    def note(self, failed: bool, high_watermark: int, log_start_offset: int) -> bool:
        """Remembers what an answer tells, and says whether that is news."""
        changed = failed or high_watermark != self.high_watermark or log_start_offset != self.log_start_offset
        self.high_watermark = -1 if failed else high_watermark  # after an error everything is told again
        self.log_start_offset = log_start_offset
        return changed


class FetchWork:
    __slots__ = (
        "bytes_max", "bytes_min", "followed", "forgotten", "is_committed", "replica_id", "session_epoch",
        "session_id", "wait_ms_max",
    )  # fmt: skip

    def __init__(self, replica_id: int, wait_ms_max: int, bytes_min: int, bytes_max: int) -> None:
        self.replica_id = replica_id  # -1: a consumer
        self.wait_ms_max = wait_ms_max
        self.bytes_min = bytes_min
        self.bytes_max = bytes_max
        self.is_committed = False  # whether only what is committed is wanted
        self.session_id = 0
        self.session_epoch = -1
        self.followed: list[Followed] = []  # as asked for
        self.forgotten: list[tuple[TopicKey, Sequence[int]]] = []  # no longer part of the session


def reader_of(version: int) -> Callable[[Buffer, int], tuple[FetchWork, int]]:
    """What reads Fetch requests of a version from frames. It raises Malformed."""

    def read(frame: Buffer, position: int) -> tuple[FetchWork, int]:
        return read_fetch(frame, position, version)

    return read


def read_fetch(frame: Buffer, position: int, version: int) -> tuple[FetchWork, int]:
    work = read_usual(frame, position, version)
    if work is None:
        message, position = decode(FetchRequest, version, frame, position)
        work = of_message(message, version)
    return work, position


def read_usual(frame: Buffer, position: int, version: int) -> FetchWork | None:
    """None for a request that is malformed, or not as they usually are."""
    compact = version >= _FLEXIBLE_SINCE
    reader = FrameReader(frame, position)
    replica_id = max(-1, reader.int32()) if version <= _REPLICA_ID_UNTIL else -1
    wait_ms_max = reader.int32()
    bytes_min = reader.int32()
    work = FetchWork(replica_id, wait_ms_max, bytes_min, reader.int32())
    work.is_committed = reader.int8() == 1
    if version >= _SESSIONS_SINCE:
        work.session_id = reader.int32()
        work.session_epoch = reader.int32()
    left = REQUEST_ELEMENTS_MAX
    topics = reader.count(compact, left)
    left -= topics
    while topics and not reader.is_broken:
        topics -= 1
        topic: TopicKey = TopicId(reader.uuid()) if version >= _IDS_SINCE else reader.string(compact)
        partitions = reader.count(compact, left)
        left -= partitions
        while partitions and not reader.is_broken:
            partitions -= 1
            work.followed.append(_read_partition(reader, topic, version))
            reader.no_tags(compact)
        reader.no_tags(compact)
    if version >= _SESSIONS_SINCE and reader.count(compact, 0) != 0:
        return None  # somebody forgets partitions, which is rare
    if version >= _RACKS_SINCE:
        reader.string(compact)
    reader.no_tags(compact)
    return None if reader.is_broken else work


def _read_partition(reader: FrameReader, topic: TopicKey, version: int) -> Followed:
    index = reader.int32()
    current_leader_epoch = reader.int32() if version >= _EPOCHS_SINCE else -1
    fetch_offset = reader.int64()
    last_fetched_epoch = reader.int32() if version >= _FLEXIBLE_SINCE else -1
    if version >= _LOG_START_SINCE:
        reader.int64()
    return Followed(topic, index, current_leader_epoch, fetch_offset, last_fetched_epoch, reader.int32())


def of_message(message: FetchRequest, version: int) -> FetchWork:
    by_id = version >= _IDS_SINCE
    replica_id = max(message.replica_id, message.replica_state.replica_id)
    work = FetchWork(replica_id, message.max_wait_ms, message.min_bytes, message.max_bytes)
    work.is_committed = message.isolation_level == 1
    work.session_id = message.session_id
    work.session_epoch = message.session_epoch
    for topic in message.topics:
        key: TopicKey = topic.topic_id if by_id else topic.topic
        for asked in topic.partitions:
            work.followed.append(
                Followed(
                    key,
                    asked.partition,
                    asked.current_leader_epoch,
                    asked.fetch_offset,
                    asked.last_fetched_epoch,
                    asked.partition_max_bytes,
                )
            )
    for forgotten in message.forgotten_topics_data:
        work.forgotten.append((forgotten.topic_id if by_id else forgotten.topic, forgotten.partitions))
    return work
