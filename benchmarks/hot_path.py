"""The hot paths of Ottla alone, with what each request costs: a quick look while one works on them.

    python -m benchmarks.hot_path [--seconds 2] [--runs 3] [--only produce] [--durable]

"CPU µs" is what the broker used for each request: it hardly depends on what else the machine does. Medians of
the runs. The rows are those of `benchmarks.against_kafka`, which compares them with Apache Kafka.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks.against_kafka.bench import CPU_US, Bench, Clients
from benchmarks.against_kafka.families import fetches, groups, produces, requests
from benchmarks.against_kafka.rows import OTTLA, OTTLA_UNFLUSHED, QUICK
from benchmarks.against_kafka.table import number
from benchmarks.processes import CLIENT_CORE

_TRIALS = (*requests.TRIALS, *produces.TRIALS, *fetches.HOT, *groups.COMMITS)
_COLUMNS = {CPU_US: "CPU µs", "p50_us": "p50 µs", "p99_us": "p99 µs", "p999_us": "p99.9 µs"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="rows whose name has this in it")
    parser.add_argument("--durable", action="store_true", help="as it comes: answers wait for the disk")
    options = parser.parse_args()
    os.sched_setaffinity(0, {CLIENT_CORE})
    setup = OTTLA if options.durable else OTTLA_UNFLUSHED
    with tempfile.TemporaryDirectory() as folder:
        scale = replace(QUICK, seconds=options.seconds, warm_up_seconds=1)
        broker = setup.broker(Path(folder) / "broker", setup.settings)
        bench = Bench(broker, Clients(Path(folder)), scale)
        broker.start()
        try:
            measure(bench, options.only, options.runs)
        finally:
            broker.discard()


def measure(bench: Bench, only: str, runs: int) -> None:
    bench.warm_up()
    print(f"{'':<42}{'rate':>14}" + "".join(f"{title:>10}" for title in _COLUMNS.values()))
    for trial in _TRIALS:
        (row,) = trial.rows
        if only not in row.name:
            continue
        results = [trial.run(bench) for _ in range(runs)]
        median = {name: statistics.median(each[name] for each in results) for name in results[0]}
        figures = "".join(f"{median[column]:10.1f}" for column in _COLUMNS)
        print(f"{row.name:<42}{number(median[row.figure], row.unit):>14}{figures}", flush=True)


if __name__ == "__main__":
    main()
