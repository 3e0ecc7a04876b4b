"""What was measured, and what follows from it: medians, spread, ratios. Pure."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.against_kafka.bench import OF_A_RUN
from benchmarks.against_kafka.limits import Limit
from benchmarks.against_kafka.rows import DURABLE, UNFLUSHED, Comparison, Row, Setup, Trial

_CLIENT_BOUND_SHARE = 0.9  # of a core: little is left that the broker could have used


@dataclass
class Samples:
    """The figures of one row on one broker, of all rounds."""

    values: list[float] = field(default_factory=list)
    client_busy: list[float] = field(default_factory=list)
    undisturbed: list[float] = field(
        default_factory=list
    )  # the share of each run in which the host let us be
    failures: list[str] = field(default_factory=list)

    @property
    def median(self) -> float | None:
        return statistics.median(self.values) if self.values else None

    @property
    def spread(self) -> float:
        """Half of the way from the least to the greatest, as a share of the median."""
        if not self.values or not self.median:
            return 0.0
        return (max(self.values) - min(self.values)) / 2 / abs(self.median)

    @property
    def client_bound(self) -> bool:
        return bool(self.client_busy) and statistics.median(self.client_busy) >= _CLIENT_BOUND_SHARE


@dataclass(frozen=True)
class Line:
    """A row in one comparison."""

    comparison: Comparison
    row: Row
    ours: Samples
    theirs: Samples

    @property
    def key(self) -> str:
        return f"{self.comparison.key}: {self.row.name}"

    @property
    def ratio(self) -> float | None:
        """Ours divided by Kafka's, whichever way is better."""
        ours, theirs = self.ours.median, self.theirs.median
        return None if ours is None or not theirs else ours / theirs

    @property
    def times_better(self) -> float | None:
        """Above one where Ottla is ahead."""
        if not self.ratio:
            return None
        return 1 / self.ratio if self.row.lower_is_better else self.ratio

    @property
    def spread(self) -> float:
        return self.ours.spread + self.theirs.spread

    @property
    def target(self) -> float | None:
        targets = {UNFLUSHED: self.row.target, DURABLE: self.row.durable_target}
        return targets.get(self.comparison)

    @property
    def meets_target(self) -> bool | None:
        if self.target is None or self.ratio is None:
            return None
        return self.ratio <= self.target if self.row.lower_is_better else self.ratio >= self.target


class Results:
    """Filled by the run, read by the table, the plot and the stored ratios."""

    def __init__(self, scale: str, conditions: dict[str, str]) -> None:
        self.scale = scale
        self.conditions = conditions  # when, where, with what
        self.limits: list[Limit] = []
        self._seen: list[dict[str, Any]] = []  # all that each run saw, also what no row shows
        self._samples: dict[tuple[str, str], Samples] = defaultdict(Samples)

    def of(self, setup: Setup, row: Row) -> Samples:
        return self._samples[setup.key, row.name]

    def add(self, setup: Setup, rows: Sequence[Row], figures: dict[str, float]) -> None:
        self._seen.append({"setup": setup.key, "row": rows[0].name, **figures})
        for row in rows:
            samples = self.of(setup, row)
            samples.values.append(figures[row.figure])
            for name in OF_A_RUN:
                told = figures.get(f"{row.figure}.{name}", figures.get(name))
                if told is not None:
                    getattr(samples, name).append(told)

    @property
    def undisturbed(self) -> float:
        """The share of the time in which the host of a virtual machine left it all its cores."""
        shares = [share for samples in self._samples.values() for share in samples.undisturbed]
        return statistics.fmean(shares) if shares else 1.0

    def fail(self, setup: Setup, rows: Iterable[Row], reason: str) -> None:
        for row in rows:
            self.of(setup, row).failures.append(reason)

    def lines(self, trials: Sequence[Trial], comparisons: Sequence[Comparison]) -> list[Line]:
        """Those for which anything was tried, by comparison."""
        lines = [
            Line(comparison, row, self.of(comparison.ours, row), self.of(comparison.theirs, row))
            for comparison in comparisons
            for trial in trials
            if comparison in trial.comparisons
            for row in trial.rows
        ]
        return [line for line in lines if any(vars(line.ours).values()) or any(vars(line.theirs).values())]

    def as_json(self, lines: Iterable[Line]) -> dict[str, Any]:
        samples = [
            {"setup": setup, "row": row, "median": each.median, "spread": each.spread, **asdict(each)}
            for (setup, row), each in self._samples.items()
            if any(vars(each).values())
        ]
        ratios = [
            {
                "comparison": line.comparison.key,
                "row": line.row.name,
                "ratio": line.ratio,
                "target": line.target,
            }
            for line in lines
        ]
        return {
            "scale": self.scale,
            "conditions": self.conditions,
            "limits": [asdict(limit) for limit in self.limits],
            "ratios": ratios,
            "samples": samples,
            "runs": self._seen,
        }
