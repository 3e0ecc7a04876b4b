"""Rounds: each starts every broker anew and warms it; then they take turns, so that a slow time of the
machine meets all of them. While one is asked, the others are stopped.
"""

from __future__ import annotations

import platform
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.against_kafka.bench import Bench, Clients
from benchmarks.against_kafka.jars import kafka_version
from benchmarks.against_kafka.results import Results
from benchmarks.against_kafka.rows import Scale, Setup, Trial
from benchmarks.raw_load import LoadFailed, least_disturbed

from ottla.testing import BrokerDied

_FAILURES = (LoadFailed, BrokerDied, AssertionError, OSError, subprocess.SubprocessError)


class Run:
    """Fills the results. A trial that fails is noted and costs the others nothing."""

    def __init__(self, folder: Path, scale: Scale, results: Results) -> None:
        self._folder = folder
        self._scale = scale
        self._results = results
        self.clients = Clients(folder)

    def round(self, number: int, setups: Sequence[Setup], trials: Sequence[Trial]) -> None:
        shared = [trial for trial in trials if not trial.fresh]
        with ExitStack() as running:
            wanted = [setup for setup in setups if any(trial.is_due(setup, number) for trial in shared)]
            benches = [
                (setup, running.enter_context(self._bench(number, setup, "shared"))) for setup in wanted
            ]
            ready = [(setup, bench) for setup, bench in benches if self._is_ready(bench, setup, shared)]
            for trial in shared:
                for _ in range(self._scale.runs):
                    for setup, bench in ready:
                        if trial.is_due(setup, number):
                            with bench.broker.awake():
                                self._try(bench, setup, trial)
        for at, trial in enumerate(trial for trial in trials if trial.fresh):
            for setup in setups:
                if trial.is_due(setup, number):
                    # Its files stay until the end: ext4 without a journal searches past inodes
                    # freed minutes ago, and the next broker would wait for that at each file it makes.
                    with self._bench(number, setup, f"fresh-{at}", keeps_files=True) as bench:
                        self._try(bench, setup, trial)

    def _is_ready(self, bench: Bench, setup: Setup, trials: Sequence[Trial]) -> bool:
        """Started, warmed, and stopped until it is its turn."""
        try:
            bench.broker.start()
            bench.warm_up()
        except _FAILURES as error:
            for trial in trials:
                self._results.fail(setup, trial.rows, f"the broker did not get going: {error}"[:200])
            return False
        bench.broker.pause()
        return True

    @contextmanager
    def _bench(self, number: int, setup: Setup, what: str, *, keeps_files: bool = False) -> Iterator[Bench]:
        broker = setup.broker(self._folder / f"{setup.key}-{number}-{what}", setup.settings)
        try:
            yield Bench(broker, self.clients, self._scale)
        finally:
            if keeps_files:
                broker.kill()
            else:
                broker.discard()

    def _try(self, bench: Bench, setup: Setup, trial: Trial) -> None:
        began = time.monotonic()
        try:
            figures = trial.run(bench) if trial.fresh else least_disturbed(lambda: trial.run(bench))
        except _FAILURES as error:
            self._results.fail(setup, trial.rows, f"{type(error).__name__}: {error}"[:200])
            outcome = f"failed: {error}"[:120]
        else:
            self._results.add(setup, trial.rows, figures)
            outcome = ", ".join(f"{figures[row.figure]:,.2f} {row.unit}" for row in trial.rows)
        print(
            f"{setup.key:<16} {trial.rows[0].name}: {outcome} [{time.monotonic() - began:.0f} s]", flush=True
        )


def conditions(scale: Scale) -> dict[str, str]:
    """What a reader must know to judge the figures."""
    return {
        "measured": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "scale": scale.name,
        "seconds x runs x rounds": f"{scale.seconds:g} x {scale.runs} x {scale.rounds}",
        "warm-up": f"{scale.warm_up_seconds:g} s",
        "Apache Kafka": kafka_version(),
        "processor": _processor(),
        "Python": platform.python_version(),
        "Linux": platform.release(),
        "load before": Path("/proc/loadavg").read_text().split()[0],
    }


def _processor() -> str:
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.machine()
