"""One consumer that feeds many threads: order kept per partition or per key, commits behind what is finished.

    with Consumer("localhost:9092", group_id="billing", enable_auto_commit=False) as consumer:
        consumer.subscribe(["orders"])              # without a listener: the pool has its own
        WorkerPool(consumer, handle, workers=16, order="key").run()

A record is committed when it and every record before it in its partition are finished. When `handle` raises,
the pool ends what workers have in hand, commits what is finished up to the failed record, and raises;
`on_error(record, error)` may take care of it instead (a dead-letter topic, say): then it counts as finished.
"""

from __future__ import annotations

import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from queue import SimpleQueue
from typing import Literal

from ottla.client.consumer import Consumer
from ottla.client.errors import CommitFailed, Misused
from ottla.client.fetched import ConsumedRecord
from ottla.client.group import RebalanceListener
from ottla.model.topics import TopicPartition

_POLL_SECONDS = 0.1


class Progress:
    """How far a partition is finished, while its records finish in any order. Pure."""

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


class _Share:
    """A partition for as long as this consumer has it."""

    def __init__(self) -> None:
        self.progress = Progress()
        self.running = 0  # records that workers have in hand
        self.is_over = False  # what is queued is not begun any more
        self.committed: int | None = None


class WorkerPool:
    def __init__(
        self,
        consumer: Consumer,
        handle: Callable[[ConsumedRecord], object],
        *,
        workers: int = 8,
        order: Literal["partition", "key"] = "partition",
        queued_max: int = 1_000,
        commit_seconds: float = 5.0,
        on_error: Callable[[ConsumedRecord, Exception], object] | None = None,
    ) -> None:
        if consumer.commits_itself:
            raise Misused("the consumer commits by itself", "set enable.auto.commit to false")
        self._consumer = consumer
        self._handle = handle
        self._on_error = on_error
        self._by_key = order == "key"
        self._queued_max = queued_max
        self._commit_seconds = commit_seconds
        self._queues: list[SimpleQueue[tuple[_Share, ConsumedRecord] | None]] = [
            SimpleQueue() for _ in range(workers)
        ]
        self._next_worker = 0  # for records without a key
        self._changed = threading.Condition()
        # Under the lock:
        self._shares: dict[TopicPartition, _Share] = {}
        self._queued = 0  # records that are not finished
        self._failure: BaseException | None = None
        self._is_stopping = False

    def stop(self) -> None:
        """From any thread, also from a handler: `run` finishes what is queued, commits and returns."""
        self._is_stopping = True

    def run(self) -> None:
        """Until `stop`, or until a handler fails: then it raises what the handler raised."""
        self._consumer.listen(_Listener(self))
        threads = [
            threading.Thread(target=self._work, args=(queue,), name="ottla-worker", daemon=True)
            for queue in self._queues
        ]
        for thread in threads:
            thread.start()
        try:
            self._feed()
            self._finish_queued()
        except BaseException as error:
            self._fail(error)
            raise
        finally:
            for queue in self._queues:
                queue.put(None)
            for thread in threads:
                thread.join()
            self._commit()
        if self._failure is not None:
            raise self._failure

    # -- the caller's thread -------------------------------------------------------------------------------

    def _feed(self) -> None:
        next_commit = time.monotonic() + self._commit_seconds
        is_paused = False
        while not self._is_stopping and self._failure is None:
            for record in self._consumer.poll(_POLL_SECONDS):
                self._enqueue(record)
            if self._queued >= self._queued_max:
                self._consumer.pause()  # polls go on, or the group would take us for stuck
                is_paused = True
            elif is_paused and self._queued <= self._queued_max // 2:
                self._consumer.resume()
                is_paused = False
            if time.monotonic() >= next_commit:
                self._commit()
                next_commit = time.monotonic() + self._commit_seconds

    def _enqueue(self, record: ConsumedRecord) -> None:
        target = TopicPartition(record.topic, record.partition)
        with self._changed:
            share = self._shares.setdefault(target, _Share())
            share.progress.begin(record.offset)
            self._queued += 1
        self._queues[self._worker_of(record)].put((share, record))

    def _worker_of(self, record: ConsumedRecord) -> int:
        if self._by_key and record.key is None:
            self._next_worker += 1
            return self._next_worker % len(self._queues)
        lane: Hashable = record.key if self._by_key else None
        return zlib.crc32(repr((record.topic, record.partition, lane)).encode()) % len(self._queues)

    def _finish_queued(self) -> None:
        """Polls on meanwhile, without taking records: a long record must not cost the place in the group."""
        self._consumer.pause()
        while self._queued and self._failure is None:
            if self._consumer.poll(_POLL_SECONDS):
                raise AssertionError("paused partitions gave records")
        self._consumer.resume()

    def _commit(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        with self._changed:
            chosen = self._shares if partitions is None else self._shares.keys() & set(partitions)
            wanted: dict[TopicPartition, int] = {}
            for target in chosen:
                offset = self._shares[target].progress.committable
                if offset is not None and offset != self._shares[target].committed:
                    wanted[target] = offset
        if not wanted:
            return
        self._consumer.commit(wanted)
        with self._changed:
            for target, offset in wanted.items():
                if target in self._shares:
                    self._shares[target].committed = offset

    # -- workers -------------------------------------------------------------------------------------------

    def _work(self, queue: SimpleQueue[tuple[_Share, ConsumedRecord] | None]) -> None:
        while (item := queue.get()) is not None:
            share, record = item
            with self._changed:
                if share.is_over or self._failure is not None:
                    self._queued -= 1
                    continue
                share.running += 1
            try:
                self._handle_one(record)
            except BaseException as error:
                self._fail(error)
                is_finished = False
            else:
                is_finished = True
            with self._changed:
                share.running -= 1
                self._queued -= 1
                if is_finished:
                    share.progress.finish(record.offset)
                self._changed.notify_all()

    def _handle_one(self, record: ConsumedRecord) -> None:
        try:
            self._handle(record)
        except Exception as error:
            if self._on_error is None:
                raise
            self._on_error(record, error)

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            if self._failure is None:
                self._failure = error

    # -- rebalances ----------------------------------------------------------------------------------------

    def give_up(self, partitions: tuple[TopicPartition, ...], *, is_lost: bool) -> None:
        """Workers end what they have in hand of these; the rest of it belongs to others."""
        with self._changed:
            shares = [self._shares[target] for target in partitions if target in self._shares]
            for share in shares:
                share.is_over = True
            self._changed.wait_for(lambda: not any(share.running for share in shares))
        if not is_lost:
            with suppress(CommitFailed):  # too late: others read these records again
                self._commit(partitions)
        with self._changed:
            for target in partitions:
                self._shares.pop(target, None)


class _Listener(RebalanceListener):
    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool

    def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        self._pool.give_up(partitions, is_lost=False)

    def on_partitions_lost(self, partitions: tuple[TopicPartition, ...]) -> None:
        self._pool.give_up(partitions, is_lost=True)
