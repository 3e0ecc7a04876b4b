"""One consumer that feeds many tasks: order kept per partition or per key, commits behind what is finished.

    async with Consumer("localhost:9092", group_id="billing", enable_auto_commit=False) as consumer:
        consumer.subscribe(["orders"])              # without a listener: the pool has its own
        await WorkerPool(consumer, handle, workers=16, order="key").run()

The rules are those of the blocking pool; `handle(record)` and `on_error(record, error)` are coroutines.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Literal

from ottla.client.aio.consumer import Consumer
from ottla.client.aio.waiting import Changed
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
        handle: Callable[[ConsumedRecord], Awaitable[object]],
        *,
        workers: int = 8,
        order: Literal["partition", "key"] = "partition",
        queued_max: int = 1_000,
        commit_seconds: float = 5.0,
        on_error: Callable[[ConsumedRecord, Exception], Awaitable[object]] | None = None,
    ) -> None:
        if consumer.commits_itself:
            raise Misused("the consumer commits by itself", "set enable.auto.commit to false")
        self._consumer = consumer
        self._handle = handle
        self._on_error = on_error
        self._queued_max = queued_max
        self._commit_seconds = commit_seconds
        self._queues: list[asyncio.Queue[tuple[Share, ConsumedRecord]]] = [
            asyncio.Queue() for _ in range(workers)
        ]
        self._shares = Shares(workers, by_key=order == "key")
        self._changed = Changed()
        self._failure: BaseException | None = None
        self._is_stopping = False

    def stop(self) -> None:
        """Also from a handler: `run` finishes what is queued, commits and returns."""
        self._is_stopping = True

    async def run(self) -> None:
        """Until `stop`, or until a handler fails: then it raises what the handler raised."""
        self._consumer.listen(_Listener(self))
        tasks = [asyncio.create_task(self._work(queue), name="ottla-worker") for queue in self._queues]
        try:
            await self._feed()
            await self._finish_queued()
        finally:
            await self._changed.wait_for(lambda: not self._shares.running, None)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._commit()
        if self._failure is not None:
            raise self._failure

    # -- feeding -------------------------------------------------------------------------------------------

    async def _feed(self) -> None:
        loop = asyncio.get_running_loop()
        next_commit = loop.time() + self._commit_seconds
        is_paused = False
        while not self._is_stopping and self._failure is None:
            for record in await self._consumer.poll(_POLL_SECONDS):
                self._queues[self._shares.worker_of(record)].put_nowait((self._shares.queue(record), record))
            if self._shares.queued >= self._queued_max:
                self._consumer.pause()  # polls go on, or the group would take us for stuck
                is_paused = True
            elif is_paused and self._shares.queued <= self._queued_max // 2:
                self._consumer.resume()
                is_paused = False
            if loop.time() >= next_commit:
                await self._commit()
                next_commit = loop.time() + self._commit_seconds

    async def _finish_queued(self) -> None:
        """Polls on meanwhile, without taking records: a long record must not cost the place in the group."""
        while self._shares.queued and self._failure is None:
            self._consumer.pause()
            for place, offset in first_offsets(await self._consumer.poll(_POLL_SECONDS)).items():
                self._consumer.seek(place, offset)  # partitions that have just come
        self._consumer.resume()

    async def _commit(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        wanted = self._shares.committable(partitions)
        if wanted:
            await self._consumer.commit(wanted)
            self._shares.committed(wanted)

    # -- workers -------------------------------------------------------------------------------------------

    async def _work(self, queue: asyncio.Queue[tuple[Share, ConsumedRecord]]) -> None:
        while not self._has_failed():
            share, record = await queue.get()
            if self._has_failed() or not self._shares.begin(share):
                continue
            is_finished = False
            try:
                await self._handle_one(record)
                is_finished = True
            except BaseException as error:
                if not self._has_failed():
                    self._failure = error
            finally:
                self._shares.end(share, record, is_finished=is_finished)
                self._changed.notify_all()

    def _has_failed(self) -> bool:
        return self._failure is not None

    async def _handle_one(self, record: ConsumedRecord) -> None:
        try:
            await self._handle(record)
        except Exception as error:
            if self._on_error is None:
                raise
            await self._on_error(record, error)

    # -- rebalances ----------------------------------------------------------------------------------------

    async def give_up(self, partitions: tuple[TopicPartition, ...], *, is_lost: bool) -> None:
        """Workers end what they have in hand of these; the rest of it belongs to others."""
        shares = self._shares.end_shares(partitions)
        await self._changed.wait_for(lambda: not any(share.running for share in shares), None)
        if not is_lost:
            with suppress(CommitFailed):  # too late: others read these records again
                await self._commit(partitions)
        self._shares.forget(partitions)


class _Listener(RebalanceListener):
    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool

    async def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        await self._pool.give_up(partitions, is_lost=False)

    async def on_partitions_lost(self, partitions: tuple[TopicPartition, ...]) -> None:
        await self._pool.give_up(partitions, is_lost=True)
