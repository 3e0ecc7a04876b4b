"""Latencies of a run: percentiles, and a histogram drawn with letters."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence

PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9)
_BAR_CHARACTERS = 40
_BLOCKS = " ▏▎▍▌▋▊▉█"
_EDGES_MS = [
    mantissa * 10.0**exponent for exponent in range(-2, 5) for mantissa in (1, 2, 5)
]  # 10 µs to 50 s, three for each power of ten


class Latencies:
    """Every value is kept: eight bytes each, and percentiles are exact."""

    def __init__(self) -> None:
        self._seconds = array("d")

    def __len__(self) -> int:
        return len(self._seconds)

    def add(self, seconds: float) -> None:
        self._seconds.append(seconds)

    def values_ms(self) -> list[float]:
        return [seconds * 1000 for seconds in self._seconds]

    def summary_ms(self) -> dict[str, float]:
        """min, p50 … p99.9 and max; empty without values."""
        ordered = sorted(self._seconds)
        if not ordered:
            return {}
        summary = {"min": ordered[0] * 1000}
        for percentile in PERCENTILES:
            index = min(len(ordered) - 1, int(len(ordered) * percentile / 100))
            summary[f"p{percentile:g}"] = ordered[index] * 1000
        summary["max"] = ordered[-1] * 1000
        return summary

    def histogram(self) -> list[tuple[float, int]]:
        """Upper edges in milliseconds with counts, from the first to the last bucket that holds something."""
        counts = [0] * (len(_EDGES_MS) + 1)
        for seconds in self._seconds:
            counts[bisect_right(_EDGES_MS, seconds * 1000)] += 1
        used = [index for index, count in enumerate(counts) if count]
        if not used:
            return []
        edges = [*_EDGES_MS, float("inf")]
        return [(edges[index], counts[index]) for index in range(used[0], used[-1] + 1)]


def drawn(histogram: Sequence[tuple[float, int]]) -> list[str]:
    """One line for each bucket."""
    most = max((count for _, count in histogram), default=0)
    return [
        f"{_edge(edge):>8}  {_bar(count / most):<{_BAR_CHARACTERS}}  {count:,}" for edge, count in histogram
    ]


def _edge(edge_ms: float) -> str:
    if edge_ms == float("inf"):
        return "more"
    return f"{edge_ms:g} ms" if edge_ms < 1000 else f"{edge_ms / 1000:g} s"


def _bar(share: float) -> str:
    eighths = round(share * _BAR_CHARACTERS * 8)
    if share > 0:
        eighths = max(eighths, 1)  # the rare ones are what one looks for
    return "█" * (eighths // 8) + _BLOCKS[eighths % 8].strip()
