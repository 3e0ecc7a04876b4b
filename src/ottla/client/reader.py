"""A consumer's place in one partition, and what was fetched ahead of it. Pure; `fetcher` moves it."""

from __future__ import annotations

from collections import deque

from ottla.client.errors import ClientError
from ottla.client.fetched import Fetched
from ottla.client.offset_spec import OffsetSpec
from ottla.model.topics import TopicPartition
from ottla.records.columns import OFFSET_END

_FETCHED_AHEAD = 2  # answers of one partition that are kept


class Committed:
    """A place: what the group has committed, and without that where auto.offset.reset says."""


Place = OffsetSpec | Committed
"""What must be looked up before it is an offset."""


class Reader:
    """A consumer's place in one partition."""

    def __init__(self, target: TopicPartition, place: int | Place) -> None:
        self.target = target
        self.stop_offset = OFFSET_END  # nothing from there on is wanted
        self.turn = 0  # counts seeks
        self.is_paused = False
        self.failures = 0
        self.not_before_ms = 0
        self.ahead: deque[Fetched] = deque()
        self.in_flight = False
        self.end_offset: int | None = None  # high watermark or last stable offset, as the last answer told
        self.replica: int | None = None  # the follower that the leader told to read from
        self.replica_until_ms = 0
        self.seek(place)

    def seek(self, place: int | Place) -> None:
        self.turn += 1
        self.ahead.clear()
        self.in_flight = False
        self.problem: ClientError | None = None  # told to whoever reads, and not asked for again
        self.trouble: ClientError | None = None  # why the last try brought nothing; it is tried again
        if isinstance(place, int):
            self.offset: int | None = place  # of the next record the reader gets
            self.place: Place | None = None
        else:
            self.offset = None
            self.place = place  # to be looked up first

    @property
    def fetch_offset(self) -> int | None:
        return self.ahead[-1].end_offset if self.ahead else self.offset

    @property
    def is_at_stop(self) -> bool:
        return self.offset is not None and self.offset >= self.stop_offset

    @property
    def is_full(self) -> bool:
        return len(self.ahead) >= _FETCHED_AHEAD and not self.is_paused

    def is_fetchable(self, now_ms: int) -> bool:
        offset = self.fetch_offset
        return (
            offset is not None
            and offset < self.stop_offset
            and not self.is_paused
            and not self.in_flight
            and self.problem is None
            and len(self.ahead) < _FETCHED_AHEAD
            and now_ms >= self.not_before_ms
        )
