"""Fetch requests of what is in memory, and many that wait for records that do not come."""

from __future__ import annotations

from benchmarks import topics
from benchmarks.against_kafka.bench import SERVER_BUSY, Bench
from benchmarks.against_kafka.rows import Row, Trial
from benchmarks.questions import KIB, MIB, fetch
from benchmarks.raw_load import Figures, Shape

_PARKED = 1_000


def _hot(what: str, size: int, target: float) -> Trial:
    def run(bench: Bench) -> Figures:
        with bench.topic() as topic:
            topics.fill(bench.address, topic, 4 * MIB)
            return bench.ask(fetch(size, fetch_offset=1), topic, Shape(4))

    row = Row(f"fetch {what}, 4 connections", "MB/s", "received_mb_per_second", target=target)
    return Trial((row,), run, quick=True, writes=False)


def _parked(bench: Bench) -> Figures:
    with bench.topic() as topic:  # it holds the one record of its trial
        waiting = fetch(MIB, fetch_offset=1, max_wait_ms=500, bytes_min=0)
        figures = bench.ask(waiting, topic, Shape(_PARKED))
    return {"cpu_percent": 100 * figures[SERVER_BUSY]}


HOT = (_hot("64 KiB", 64 * KIB, 3), _hot("1 MiB", MIB, 1.5))
TRIALS = (
    *HOT,
    Trial(
        (Row(f"{_PARKED:,} fetches parked for 500 ms, CPU", "%", "cpu_percent", lower_is_better=True),),
        _parked,
        writes=False,
    ),
)
