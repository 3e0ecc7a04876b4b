"""Retry with backoff: a handler is called again while what it raises may pass by itself.

    Retries(attempts=5, pause=0.1).call(handle, record)

The pause doubles, up to `pause_max`, with a random share so that many do not come back at once. The last
error is raised. Keep the sum of pauses below max.poll.interval.ms, or use a delay (`Delays`).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Retries:
    def __init__(
        self,
        attempts: int = 5,
        pause: float = 0.1,
        pause_max: float = 10.0,
        *,
        on: type[Exception] | tuple[type[Exception], ...] = Exception,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if attempts < 1:
            raise ValueError(f"{attempts} attempts are none at all")
        self._attempts = attempts
        self._pause = pause
        self._pause_max = pause_max
        self._on = on
        self._sleep = sleep

    def call(self, handle: Callable[..., T], *arguments: object) -> T:
        pause = self._pause
        for _ in range(self._attempts - 1):
            try:
                return handle(*arguments)
            except self._on:
                self._sleep(min(pause, self._pause_max) * random.uniform(0.8, 1.2))
                pause *= 2
        return handle(*arguments)
