"""Fetch requests of what is in memory and of what is not, and many that wait for records that do not come."""

from __future__ import annotations

from benchmarks import topics
from benchmarks.against_kafka.bench import SERVER_BUSY, Bench
from benchmarks.against_kafka.rows import Row, Trial
from benchmarks.questions import KIB, MIB, fetch
from benchmarks.raw_load import Figures, Shape, Steps

_PARKED = 1_000
_SOUGHT = 0x0102030405060708  # an offset that is found again in an encoded request
_COLD_SECONDS_MAX = 60


def _hot(what: str, size: int, target: float) -> Trial:
    def run(bench: Bench) -> Figures:
        with bench.topic() as topic:
            topics.fill(bench.address, topic, 4 * MIB)
            return bench.ask(fetch(size, fetch_offset=1), topic, Shape(4))

    row = Row(f"fetch {what}, 4 connections", "MB/s", "received_mb_per_second", target=target)
    return Trial((row,), run, quick=True, writes=False)


def _cold(what: str, size: int) -> Trial:
    """One after the other through a topic of which nothing is in memory, as who catches up does."""

    def run(bench: Bench) -> Figures:
        with bench.topic() as topic:
            topics.fill(bench.address, topic, bench.scale.cold_mib * MIB)
            offset_at = fetch(size, fetch_offset=_SOUGHT).encoded(topic).index(_SOUGHT.to_bytes(8, "big"))
            records = size // topics.FILL_BATCH_BYTES * topics.FILL_BATCH_RECORDS  # each begins with a batch
            steps = Steps(offset_at, records, bench.scale.cold_mib * MIB // size - 1)  # whole answers only
            topics.drop_pages(bench.broker.folder, topic)
            return bench.ask(fetch(size, fetch_offset=1), topic, Shape(4), _COLD_SECONDS_MAX, steps)

    row = Row(f"fetch {what} from disk, 4 connections", "MB/s", "received_mb_per_second")
    return Trial((row,), run, writes=False)


def _parked(bench: Bench) -> Figures:
    with bench.topic() as topic:  # it holds the one record of its trial
        waiting = fetch(MIB, fetch_offset=1, max_wait_ms=500, bytes_min=0)
        figures = bench.ask(waiting, topic, Shape(_PARKED))
    return {"cpu_percent": 100 * figures[SERVER_BUSY]}


HOT = (_hot("64 KiB", 64 * KIB, 3), _hot("1 MiB", MIB, 1.5))
TRIALS = (
    *HOT,
    _cold("64 KiB", 64 * KIB),
    _cold("1 MiB", MIB),
    Trial(
        (Row(f"{_PARKED:,} fetches parked for 500 ms, CPU", "%", "cpu_percent", lower_is_better=True),),
        _parked,
        writes=False,
    ),
)
