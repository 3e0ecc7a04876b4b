"""A cluster on whose answers a person waits: a line on the terminal says so, and what is tried in vain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ottla.cli.progress import Waiting
from ottla.client.admin import Admin
from ottla.client.cluster import Cluster

T = TypeVar("T")

_TURN_MS_MAX = 100
_PAUSE_MS = 1_000  # no wait for so long: somebody was asked something, and a new wait begins


def show_waiting() -> None:
    """Every admin client of this process from now on."""
    Admin._cluster_type = WaitingCluster


class WaitingCluster(Cluster):
    _waited_ms = 0  # when the last wait ended
    _waiting: Waiting

    async def turn(self, timeout_ms: int) -> None:
        if self.now_ms() - self._waited_ms > _PAUSE_MS:
            self._waiting = Waiting(f"waiting for {','.join(map(str, self.bootstrap))}")
        await super().turn(min(timeout_ms, _TURN_MS_MAX))
        self._waiting.tick()
        self._waiting.explain(self.last_failure or self.last_problem)
        self._waited_ms = self.now_ms()

    async def call(self, *arguments: Any, **named: Any) -> Any:
        try:
            return await super().call(*arguments, **named)
        finally:
            self._clear()

    async def wait(self, condition: Callable[[], T | None], deadline_ms: int, what: str) -> T:
        try:
            return await super().wait(condition, deadline_ms, what)
        finally:
            self._clear()

    def _clear(self) -> None:
        if self._waited_ms:
            self._waiting.clear()
