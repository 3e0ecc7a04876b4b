"""Idempotent consuming, weak: ids that were seen are remembered for a while, beside the work and not with it.

    if seen.first_time(order_id):
        try: handle(record)
        except: seen.forget(order_id); raise

Cheap, and enough where a rare double is bearable: a crash between the mark and the work loses the work's
repetition (mark first) until the id expires, and an id that has expired is new again. `Ledger` has neither.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any


class SeenIds:
    """In memory: of this process only, and no more than `count_max` of them (the oldest go first)."""

    def __init__(
        self, ttl_seconds: float, count_max: int = 1_000_000, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ttl = ttl_seconds
        self._count_max = count_max
        self._clock = clock
        self._ends: OrderedDict[str, float] = OrderedDict()  # when each is forgotten, soonest first
        self._lock = threading.Lock()

    def first_time(self, business_id: str) -> bool:
        now = self._clock()
        with self._lock:
            while self._ends and next(iter(self._ends.values())) <= now:
                self._ends.popitem(last=False)
            if business_id in self._ends:
                return False
            self._ends[business_id] = now + self._ttl
            if len(self._ends) > self._count_max:
                self._ends.popitem(last=False)
            return True

    def forget(self, business_id: str) -> None:
        """Its work has failed: it may come again."""
        with self._lock:
            self._ends.pop(business_id, None)


class RedisSeenIds:
    """In Redis or Valkey: shared by all processes. `client` is a `redis.Redis` (or `valkey.Valkey`)."""

    def __init__(self, client: Any, ttl_seconds: float, prefix: str = "ottla:seen:") -> None:
        self._client = client
        self._ttl_ms = max(1, round(ttl_seconds * 1000))
        self._prefix = prefix

    def first_time(self, business_id: str) -> bool:
        return bool(self._client.set(self._prefix + business_id, b"1", nx=True, px=self._ttl_ms))

    def forget(self, business_id: str) -> None:
        self._client.delete(self._prefix + business_id)
