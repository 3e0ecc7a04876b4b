"""The one table, as text. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from benchmarks.against_kafka.results import Line, Results, Samples

_NAME, _FIGURE, _RATIO = 50, 24, 9
_HEAD = f"{'':<{_NAME}}{'Ottla':>{_FIGURE}}{'Apache Kafka':>{_FIGURE}}{'ratio':>{_RATIO}}   promised"
_LEGEND = (
    "Medians, ± half of the way from the least to the greatest run. The ratio is Ottla's figure divided by\n"
    "Kafka's; (less): less is better. * the client used up its core: the broker could do more.\n"
    "Time in which the host of a virtual machine took a core away does not count, for either."
)


def render(results: Results, lines: Sequence[Line]) -> str:
    conditions = {**results.conditions, "undisturbed by the host": f"{results.undisturbed:.0%} of the time"}
    parts = [", ".join(f"{name}: {value}" for name, value in conditions.items()), _LEGEND]
    if results.limits:
        parts.append("\n".join(_limits(results, lines)))
    for comparison, members in groupby(lines, key=lambda line: line.comparison):
        parts.append("\n".join([comparison.title, _HEAD, *map(_line, members)]))
    failures = sorted({f"{line.row.name}: {each}" for line in lines for each in _failures(line)})
    if failures:
        parts.append("\n".join(["Not measured:", *failures]))
    return "\n\n".join(parts) + "\n"


def _line(line: Line) -> str:
    name = line.row.name + (" (less)" if line.row.lower_is_better else "")
    ratio = "–" if line.ratio is None else f"{line.ratio:.{2 if line.ratio >= 0.1 else 3}f}"
    text = f"{name:<{_NAME}}{_figure(line.ours, line.row.unit):>{_FIGURE}}"
    text += f"{_figure(line.theirs, line.row.unit):>{_FIGURE}}{ratio:>{_RATIO}}"
    if line.target is not None:
        text += f"   {'≤' if line.row.lower_is_better else '≥'} {line.target:g}"
        text += {True: "", False: ", missed", None: ""}[line.meets_target]
    return text


def _figure(samples: Samples, unit: str) -> str:
    if samples.median is None:
        return "–"
    return f"{number(samples.median, unit)} ±{samples.spread:4.0%}{'*' if samples.client_bound else ' '}"


def number(value: float, unit: str) -> str:
    """Three digits that say something, the unit last."""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}{unit if unit.startswith('/') else f' {unit}'}"


def _limits(results: Results, lines: Sequence[Line]) -> list[str]:
    reached = {line.row.name: line.ours.median for line in reversed(lines)}
    text = ["What this machine can do at most, one core for each side"]
    for limit in results.limits:
        ours = reached.get(limit.bounds)
        line = f"{limit.name:<{_NAME}}{number(limit.value, limit.unit):>{_FIGURE}}"
        if ours:
            line += f"   Ottla {'takes' if limit.unit == 'µs' else 'reaches'} {ours / limit.value:.0%}"
        text.append(line)
    return text


def _failures(line: Line) -> list[str]:
    sides = ((line.comparison.ours, line.ours), (line.comparison.theirs, line.theirs))
    return [f"{setup.key}: {reason}" for setup, samples in sides for reason in samples.failures]
