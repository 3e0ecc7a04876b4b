"""Where time comes from. Only `node` and the shells of clients read a clock; everything below gets `now_ms`.

Wall time stamps records; monotonic time drives deadlines, so that a changed system clock
neither expires what is parked nor keeps it for ever.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def wall_ms(self) -> int:
        """Milliseconds since 1970 (UTC): goes into records and files."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds that never go back: for deadlines."""
        ...

    def monotonic_us(self) -> int:
        """The same in microseconds: for measuring."""
        ...


class SystemClock:
    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def monotonic_us(self) -> int:
        return time.monotonic_ns() // 1_000


class ManualClock:
    """A clock that tests move by hand."""

    def __init__(self, wall_ms: int = 1_700_000_000_000) -> None:
        self._wall_ms = wall_ms
        self._monotonic_ms = 0

    def wall_ms(self) -> int:
        return self._wall_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def monotonic_us(self) -> int:
        return self._monotonic_ms * 1_000

    def advance(self, ms: int) -> None:
        assert ms >= 0
        self._wall_ms += ms
        self._monotonic_ms += ms
