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
from ottla.server.fetch_requests import FetchWork, Followed, TopicKey

EVICTION_IDLE_MS = 120_000  # Kafka's min.incremental.fetch.session.eviction.ms

NO_SESSION = 0
FINAL_EPOCH = -1
INITIAL_EPOCH = 0
_EPOCH_MAX = 2**31 - 1

PartitionKey = tuple[TopicKey, int]


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

    def open(self, work: FetchWork, version: int, now_ms: int) -> Fetching:
        """Raises Refused when the request names a session that is not as it thinks."""
        by_id = version >= 13
        if work.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            if work.session_id != NO_SESSION:
                self._end(work.session_id)
            if work.session_epoch == FINAL_EPOCH and len(work.followed) == 1:
                return Fetching(work.followed, None, incremental=False)
            asked = _by_key(work)
            session = None
            if work.session_epoch == INITIAL_EPOCH and asked:
                session = self._new(by_id, now_ms, asked)
            return Fetching(asked.values(), session, incremental=False)
        session = self._continue(work, by_id, now_ms)
        self._change(session, work)
        if not session.partitions:
            self._end(session.id)  # nothing left to read: the client is told session 0
            return Fetching((), None, incremental=True)
        return Fetching(session.partitions.values(), session, incremental=True)

    def _change(self, session: FetchSession, work: FetchWork) -> None:
        partitions = session.partitions
        count_before = len(partitions)
        for topic, indexes in work.forgotten:
            for index in indexes:
                partitions.pop((topic, index), None)
        for key, change in _by_key(work).items():
            known = partitions.setdefault(key, change)
            if known is not change:
                known.ask(change)
        self._followed += len(partitions) - count_before
        if self._followed > FETCH_SESSION_PARTITIONS_MAX:
            self._end(session.id)  # the fetcher starts over, and will have to do without
            raise Refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)

    def _end(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._followed -= len(session.partitions)

    def _continue(self, work: FetchWork, by_id: bool, now_ms: int) -> FetchSession:
        session = self._sessions.pop(work.session_id, None)
        if session is None:
            raise Refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        self._sessions[session.id] = session  # now the most recently used
        if session.epoch != work.session_epoch:
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


def _by_key(work: FetchWork) -> dict[PartitionKey, Followed]:
    """Who names a partition twice means the latter."""
    return {(each.topic, each.index): each for each in work.followed}
