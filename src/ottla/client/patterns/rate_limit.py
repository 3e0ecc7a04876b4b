"""Consuming no faster than the service behind it bears.

    limit = RateLimit(per_second=50)
    for record in consumer:
        limit.wait()
        handle(record)

A bucket of tokens: `burst` of them at once, then `per_second`. The consumer's background heartbeat keeps its
place in the group while it waits; what is not taken yet stays at the broker, visible as lag.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class RateLimit:
    def __init__(
        self,
        per_second: float,
        burst: float = 1,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if per_second <= 0 or burst < 1:
            raise ValueError("a limit lets something pass: per_second above 0, burst at least 1")
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._sleep = sleep
        self._tokens = burst
        self._at = clock()
        self._lock = threading.Lock()

    def wait(self, count: int = 1) -> None:
        """Returns when `count` more may pass; fair for many threads, each in its turn."""
        with self._lock:
            now = self._clock()
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._per_second) - count
            self._at = now
            debt = -self._tokens / self._per_second
        if debt > 0:
            self._sleep(debt)
