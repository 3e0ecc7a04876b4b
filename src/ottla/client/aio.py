"""The clients for asyncio: the same names, settings and rules as the blocking ones, over the same core.

    async with Producer("localhost:9092") as producer, Consumer("localhost:9092", group_id="g") as consumer:
        await (await producer.send("orders", b"value"))
        consumer.subscribe(["orders"])
        async for record in consumer:
            ...

Made inside a running loop, and used there. A client has at most one task of its own, and no thread.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any, TypeVar

from ottla.client.accumulator import Delivery, Headers, OnDelivery
from ottla.client.admin_calls import AdminCalls
from ottla.client.aio_network import AioCluster, end_wait
from ottla.client.assignors import Assignor
from ottla.client.blocking import direct
from ottla.client.cluster import Cluster
from ottla.client.cluster_view import Topic
from ottla.client.consumer_calls import ConsumerCalls
from ottla.client.delivery import SendFuture
from ottla.client.errors import ClientError, Closed, Misused, TimedOut
from ottla.client.fetched import ConsumedRecord
from ottla.client.interceptors import ProducerRecord
from ottla.client.partitioners import Partitioner
from ottla.client.producer_core import ProducerCore, not_delivered
from ottla.client.producing import ProducerLoop
from ottla.client.pulse import Pulse, Turn
from ottla.client.settings import COMMON_SETTINGS, bootstrap_of, load
from ottla.client.transacting import TransactionCalls
from ottla.model.config_types import TypedValues

__all__ = ["Admin", "Consumer", "Producer"]

T = TypeVar("T")

log = logging.getLogger(__name__)

_POLL_SECONDS = 1.0


class Admin(AdminCalls):
    """Every call of the blocking `Admin`, to be awaited. Several may be under way at once."""

    def __init__(self, bootstrap: str | Sequence[str] = "", **settings: object) -> None:
        bootstrap = bootstrap_of(bootstrap, settings)
        loaded = load(settings, COMMON_SETTINGS)
        super().__init__(AioCluster(bootstrap, loaded), loaded.integer("default.api.timeout.ms"))

    async def close(self) -> None:
        self._cluster.close()

    async def __aenter__(self) -> Admin:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


class _Changed:
    """Tells coroutines that wait; what is between two awaits needs no lock."""

    def __init__(self) -> None:
        self._waiters: set[asyncio.Future[None]] = set()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass

    def notify_all(self) -> None:
        for waiter in self._waiters:
            end_wait(waiter)

    async def wait_for(self, condition: Callable[[], Any], timeout: float | None) -> bool:
        """Whether the condition came true, within so many seconds."""
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        while not condition():
            left = None if deadline is None else deadline - loop.time()
            if left is not None and left <= 0:
                return False
            waiter = loop.create_future()
            timer = None if left is None else loop.call_later(left, end_wait, waiter)
            self._waiters.add(waiter)
            try:
                await waiter
            finally:
                self._waiters.discard(waiter)
                if timer is not None:
                    timer.cancel()
        return True


class Delivering:
    """What `send` gives: await it for the delivery, or why there is none."""

    __slots__ = ("_changed", "_future")

    def __init__(self, future: SendFuture, changed: _Changed) -> None:
        self._future = future
        self._changed = changed

    def done(self) -> bool:
        return self._future.done()

    def __await__(self) -> Generator[Any, None, Delivery]:
        return self._wait().__await__()

    async def _wait(self) -> Delivery:
        await self._changed.wait_for(self._future.done, None)
        return self._future.result()


class Producer:
    def __init__(
        self,
        bootstrap: str | Sequence[str] = "",
        *,
        partitioner: str | Partitioner | None = None,
        **settings: object,
    ) -> None:
        if partitioner is not None:
            settings = {**settings, "partitioner.class": partitioner}
        self._core = ProducerCore(bootstrap, settings, _auto_creating)
        self._network = self._core.cluster.network
        self._intake = self._core.intake
        self._changed = _Changed()
        self._loop = ProducerLoop(self._core, self._changed)
        self._calls = TransactionCalls(self._core, self._changed, self._changed.wait_for, self.flush)
        self._is_closed = False
        self._task = asyncio.get_running_loop().create_task(self._run(), name="ottla-producer")

    async def __aenter__(self) -> Producer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def _run(self) -> None:
        try:
            while True:
                await self._core.cluster.turn(self._loop.begin_turn())
                self._loop.tell()
        except asyncio.CancelledError:
            raise
        except BaseException:
            log.exception("the producer's task failed")
        finally:
            self._loop.end()
            self._core.cluster.close()

    # -- sending -------------------------------------------------------------------------------------------

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Delivering:
        """Puts a record into the buffer, waiting only for room or a new topic. Await what it gives for the
        delivery; `on_delivery(delivery, error)` runs in the producer's task.
        """
        chain = self._intake.interceptors
        if not chain:
            return await self._send(topic, value, key, partition, headers, timestamp_ms, on_delivery)
        record = chain.on_send(ProducerRecord(topic, value, key, partition, headers, timestamp_ms))
        try:
            return await self._send(*record, chain.before(on_delivery))
        except Exception as error:
            chain.on_acknowledgement(None, error)
            raise

    async def _send(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        headers: Headers,
        timestamp_ms: int | None,
        on_delivery: OnDelivery | None,
    ) -> Delivering:
        intake = self._intake
        record = intake.prepare(topic, value, key, headers, timestamp_ms)
        known = self._core.cluster.metadata.view.topics.get(topic) or await self._wait_for_topic(topic)
        if partition is None:
            partition = intake.chosen_by_user(topic, record)
        if not intake.has_room(record.size):
            await self._wait_for_room(record.size)
        if self._is_closed:
            raise Closed("the producer is closed")
        now_ms = time.monotonic_ns() // 1_000_000
        batch, index = intake.append(known, record, partition, now_ms, on_delivery)
        if index == 0 or not batch.is_open:
            self._network.wake()
        # SendFuture needs a condition only to block, which nothing here does.
        return Delivering(SendFuture(batch, index, None), self._changed)  # type: ignore[arg-type]

    async def partition_count(self, topic: str) -> int:
        """Of a topic that is there, or that the broker creates when it is asked for."""
        known = self._core.cluster.metadata.view.topics.get(topic) or await self._wait_for_topic(topic)
        return len(known.partitions)

    @property
    def buffered_bytes(self) -> int:
        """Of records that are not delivered yet."""
        return self._core.batches.bytes

    async def _wait_for_topic(self, topic: str) -> Topic:
        def outcome() -> Topic | ClientError | None:
            return Closed("the producer is closed") if self._is_closed else self._intake.topic(topic)

        self._loop.wanted_topics.add(topic)
        self._network.wake()
        await self._changed.wait_for(outcome, self._core.max_block_ms / 1000)
        found = outcome()
        if isinstance(found, Topic):
            return found
        self._loop.wanted_topics.discard(topic)
        raise found or self._core.cluster.timed_out(f"finding the partitions of topic {topic!r}")

    async def _wait_for_room(self, size: int) -> None:
        self._core.begin_waiting()
        try:
            freed = await self._changed.wait_for(
                lambda: self._is_closed or self._intake.has_room(size), self._core.max_block_ms / 1000
            )
        finally:
            self._core.end_waiting()
        if not freed:
            raise self._core.buffer_full()

    async def flush(self, timeout: float | None = None) -> None:
        """Waits until everything sent before is delivered or has failed, and callbacks have run.

        Raises TimedOut (seconds).
        """
        before = self._core.begin_waiting()
        try:
            done = await self._changed.wait_for(lambda: all(batch.is_flushed for batch in before), timeout)
        finally:
            self._core.end_waiting()
        if not done:
            raise not_delivered(before, timeout)

    async def close(self, timeout: float | None = None) -> None:
        """Delivers what is left, at most for `timeout` seconds; then the rest fails. 0 fails it at once."""
        if self._is_closed:
            return
        try:
            if timeout != 0:
                await self._calls.abort_before_closing(timeout)
                await self.flush(timeout)
        except TimedOut as error:
            log.warning("%s", error)
        except ClientError as error:
            log.warning("a transaction was left as it is: %s", error)
        finally:
            self._is_closed = True
            self._changed.notify_all()
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._intake.close()

    # -- transactions --------------------------------------------------------------------------------------

    init_transactions = direct(TransactionCalls.init_transactions)
    begin_transaction = direct(TransactionCalls.begin_transaction)
    send_offsets_to_transaction = direct(TransactionCalls.send_offsets_to_transaction)
    commit_transaction = direct(TransactionCalls.commit_transaction)
    abort_transaction = direct(TransactionCalls.abort_transaction)
    detach_transaction = direct(TransactionCalls.detach_transaction)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Commits when the block ends, aborts when it raises."""
        await self._calls.begin_transaction()
        try:
            yield
            await self._calls.commit_transaction()
        except BaseException as error:
            await self._calls.abort_after(error)
            raise


