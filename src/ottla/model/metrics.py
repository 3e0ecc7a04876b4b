"""Numbers about ourselves. Counting is one attribute increment; names and text are made only when asked for.

Only the owner thread counts, so nothing here locks. Readers take a `snapshot()` on the owner thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

try:
    import cython
except ModuleNotFoundError:  # uncompiled, and Cython is not there: its names are only decoration then
    from ottla.model import cython_shim as cython

HISTOGRAM_BUCKETS = 32  # powers of two of a microsecond: 1 µs to over an hour


class Counter:
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


class Histogram:
    """Durations in buckets that double, so a quantile is known within a factor of two."""

    __slots__ = ("buckets", "count", "sum_us")

    def __init__(self) -> None:
        self.buckets = [0] * HISTOGRAM_BUCKETS
        self.count = 0
        self.sum_us = 0

    def observe_us(self, duration_us: int) -> None:
        self.buckets[min(_bit_length(duration_us), HISTOGRAM_BUCKETS - 1)] += 1
        self.count += 1
        self.sum_us += duration_us

    def quantile_us(self, share: float) -> int:
        """The upper edge of the bucket that holds the given share of all observations."""
        wanted = share * self.count
        seen = 0
        for index, count in enumerate(self.buckets):
            seen += count
            if count and seen >= wanted:
                return (1 << index) - 1 if index else 0
        return 0


def _bit_length(duration_us: int) -> int:
    if not cython.compiled:
        return max(duration_us, 0).bit_length()
    length = 0
    while duration_us > 0:
        duration_us >>= 1
        length += 1
    return length


class Registry:
    """Every metric by its name; gauges are functions that are called only for a snapshot."""

    def __init__(self) -> None:
        self._counters: dict[str, Counter] = {}
        self._histograms: dict[str, Histogram] = {}
        self._gauges: dict[str, Callable[[], float]] = {}

    def counter(self, name: str) -> Counter:
        return self._counters.setdefault(name, Counter())

    def histogram(self, name: str) -> Histogram:
        return self._histograms.setdefault(name, Histogram())

    def gauge(self, name: str, read: Callable[[], float]) -> None:
        self._gauges[name] = read

    def counters(self) -> dict[str, int]:
        return {name: counter.value for name, counter in self._counters.items()}

    def gauges(self) -> dict[str, float]:
        return {name: read() for name, read in self._gauges.items()}

    def histograms(self) -> Mapping[str, Histogram]:
        return self._histograms

    def snapshot(self) -> dict[str, float]:
        values: dict[str, float] = {name: counter.value for name, counter in self._counters.items()}
        values.update((name, read()) for name, read in self._gauges.items())
        for name, histogram in self._histograms.items():
            values[f"{name}.count"] = histogram.count
            values[f"{name}.sum_us"] = histogram.sum_us
            values[f"{name}.p50_us"] = histogram.quantile_us(0.50)
            values[f"{name}.p99_us"] = histogram.quantile_us(0.99)
        return values
