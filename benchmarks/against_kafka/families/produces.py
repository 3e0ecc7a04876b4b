"""Produce requests as they are: one record, 16 KiB, 1 MiB, from one connection to many. acks=all."""

from __future__ import annotations

from benchmarks.against_kafka.bench import Bench
from benchmarks.against_kafka.rows import Row, Trial
from benchmarks.memory import fetch_memory
from benchmarks.questions import KIB, MIB, produce
from benchmarks.raw_load import Figures, Shape

_WRITTEN_MIB_MAX = 3 * KIB  # in a run of about a second


def _trial(
    what: str, value_bytes: int, shape: Shape, target: float | None = None, *, quick: bool = False
) -> Trial:
    def run(bench: Bench) -> Figures:
        with bench.topic() as topic:
            if value_bytes >= KIB:
                fetch_memory(_WRITTEN_MIB_MAX)
            return bench.ask(produce(value_bytes), topic, shape)

    name = f"produce {what}, {shape.connections} x {shape.in_flight} in flight"
    unit, figure = ("/s", "per_second") if value_bytes < KIB else ("MB/s", "sent_mb_per_second")
    # Against a Kafka that syncs each batch, what is promised is how the syncs are shared.
    durable_target = 20 if shape.connections * shape.in_flight >= 16 and value_bytes < MIB else None
    return Trial((Row(name, unit, figure, target=target, durable_target=durable_target),), run, quick)


TRIALS = (
    _trial("1 x 100 B", 100, Shape(1)),
    _trial("1 x 100 B", 100, Shape(64), 3, quick=True),
    _trial("1 x 100 B", 100, Shape(256)),
    _trial("1 x 100 B", 100, Shape(256, 4)),
    _trial("16 KiB", 16 * KIB, Shape(4, 4), 4, quick=True),
    _trial("1 MiB", MIB, Shape(4, 2), 4, quick=True),
)
