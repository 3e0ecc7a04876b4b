"""What a broker costs before anybody has stored much: its start, its memory, its idle processor time."""

from __future__ import annotations

import time

from benchmarks.against_kafka.bench import Bench
from benchmarks.against_kafka.rows import Row, Trial
from benchmarks.processes import resident_mib
from benchmarks.raw_load import Figures


def _run(bench: Bench) -> Figures:
    start_seconds = bench.broker.start()
    time.sleep(bench.scale.seconds)  # what begins with the start is over
    idle_mib, idle_cpu = resident_mib(bench.broker.pid), bench.idle_cpu()
    bench.warm_up()
    return {
        "start_seconds": start_seconds,
        "idle_mib": idle_mib,
        "idle_cpu_percent": 100 * idle_cpu,
        "loaded_mib": resident_mib(bench.broker.pid),
    }


TRIALS = (
    Trial(
        (
            Row("start to first answer", "s", "start_seconds", True, 0.05),
            Row("memory idle", "MiB", "idle_mib", True, 0.15),
            Row("memory loaded", "MiB", "loaded_mib", True, 0.15),
            Row("idle CPU", "%", "idle_cpu_percent", True),
        ),
        _run,
        quick=True,
        writes=False,
        fresh=True,
    ),
)
