"""Rounds: each starts every broker anew, one at a time, warms it, and runs its trials."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.against_kafka.bench import Bench, Clients
from benchmarks.against_kafka.results import Results
from benchmarks.against_kafka.rows import Scale, Setup, Trial
from benchmarks.raw_load import LoadFailed


class Run:
    """Fills the results. A trial that fails is noted and costs the others nothing."""

    def __init__(self, folder: Path, scale: Scale, results: Results) -> None:
        self._folder = folder
        self._scale = scale
        self._results = results
        self.clients = Clients(folder)

    def round(self, number: int, setup: Setup, trials: Sequence[Trial]) -> None:
        wanted = [trial for trial in trials if trial.concerns(setup)]
        if shared := [trial for trial in wanted if not trial.fresh]:
            bench = self._bench(number, setup, "shared")
            try:
                bench.broker.start()
                bench.warm_up()
                for trial in shared:
                    for _ in range(self._scale.runs):
                        self._try(bench, setup, trial)
            finally:
                bench.broker.discard()
        for at, trial in enumerate(trial for trial in wanted if trial.fresh):
            bench = self._bench(number, setup, f"fresh-{at}")
            try:
                self._try(bench, setup, trial)
            finally:
                bench.broker.discard()

    def _bench(self, number: int, setup: Setup, what: str) -> Bench:
        folder = self._folder / f"{setup.key}-{number}-{what}"
        return Bench(setup.broker(folder, setup.settings), self.clients, self._scale)

    def _try(self, bench: Bench, setup: Setup, trial: Trial) -> None:
        began = time.monotonic()
        try:
            figures = trial.run(bench)
        except (LoadFailed, AssertionError, OSError) as error:
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
        "Python": platform.python_version(),
        "Linux": platform.release(),
        "load before": Path("/proc/loadavg").read_text().split()[0],
    }
