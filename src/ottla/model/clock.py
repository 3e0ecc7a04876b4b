# mypy: disable-error-code="attr-defined,no-any-return,no-untyped-call,unreachable,name-defined"
"""Where time comes from. Only `node` and the shells of clients read a clock; everything below gets `now_ms`.

Wall time stamps records; monotonic time drives deadlines, so that a changed system clock
neither expires what is parked nor keeps it for ever.
"""

from __future__ import annotations

import time
from typing import Any, Protocol

try:
    import cython
except ModuleNotFoundError:  # uncompiled, and Cython is not there: its names are only decoration then
    from ottla.model import cython_shim as cython

if cython.compiled:
    from cython.cimports.posix.time import CLOCK_MONOTONIC, CLOCK_REALTIME, clock_gettime, timespec


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
        if cython.compiled:
            return _now_us(CLOCK_REALTIME) // 1_000
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        if cython.compiled:
            return _now_us(CLOCK_MONOTONIC) // 1_000
        return time.monotonic_ns() // 1_000_000

    def monotonic_us(self) -> int:
        if cython.compiled:
            return _now_us(CLOCK_MONOTONIC)
        return time.monotonic_ns() // 1_000


def wall_ms_of(clock: Clock) -> int:
    """`clock.wall_ms()`; compiled, without an object if it is the system's clock. So are the next two."""
    if cython.compiled and type(clock) is SystemClock:
        return _now_us(CLOCK_REALTIME) // 1_000
    return clock.wall_ms()


def monotonic_ms_of(clock: Clock) -> int:
    if cython.compiled and type(clock) is SystemClock:
        return _now_us(CLOCK_MONOTONIC) // 1_000
    return clock.monotonic_ms()


def monotonic_us_of(clock: Clock) -> int:
    if cython.compiled and type(clock) is SystemClock:
        return _now_us(CLOCK_MONOTONIC)
    return clock.monotonic_us()


def _now_us(clock: Any) -> Any:
    """What Python's `time` would tell, without its objects: some of these are read for every request."""
    now = cython.declare(timespec)
    clock_gettime(clock, cython.address(now))
    return now.tv_sec * 1_000_000 + now.tv_nsec // 1_000


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
