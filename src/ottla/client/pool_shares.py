"""What a worker pool knows of its partitions: what is begun, what is finished, what may be committed. Pure.

Its shells (`worker_pool` with threads, `aio.worker_pool` with tasks) have the lock, queues and workers.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Hashable, Iterable, Mapping

from ottla.client.fetched import ConsumedRecord
from ottla.model.topics import TopicPartition


class Progress:
    """How far a partition is finished, while its records finish in any order."""

    def __init__(self) -> None:
        self._begun: deque[int] = deque()  # in order, from the first that is not finished
        self._finished: set[int] = set()  # those of them that are
        self.committable: int | None = None  # the offset behind all that is finished; None: nothing is

    @property
    def unfinished(self) -> int:
        return len(self._begun) - len(self._finished)

    def begin(self, offset: int) -> None:
        assert not self._begun or offset > self._begun[-1]
        self._begun.append(offset)

    def finish(self, offset: int) -> None:
        self._finished.add(offset)
        while self._begun and self._begun[0] in self._finished:
            first = self._begun.popleft()
            self._finished.remove(first)
            self.committable = first + 1


class Share:
    """A partition for as long as this consumer has it."""

    def __init__(self) -> None:
        self.progress = Progress()
        self.running = 0  # records that workers have in hand
        self.is_over = False  # what is queued is not begun any more
        self.committed: int | None = None


class Shares:
    def __init__(self, workers: int, *, by_key: bool) -> None:
        self.queued = 0  # records that are not finished
        self.running = 0  # those of them that workers have in hand
        self._by_place: dict[TopicPartition, Share] = {}
        self._workers = workers
        self._by_key = by_key
        self._next_worker = 0  # for records without a key

    def worker_of(self, record: ConsumedRecord) -> int:
        """Which worker handles it: the same one for what must stay in order."""
        if self._by_key and record.key is None:
            self._next_worker += 1
            return self._next_worker % self._workers
        lane: Hashable = record.key if self._by_key else None
        return zlib.crc32(repr((record.topic, record.partition, lane)).encode()) % self._workers

    def queue(self, record: ConsumedRecord) -> Share:
        share = self._by_place.setdefault(TopicPartition(record.topic, record.partition), Share())
        share.progress.begin(record.offset)
        self.queued += 1
        return share

    def begin(self, share: Share) -> bool:
        """A worker has it in hand; false: it belongs to others by now, and the worker leaves it."""
        if share.is_over:
            self.queued -= 1
            return False
        share.running += 1
        self.running += 1
        return True

    def end(self, share: Share, record: ConsumedRecord, *, is_finished: bool) -> None:
        share.running -= 1
        self.running -= 1
        self.queued -= 1
        if is_finished:
            share.progress.finish(record.offset)

    def committable(self, partitions: Iterable[TopicPartition] | None = None) -> dict[TopicPartition, int]:
        """What is finished and not committed, of these (None: of all)."""
        chosen = self._by_place.keys() if partitions is None else self._by_place.keys() & set(partitions)
        found: dict[TopicPartition, int] = {}
        for place in chosen:
            share = self._by_place[place]
            offset = share.progress.committable
            if offset is not None and offset != share.committed:
                found[place] = offset
        return found

    def committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        for place, offset in offsets.items():
            if place in self._by_place:
                self._by_place[place].committed = offset

    def end_shares(self, partitions: Iterable[TopicPartition]) -> list[Share]:
        """Nothing of these is begun any more; the caller waits until nothing of them runs."""
        shares = [self._by_place[place] for place in partitions if place in self._by_place]
        for share in shares:
            share.is_over = True
        return shares

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        for place in partitions:
            self._by_place.pop(place, None)


def first_offsets(records: Iterable[ConsumedRecord]) -> dict[TopicPartition, int]:
    """Of each partition among them."""
    found: dict[TopicPartition, int] = {}
    for record in records:
        found.setdefault(TopicPartition(record.topic, record.partition), record.offset)
    return found
