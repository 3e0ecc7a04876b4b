"""The ratios of an earlier run, kept in ratios.json, and what got slower since: a hint, never a verdict."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.against_kafka.results import Line, Results

STORED = Path(__file__).parent / "ratios.json"
_NOISE_MIN = 0.2  # runs on a quiet machine differ by as much


def store(results: Results, lines: Iterable[Line], path: Path = STORED) -> None:
    """Those of this scale only: a quick run is not compared with a long one. Rows that were left out stay."""
    everything = _load(path)
    rows = {
        line.key: {"times_better": round(line.times_better, 4), "spread": round(line.spread, 4)}
        for line in lines
        if line.times_better is not None
    }
    before = everything.get(results.scale, {"rows": {}})
    everything[results.scale] = {"conditions": results.conditions, "rows": {**before["rows"], **rows}}
    path.write_text(json.dumps(everything, indent=1, ensure_ascii=False) + "\n")


def compare(scale: str, lines: Sequence[Line], path: Path = STORED) -> str:
    """What got slower, and by more than the runs differ among themselves; in words."""
    stored = _load(path).get(scale)
    if stored is None:
        return f"No ratios of a {scale} run are stored to compare with; --store keeps those of this one.\n"
    slower, known = [], 0
    for line in lines:
        before, now = stored["rows"].get(line.key), line.times_better
        if before is None or now is None:
            continue
        known += 1
        if now < before["times_better"] * (1 - noise(line.spread, before["spread"])):
            change = f"{before['times_better']:.2f} → {now:.2f} times Kafka"
            slower.append(f"  {line.key}: {change} (runs differed by {line.spread:.0%})")
    if not slower:
        return f"None of {known} rows is slower than stored, beyond noise.\n"
    return "\n".join([f"Slower than stored, {len(slower)} of {known} rows:", *slower]) + "\n"


def noise(*spreads: float) -> float:
    """By what share a ratio may fall without a word. All of a ratio is never noise."""
    return min(0.9, max(_NOISE_MIN, *spreads))


def _load(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return loaded
