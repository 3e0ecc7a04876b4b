"""The producer for asyncio; its turns are a task."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from ottla.client.accumulator import Delivery, Headers, OnDelivery
from ottla.client.aio.network import AioCluster
from ottla.client.aio.waiting import Changed
from ottla.client.blocking import direct
from ottla.client.cluster import Cluster
from ottla.client.delivery import SendFuture
from ottla.client.errors import ClientError, Closed
from ottla.client.interceptors import ProducerRecord
from ottla.client.partitioners import Partitioner
from ottla.client.producer_calls import HEADERS_AS_DICT, ProducerCalls
from ottla.client.producer_core import ProducerCore
from ottla.client.rows_delivery import OnRowsDelivery, RowsDelivery, RowsFuture
from ottla.model.config_types import TypedValues

if TYPE_CHECKING:
    import pyarrow

log = logging.getLogger(__name__)

T = TypeVar("T", covariant=True)


class _Future(Protocol[T]):
    def done(self) -> bool: ...

    def result(self) -> T: ...


class Delivering(Generic[T]):
    """What `send` gives: await it for the delivery, or why there is none."""

    __slots__ = ("_changed", "_future")

    def __init__(self, future: _Future[T], changed: Changed) -> None:
        self._future = future
        self._changed = changed

    def done(self) -> bool:
        return self._future.done()

    def __await__(self) -> Generator[Any, None, T]:
        return self._wait().__await__()

    async def _wait(self) -> T:
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
        self._core = ProducerCore(bootstrap, settings, _cluster)
        self._network = self._core.cluster.network
        self._intake = self._core.intake
        self._changed = Changed()
        self._calls = ProducerCalls(self._core, self._changed, self._changed.wait_for, _let_others_go_on)
        self._task = asyncio.get_running_loop().create_task(self._run(), name="ottla-producer")

    async def __aenter__(self) -> Producer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def _run(self) -> None:
        loop = self._calls.loop
        try:
            while True:
                await self._core.cluster.turn(loop.begin_turn())
                loop.tell()
        except asyncio.CancelledError:
            raise
        except BaseException:
            log.exception("the producer's task failed")
        finally:
            loop.end()
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
    ) -> Delivering[Delivery]:
        """Puts a record into the buffer, waiting only for room or a new topic. Await what it gives for the
        delivery; `on_delivery(delivery, error)` runs in the producer's task.
        """
        if isinstance(headers, dict):  # as other clients take them
            raise TypeError(HEADERS_AS_DICT)
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
    ) -> Delivering[Delivery]:
        intake = self._intake
        record = intake.prepare(topic, value, key, headers, timestamp_ms)
        known = await self._calls.topic(topic)
        if partition is None:
            partition = intake.chosen_by_user(topic, record)
        if not intake.has_room(record.size):
            await self._calls.room(record.size)
        if self._calls.is_closed:
            raise Closed("the producer is closed")
        now_ms = time.monotonic_ns() // 1_000_000
        batch, index = intake.append(known, record, partition, now_ms, on_delivery)
        if index == 0 or not batch.is_open:
            self._network.wake()
        # The future needs a condition only to block, which nothing here does.
        return Delivering(SendFuture(batch, index, None), self._changed)  # type: ignore[arg-type]

    async def send_arrow(
        self,
        rows: pyarrow.Table | pyarrow.RecordBatch,
        topic: str | None = None,
        on_delivery: OnRowsDelivery | None = None,
    ) -> Delivering[list[RowsDelivery]]:
        """As the blocking producer's; other tasks have their turns between the batches."""
        batches = await self._calls.send_rows(rows, topic, on_delivery)
        return Delivering(RowsFuture(batches, None), self._changed)  # type: ignore[arg-type]

    partition_count = direct(ProducerCalls.partition_count)

    @property
    def buffered_bytes(self) -> int:
        """Of records that are not delivered yet."""
        return self._core.batches.bytes

    @property
    def problem(self) -> ClientError | None:
        """Why records are not delivered yet, as far as is known."""
        return self._core.problem

    flush = direct(ProducerCalls.flush)

    async def close(self, timeout: float | None = None) -> None:
        """Delivers what is left, at most for `timeout` seconds; then the rest fails. 0 fails it at once."""
        if self._calls.is_closed:
            return
        try:
            await self._calls.finish(timeout)
        finally:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._intake.close()

    # -- transactions --------------------------------------------------------------------------------------

    init_transactions = direct(ProducerCalls.init_transactions)
    begin_transaction = direct(ProducerCalls.begin_transaction)
    send_offsets_to_transaction = direct(ProducerCalls.send_offsets_to_transaction)
    commit_transaction = direct(ProducerCalls.commit_transaction)
    abort_transaction = direct(ProducerCalls.abort_transaction)
    detach_transaction = direct(ProducerCalls.detach_transaction)

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


async def _let_others_go_on() -> None:
    await asyncio.sleep(0)


def _cluster(bootstrap: str | Sequence[str], settings: TypedValues) -> Cluster:
    return AioCluster(bootstrap, settings, auto_create=True)
