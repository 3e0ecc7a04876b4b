"""Incremental fetch sessions (KIP-227): what a consumer reads is said once, then only what changes.

A session remembers the partitions of a fetcher and what each answer told it last. Slots are few, and so are
the partitions that all sessions may follow; a session that was not used for a while gives way to a new one,
and a fetcher without a slot works without a session.
Bookkeeping only: reading is the fetch handler's work.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from ottla.model.errors import ErrorCode, Refused
from ottla.model.limits import FETCH_SESSION_PARTITIONS_MAX
from ottla.model.topics import TopicId
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, PartitionData

EVICTION_IDLE_MS = 120_000  # Kafka's min.incremental.fetch.session.eviction.ms

NO_SESSION = 0
FINAL_EPOCH = -1
INITIAL_EPOCH = 0
_EPOCH_MAX = 2**31 - 1

TopicKey = str | TopicId
PartitionKey = tuple[TopicKey, int]


class Followed:
    """One partition of a session, or of a fetch without one."""

    __slots__ = ("asked", "high_watermark", "index", "log_start_offset", "topic")

    def __init__(self, topic: TopicKey, asked: FetchPartition) -> None:
        self.topic = topic  # name up to Fetch 12, id from 13 on
        self.index = asked.partition
        self.asked = asked  # offset, limits and epochs as last asked for
        self.high_watermark = -1  # as last told
        self.log_start_offset = -1  # as last told

    def note(self, told: PartitionData) -> bool:
        """Remembers what an answer tells, and says whether an incremental answer must carry it."""
        size = 0 if told.records is None else getattr(told.records, "size", 0) or _length(told.records)
        changed = (
            size > 0
            or told.error_code != ErrorCode.NONE
            or told.high_watermark != self.high_watermark
            or told.log_start_offset != self.log_start_offset
            or told.diverging_epoch.epoch >= 0
        )
        failed = told.error_code != ErrorCode.NONE
        self.high_watermark = -1 if failed else told.high_watermark  # after an error everything is told again
        self.log_start_offset = told.log_start_offset
        return changed


def _length(records: object) -> int:
    return len(records) if isinstance(records, (bytes, bytearray, memoryview)) else 0


class FetchSession:
    __slots__ = ("by_id", "epoch", "id", "last_used_ms", "partitions")

    def __init__(self, session_id: int, by_id: bool, now_ms: int) -> None:
        self.id = session_id
        self.by_id = by_id  # topics are named by id; a fetcher may not change that
        self.epoch = 1  # the epoch the next request must carry
        self.last_used_ms = now_ms
        self.partitions: dict[PartitionKey, Followed] = {}  # in order of turn: who got data goes to the end


class Fetching:
    """What one Fetch request reads, and how its answer is to be told."""

    __slots__ = ("followed", "incremental", "session")

    def __init__(self, followed: Iterable[Followed], session: FetchSession | None, incremental: bool) -> None:
        self.followed = list(followed)
        self.session = session
        self.incremental = incremental

    @property
    def session_id(self) -> int:
        return self.session.id if self.session is not None else NO_SESSION

    def told_with_data(self, followed: Followed) -> None:
        """Who got data now comes last next time, so that a full answer starves nobody."""
        if self.session is not None:
            key = (followed.topic, followed.index)
            known = self.session.partitions.pop(key, None)
            if known is not None:
                self.session.partitions[key] = known


class FetchSessions:
    def __init__(self, slots: int, seed: int | None = None) -> None:
        self._slots = slots
        self._sessions: dict[int, FetchSession] = {}  # least recently used first
        self._followed = 0  # partitions of all sessions
        self._random = random.Random(seed)

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, request: FetchRequest, version: int, now_ms: int) -> Fetching:
        """Raises Refused when the request names a session that is not as it thinks."""
        by_id = version >= 13
        asked = _asked(request, by_id)
        if request.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            self._end(request.session_id)
            session = None
            if request.session_epoch == INITIAL_EPOCH and asked:
                session = self._new(by_id, now_ms, asked)
            return Fetching(asked.values(), session, incremental=False)
        session = self._continue(request, by_id, now_ms)
        self._change(session, request, asked)
        if not session.partitions:
            self._end(session.id)  # nothing left to read: the client is told session 0
            return Fetching((), None, incremental=True)
        return Fetching(session.partitions.values(), session, incremental=True)

    def _change(
        self, session: FetchSession, request: FetchRequest, asked: dict[PartitionKey, Followed]
    ) -> None:
        partitions = session.partitions
        count_before = len(partitions)
        for forgotten in request.forgotten_topics_data:
            topic = forgotten.topic_id if session.by_id else forgotten.topic
            for index in forgotten.partitions:
                partitions.pop((topic, index), None)
        for key, change in asked.items():
            known = partitions.setdefault(key, change)
            known.asked = change.asked
        self._followed += len(partitions) - count_before
        if self._followed > FETCH_SESSION_PARTITIONS_MAX:
            self._end(session.id)  # the fetcher starts over, and will have to do without
            raise Refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)

    def _end(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._followed -= len(session.partitions)

    def _continue(self, request: FetchRequest, by_id: bool, now_ms: int) -> FetchSession:
        session = self._sessions.pop(request.session_id, None)
        if session is None:
            raise Refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        self._sessions[session.id] = session  # now the most recently used
        if session.epoch != request.session_epoch:
            raise Refused(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.by_id != by_id:
            raise Refused(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.epoch = 1 if session.epoch == _EPOCH_MAX else session.epoch + 1
        session.last_used_ms = now_ms
        return session

    def _new(self, by_id: bool, now_ms: int, partitions: dict[PartitionKey, Followed]) -> FetchSession | None:
        if self._followed + len(partitions) > FETCH_SESSION_PARTITIONS_MAX:
            return None
        if len(self._sessions) >= self._slots:
            if not self._sessions:
                return None
            oldest = next(iter(self._sessions.values()))
            if now_ms - oldest.last_used_ms < EVICTION_IDLE_MS:
                return None
            self._end(oldest.id)
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._random.randint(1, 2**31 - 1)
        session = FetchSession(session_id, by_id, now_ms)
        session.partitions = partitions
        self._sessions[session_id] = session
        self._followed += len(partitions)
        return session


def _asked(request: FetchRequest, by_id: bool) -> dict[PartitionKey, Followed]:
    followed = {}
    for topic in request.topics:
        key: TopicKey = topic.topic_id if by_id else topic.topic
        for asked in topic.partitions:
            followed[key, asked.partition] = Followed(key, asked)
    return followed
