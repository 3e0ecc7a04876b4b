"""How coroutines of one loop wait for each other: conditions without locks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


def end_wait(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class Changed:
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
