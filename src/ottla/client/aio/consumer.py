"""The consumer for asyncio; its heartbeats are a task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TypeVar

from ottla.client.aio.network import AioCluster
from ottla.client.aio.waiting import Changed
from ottla.client.assignors import Assignor
from ottla.client.cluster import Cluster
from ottla.client.consumer_calls import ConsumerCalls
from ottla.client.errors import Misused
from ottla.client.fetched import ConsumedRecord
from ottla.client.pulse import Pulse, Turn
from ottla.model.config_types import TypedValues

T = TypeVar("T")

_POLL_SECONDS = 1.0


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
        self._polled = Changed()

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
