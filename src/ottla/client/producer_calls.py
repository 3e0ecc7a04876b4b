"""What callers of a producer wait for: a topic's partitions, room in the buffer, delivery, rows on their way.

Written once for both shells (see `blocking`); `changed` is their lock, and `wait` waits with it held.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ottla.client.accumulator import Batch
from ottla.client.arrow_rows import Load, record_batches, rows_by_topic
from ottla.client.cluster_view import Topic
from ottla.client.errors import BufferFull, ClientError, Closed, TimedOut
from ottla.client.producer_core import ProducerCore, not_delivered
from ottla.client.producing import Changed, ProducerLoop
from ottla.client.rows_delivery import OnRowsDelivery, told
from ottla.client.transacting import TransactionCalls, Wait
from ottla.records.rows import Group

if TYPE_CHECKING:
    import pyarrow

HEADERS_AS_DICT = "headers are pairs, because names may repeat: give list(headers.items())"

_QUEUE_KNOWN = 2
"""Behind so many batches of its partition the loop knows of one that is due (of two, the first may have taken
records until now), and goes on to this one by itself: waking it would only cost a turn."""

log = logging.getLogger(__name__)

Breathe = Callable[[], Awaitable[None]]
"""Lets others have a turn, where a turn is something to give."""


class ProducerCalls(TransactionCalls):
    """Every call of a producer that may wait, but `send`, which its shells have for speed."""

    def __init__(self, core: ProducerCore, changed: Changed, wait: Wait, breathe: Breathe) -> None:
        super().__init__(core, changed, wait, self.flush)
        self._core = core
        self._intake = core.intake
        self._breathe = breathe
        self.loop = ProducerLoop(core, changed)
        self.is_closed = False

    # -- waiting -------------------------------------------------------------------------------------------

    async def topic(self, name: str) -> Topic:
        """Asked for, if it is new here; raises after max.block.ms."""
        known = self._cluster.metadata.view.topics.get(name)
        if known is not None:
            return known

        def outcome() -> Topic | ClientError | None:
            return Closed("the producer is closed") if self.is_closed else self._core.topic(name)

        with self._changed:
            self.loop.wanted_topics.add(name)
            self._cluster.network.wake()
            await self._wait(lambda: outcome() is not None, self._max_block_ms / 1000)
            found = outcome()
            if isinstance(found, Topic):
                return found
            self.loop.wanted_topics.discard(name)
        raise found or self._cluster.timed_out(f"finding the partitions of topic {name!r}")

    async def partition_count(self, topic: str) -> int:
        """Of a topic that is there, or that the broker creates when it is asked for."""
        return len((await self.topic(topic)).partitions)

    async def room(self, size: int) -> None:
        """Waits for it, with the lock held; raises after max.block.ms."""
        self._core.begin_waiting()
        try:
            freed = await self._wait(
                lambda: self.is_closed or self._intake.has_room(size), self._max_block_ms / 1000
            )
        finally:
            self._core.end_waiting()
        if self.is_closed:
            raise Closed("the producer was closed while a record waited for room")
        if not freed:
            raise self._core.buffer_full()

    async def flush(self, timeout: float | None = None) -> None:
        """Waits until everything sent before is delivered or has failed, and callbacks have run.

        Raises TimedOut (seconds).
        """
        with self._changed:
            before = self._core.begin_waiting()
            try:
                done = await self._wait(lambda: all(batch.is_flushed for batch in before), timeout)
            finally:
                self._core.end_waiting()
        if not done:
            raise not_delivered(before, timeout)

    async def finish(self, timeout: float | None) -> None:
        """Delivers what is left, at most for `timeout` seconds, 0 nothing of it; then takes nothing more."""
        try:
            if timeout != 0:
                await self.abort_before_closing(timeout)
                await self.flush(timeout)
        except TimedOut as error:
            log.warning("%s", error)  # and the futures of what is left tell
        except ClientError as error:  # the transaction is no longer this producer's to abort
            log.warning("a transaction was left as it is: %s", error)
        finally:
            with self._changed:
                self.is_closed = True
                self._changed.notify_all()

    # -- rows ----------------------------------------------------------------------------------------------

    async def send_rows(
        self,
        rows: pyarrow.Table | pyarrow.RecordBatch,
        topic: str | None,
        on_delivery: OnRowsDelivery | None,
    ) -> list[Batch]:
        """The batches that they became. Rows that cannot be records are refused before the first is sent."""
        sent: list[Batch] = []
        loads: list[Load] = []
        for batch in record_batches(rows):
            for name, part in rows_by_topic(batch, topic):
                loads.append(Load.of(await self.topic(name), part, self._intake))
        try:
            for load in loads:
                for group in load.groups:
                    await self._send_group(load, group, sent, on_delivery)
        except BufferFull as error:
            count = sum(len(batch.records) for batch in sent)
            raise BufferFull(
                f"{error.text}; {count} of {rows.num_rows} rows are under way", error.cure
            ) from None
        return sent

    async def _send_group(
        self, load: Load, group: Group, sent: list[Batch], on_delivery: OnRowsDelivery | None
    ) -> None:
        intake, first = self._intake, group.first
        on_done = None if on_delivery is None else told(on_delivery)
        while first < group.end:
            records, first = load.rows.encode(first, group.end, intake.batch_bytes_max)
            records.compress(self.loop.codec, self.loop.codec_level)
            with self._changed:
                if not intake.has_room(records.size):
                    await self.room(records.size)
                if self.is_closed:
                    raise Closed("the producer is closed")
                batch = intake.enqueue(load.topic, group.partition, records, self._cluster.now_ms(), on_done)
                sent.append(batch)
                is_news = len(batch.lane.queue) <= _QUEUE_KNOWN
            if is_news:
                self._cluster.network.wake()
            await self._breathe()