def _auto_creating(bootstrap: str | Sequence[str], settings: TypedValues) -> Cluster:
    return AioCluster(bootstrap, settings, auto_create=True)


class TaskPulse(Pulse):
    """In a task, over the consumer's own connections."""

    def __init__(self, cluster: Cluster, settings: TypedValues) -> None:
        super().__init__(cluster, settings)
        self._task: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()

    def start(self, turn: Turn) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(turn), name="ottla-heartbeats")

    def hurry(self) -> None:
        self._hurry.set()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self, turn: Turn) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), self.interval_ms / 1000)
            self._hurry.clear()
            await turn()


class Consumer(ConsumerCalls):
    """Every call of the blocking `Consumer`; those that wait for brokers are to be awaited.

    One task polls; others may commit, seek and ask meanwhile. Methods of a listener may be coroutines.
    """

    def __init__(
        self,
        bootstrap: str | Sequence[str] = "",
        *,
        strategy: Sequence[str | Assignor] = (),
        **settings: object,
    ) -> None:
        super().__init__(bootstrap, strategy, settings, AioCluster, TaskPulse)
        self._is_polling = False
        self._polled = _Changed()

    async def __aenter__(self) -> Consumer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def __aiter__(self) -> AsyncIterator[ConsumedRecord]:
        """Record after record, for ever. A commit within covers those that were handed out."""
        while True:
            record = await self.one(_POLL_SECONDS)
            if record is not None:
                yield record

    async def _poll(self, timeout: float, collect: Callable[[], T]) -> T:
        if self._is_polling:
            raise Misused("another task polls this consumer", "poll from one task, or give each its own")
        self._is_polling = True
        try:
            return await super()._poll(timeout, collect)
        finally:
            self._is_polling = False
            self._polled.notify_all()

    async def close(self) -> None:
        """Commits (with enable.auto.commit) and leaves the group. A poll of another task ends with Closed."""
        self._is_closing = True
        self._cluster.network.wake()
        await self._polled.wait_for(lambda: not self._is_polling, None)
        await super().close()
