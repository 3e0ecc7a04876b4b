"""Something that is done again and again in the background, while the user works: heartbeats.

In a thread with connections of its own here; under asyncio in a task (`aio`).
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from typing import Any

from ottla.client.blocking import run
from ottla.client.cluster import Cluster
from ottla.model.config_types import TypedValues

Turn = Callable[[], Coroutine[Any, Any, None]]


class Pulse(ABC):
    def __init__(self, cluster: Cluster, settings: TypedValues) -> None:
        self.cluster = cluster  # for whatever `turn` asks brokers
        self.interval_ms = settings.integer("heartbeat.interval.ms")

    @abstractmethod
    def start(self, turn: Turn) -> None:
        """From now on `turn` runs once per interval; a second call changes nothing."""

    @abstractmethod
    def hurry(self) -> None:
        """The next turn is due now."""

    @abstractmethod
    async def close(self) -> None: ...


class ThreadPulse(Pulse):
    def __init__(self, cluster: Cluster, settings: TypedValues) -> None:
        super().__init__(Cluster([str(address) for address in cluster.bootstrap], settings), settings)
        self._changed = threading.Condition()
        self._is_hurried = False
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def start(self, turn: Turn) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, args=(turn,), name="ottla-heartbeats", daemon=True
            )
            self._thread.start()

    def hurry(self) -> None:
        with self._changed:
            self._is_hurried = True
            self._changed.notify()

    async def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
        self.cluster.close()

    def _run(self, turn: Turn) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_hurried or self._is_closed, self.interval_ms / 1000)
                self._is_hurried = False
                if self._is_closed:
                    return
            run(turn())
