"""The ratios as a picture: one panel for each comparison, on a scale where twice and half are equally far."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from benchmarks.against_kafka.results import Line

_AHEAD, _BEHIND, _CLIENT_BOUND = "#2a7f62", "#b5473c", "#9a9a9a"
_LINE_INCHES = 0.26


def draw(lines: Sequence[Line], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    panels = [
        (comparison, list(members))
        for comparison, members in groupby(lines, key=lambda line: line.comparison)
    ]
    heights = [len(members) for _, members in panels]
    figure, axes = pyplot.subplots(
        len(panels),
        1,
        figsize=(11, 2 + len(panels) + _LINE_INCHES * sum(heights)),
        height_ratios=heights,
        squeeze=False,
        layout="constrained",
    )
    for (comparison, members), (axis,) in zip(panels, axes, strict=True):
        shown = [line for line in reversed(members) if line.times_better is not None]
        names = [f"{line.row.name} ({line.ratio:.2f})" for line in shown]
        values = [line.times_better or 1 for line in shown]
        axis.barh(names, [value - 1 for value in values], left=1, color=list(map(_colour, shown)))
        axis.axvline(1, color="black", linewidth=0.8)
        _mark_targets(axis, shown)
        axis.set_xscale("log")
        axis.set_title(comparison.title, fontsize=9, loc="left")
        axis.set_xlabel(
            "times better than Apache Kafka; | promised; grey: the client was the limit", fontsize=8
        )
        axis.tick_params(labelsize=7)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def _colour(line: Line) -> str:
    if line.ours.client_bound:
        return _CLIENT_BOUND
    return _AHEAD if (line.times_better or 0) >= 1 else _BEHIND


def _mark_targets(axis: object, shown: Sequence[Line]) -> None:
    for height, line in enumerate(shown):
        if line.target is not None:
            at = 1 / line.target if line.row.lower_is_better else line.target
            axis.plot([at], [height], marker="|", color="black", markersize=9)  # type: ignore[attr-defined]
