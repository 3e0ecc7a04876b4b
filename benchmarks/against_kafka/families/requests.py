"""Requests that do nothing, from one connection to a thousand."""

from __future__ import annotations

from benchmarks.against_kafka.bench import Bench
from benchmarks.against_kafka.rows import Row, Trial
from benchmarks.questions import api_versions
from benchmarks.raw_load import Figures, Shape


def _trial(connections: int, target: float | None = None, *, quick: bool = False) -> Trial:
    def run(bench: Bench) -> Figures:
        return bench.ask(api_versions(), "", Shape(connections))

    name = f"ApiVersions, {connections:,} connection{'s' if connections > 1 else ''}"
    return Trial((Row(name, "/s", "per_second", target=target),), run, quick, writes=False)


TRIALS = (_trial(1), _trial(64, 5, quick=True), _trial(256), _trial(1_000))
