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
from collections.abc import Callable, Iterable
from contextlib import suppress
from queue import SimpleQueue
from typing import Literal

from ottla.client.consumer import Consumer
from ottla.client.errors import CommitFailed, Misused
from ottla.client.fetched import ConsumedRecord
from ottla.client.group import RebalanceListener
from ottla.client.pool_shares import Share, Shares, first_offsets
from ottla.model.topics import TopicPartition

_POLL_SECONDS = 0.1


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
        self._queued_max = queued_max
        self._commit_seconds = commit_seconds
        self._queues: list[SimpleQueue[tuple[Share, ConsumedRecord] | None]] = [
            SimpleQueue() for _ in range(workers)
        ]
        self._changed = threading.Condition()
        # Under the lock:
        self._shares = Shares(workers, by_key=order == "key")
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
            if self._shares.queued >= self._queued_max:
                self._consumer.pause()  # polls go on, or the group would take us for stuck
                is_paused = True
            elif is_paused and self._shares.queued <= self._queued_max // 2:
                self._consumer.resume()
                is_paused = False
            if time.monotonic() >= next_commit:
                self._commit()
                next_commit = time.monotonic() + self._commit_seconds

    def _enqueue(self, record: ConsumedRecord) -> None:
        with self._changed:
            share = self._shares.queue(record)
        self._queues[self._shares.worker_of(record)].put((share, record))

    def _finish_queued(self) -> None:
        """Polls on meanwhile, without taking records: a long record must not cost the place in the group."""
        while self._shares.queued and self._failure is None:
            self._consumer.pause()
            for place, offset in first_offsets(self._consumer.poll(_POLL_SECONDS)).items():
                self._consumer.seek(place, offset)  # partitions that have just come
        self._consumer.resume()

    def _commit(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        with self._changed:
            wanted = self._shares.committable(partitions)
        if wanted:
            self._consumer.commit(wanted)
            with self._changed:
                self._shares.committed(wanted)

    # -- workers -------------------------------------------------------------------------------------------

    def _work(self, queue: SimpleQueue[tuple[Share, ConsumedRecord] | None]) -> None:
        while (item := queue.get()) is not None:
            share, record = item
            with self._changed:
                if self._failure is not None:
                    share.is_over = True
                if not self._shares.begin(share):
                    continue
            try:
                self._handle_one(record)
            except BaseException as error:
                self._fail(error)
                is_finished = False
            else:
                is_finished = True
            with self._changed:
                self._shares.end(share, record, is_finished=is_finished)
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
            shares = self._shares.end_shares(partitions)
            self._changed.wait_for(lambda: not any(share.running for share in shares))
        if not is_lost:
            with suppress(CommitFailed):  # too late: others read these records again
                self._commit(partitions)
        with self._changed:
            self._shares.forget(partitions)


class _Listener(RebalanceListener):
    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool

    def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        self._pool.give_up(partitions, is_lost=False)

    def on_partitions_lost(self, partitions: tuple[TopicPartition, ...]) -> None:
        self._pool.give_up(partitions, is_lost=True)
