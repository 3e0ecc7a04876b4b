"""How a query does, out of what Spark reports after each batch."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


@dataclass(frozen=True, slots=True)
class Progress:
    sink: str
    state: str  # starting, running, waiting, stopped, failed
    batch: int | None = None
    records: int = 0  # that the last batch read
    records_per_second: float = 0.0
    batch_ms: int = 0
    lag: int | None = None  # records that are there and not processed
    failed: Mapping[str, int] = field(default_factory=dict)  # by step: rows that missed an expectation

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def progress_of(sink: str, query: StreamingQuery) -> Progress:
    last = query.lastProgress
    state = _state(query)
    if last is None:
        return Progress(sink, state)
    told: dict[str, Any] = json.loads(last.json)
    # Through Spark Connect the sums over all sources are not in the text.
    rate = last.processedRowsPerSecond
    return Progress(
        sink,
        state,
        batch=told["batchId"],
        records=last.numInputRows,
        records_per_second=rate if math.isfinite(rate) else 0.0,
        batch_ms=told.get("durationMs", {}).get("triggerExecution", 0),
        lag=_lag(told["sources"]),
        failed=_failed(told.get("observedMetrics", {})),
    )


def _state(query: StreamingQuery) -> str:
    if query.exception() is not None:
        return "failed"
    if not query.isActive:
        return "stopped"
    return "running" if query.status["isTriggerActive"] else "waiting"


def _lag(sources: list[dict[str, Any]]) -> int | None:
    """None when a source does not tell where its topics end. What several parts read counts once."""
    behind: dict[tuple[str, str], int] = {}
    for source in sources:
        ends, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
        if not latest:
            return None
        for place, offset in latest.items():
            behind[place] = max(behind.get(place, 0), offset - ends.get(place, 0))
    return sum(behind.values())


def _offsets(told: Any) -> dict[tuple[str, str], int]:
    if isinstance(told, str):
        told = json.loads(told)
    if not isinstance(told, dict):
        return {}
    return {
        (topic, index): offset
        for topic, partitions in told.items()
        if isinstance(partitions, dict)
        for index, offset in partitions.items()
    }


def _failed(observed: dict[str, dict[str, int]]) -> dict[str, int]:
    return {
        step: sum(count for name, count in counts.items() if name.startswith("failed_"))
        for step, counts in observed.items()
    }
