"""How long one record takes at a fixed rate, from when it was due, alone and beside bulk; acks=all."""

from __future__ import annotations

import os

from benchmarks.against_kafka.bench import Bench
from benchmarks.against_kafka.rows import Row, Trial
from benchmarks.questions import KIB, produce
from benchmarks.raw_load import Figures, Shape

_ONE = Shape(1, rate=500)
_BULK = Shape(4, rate=250)  # x 64 KiB: 16 MB/s, which every broker here can keep up with
_BULK_BYTES = 64 * KIB


def _alone(bench: Bench) -> Figures:
    os.sync()  # gigabytes that other rows have left for the kernel to write would be felt here
    with bench.topic() as topic:
        return bench.ask(produce(100), topic, _ONE, 2 * bench.scale.seconds)


def _beside_bulk(bench: Bench) -> Figures:
    with bench.topic() as bulk_topic:
        request = produce(_BULK_BYTES).encoded(bulk_topic)
        bulk = bench.clients.raw.start(bench.address, request, _BULK, 600)
        try:
            return _alone(bench)
        finally:
            bulk.kill()


def _rows(what: str, *targets: float | None) -> tuple[Row, ...]:
    shares = (("p50", "p50_us"), ("p99", "p99_us"), ("p99.9", "p999_us"))
    return tuple(
        Row(f"1 record at 500/s{what}, {name}", "µs", figure, lower_is_better=True, target=target)
        for (name, figure), target in zip(shares, targets, strict=True)
    )


TRIALS = (
    Trial(_rows("", 0.7, 0.5, None), _alone, quick=True),
    Trial(_rows(" beside 16 MB/s", None, None, None), _beside_bulk),
)
