"""Ottla against Apache Kafka on this machine, in one run and one table.

    python -m benchmarks.against_kafka [--quick] [--only TEXT] [--without TEXT] [--brokers NAME ...] [--store]

Brokers take turns on core 0, with their clients on the last core, warmed alike, and asked the same by the
same compiled clients. Table, figures and picture go to .bench/results. Three comparisons are kept apart:
where neither waits for the disk, where both do, and Ottla as it comes against Kafka as it comes.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.against_kafka import limits, plot, ratios, table
from benchmarks.against_kafka.families import TRIALS
from benchmarks.against_kafka.jars import CACHE, kafka_classpath
from benchmarks.against_kafka.results import Line, Results
from benchmarks.against_kafka.rows import COMPARISONS, FULL, KAFKA, QUICK, SETUPS, Scale, Trial
from benchmarks.against_kafka.run import Run, conditions
from benchmarks.processes import CLIENT_CORE


def main() -> None:
    options = _options()
    scale = _scale(options)
    trials = _trials(options)
    if options.list:
        print("\n".join(row.name for trial in trials for row in trial.rows))
        return
    setups = [setup for setup in SETUPS if setup.key in options.brokers]
    if any(setup.broker is KAFKA.broker for setup in setups):
        kafka_classpath()
    os.sched_setaffinity(0, {CLIENT_CORE})  # and with it all clients
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    os.environ["PYTHONPYCACHEPREFIX"] = str(CACHE / "bytecode")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # no broker outlives the run
    results = Results(scale.name, conditions(scale))
    folder = CACHE / "data"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        run = Run(Path(place), scale, results)
        rows = {row.name for trial in trials for row in trial.rows}
        results.limits = limits.measure(Path(place), run.clients, scale.seconds, rows)
        for number in range(scale.rounds):
            run.round(number, setups, trials)
    lines = results.lines(trials, COMPARISONS)
    _report(results, lines, options.store)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="the main rows in some seven minutes")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="trials with a row whose name has this in it"
    )
    parser.add_argument("--without", metavar="TEXT", help="leave those out")
    keys = [setup.key for setup in SETUPS]
    parser.add_argument("--brokers", nargs="+", choices=keys, default=keys, help="all of them by default")
    parser.add_argument("--seconds", type=float, help="of one run")
    parser.add_argument("--runs", type=int, help="of each trial in a round")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--warm-up-seconds", type=float)
    parser.add_argument("--store", action="store_true", help="keep the ratios for later runs to compare with")
    parser.add_argument("--list", action="store_true", help="the rows, without measuring anything")
    return parser.parse_args()


def _scale(options: argparse.Namespace) -> Scale:
    names = ("seconds", "runs", "rounds", "warm_up_seconds")
    changed = {name: value for name in names if (value := getattr(options, name)) is not None}
    return replace(QUICK if options.quick else FULL, **changed)


def _trials(options: argparse.Namespace) -> list[Trial]:
    def has(trial: Trial, text: str) -> bool:
        return any(text in row.name for row in trial.rows)

    return [
        trial
        for trial in TRIALS
        if (trial.quick or not options.quick)
        and has(trial, options.only)
        and not (options.without and has(trial, options.without))
    ]


def _report(results: Results, lines: Sequence[Line], store: bool) -> None:
    folder = CACHE / "results" / time.strftime("%Y%m%d-%H%M%S")
    folder.mkdir(parents=True)
    text = table.render(results, lines)
    (folder / "table.txt").write_text(text)
    (folder / "results.json").write_text(json.dumps(results.as_json(lines), indent=1, ensure_ascii=False))
    print(f"\n{text}")
    if any(line.times_better is not None for line in lines):
        plot.draw(lines, folder / "ratios.png")
        print(ratios.compare(results.scale, lines))
    if store:
        ratios.store(results, lines)
    print(f"table.txt, results.json and ratios.png are in {folder}")


if __name__ == "__main__":
    main()
