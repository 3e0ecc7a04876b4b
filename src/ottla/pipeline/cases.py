"""Tests of a pipeline by examples: records in, rows that must come out.

tests/NAME/orders.jsonl              a line is the value of a record of the source `orders`
tests/NAME/expected/totals.jsonl     a line is a row of the part or sink `totals`, in any order
tests/NAME/expected/dead_letters.jsonl   {"part": …, "reason": …, "value": …}
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ottla.pipeline import records
from ottla.pipeline.dead_letters import shown
from ottla.pipeline.definition import Pipeline
from ottla.pipeline.parts import Parts
from ottla.pipeline.preview import json_rows
from ottla.pipeline.problems import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = "tests"
_EXPECTED = "expected"
_DEAD_LETTERS = "dead_letters"


@dataclass(frozen=True, slots=True)
class Difference:
    """Of what one part gave from what was expected; rows as JSON lines."""

    part: str
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    case: str
    differences: tuple[Difference, ...]

    @property
    def passed(self) -> bool:
        return not self.differences


def run_cases(pipeline: Pipeline, spark: SparkSession) -> Iterator[Outcome]:
    folder = pipeline.folder / FOLDER
    cases = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    if not cases:
        raise PipelineError(
            f"{folder} has no examples", f"make {folder}/NAME/SOURCE.jsonl and …/NAME/expected/SINK.jsonl"
        )
    for case in cases:
        yield _run_case(pipeline, spark, case)


def _run_case(pipeline: Pipeline, spark: SparkSession, case: Path) -> Outcome:
    expected = {path.stem: _lines(path) for path in sorted((case / _EXPECTED).glob("*.jsonl"))}
    if not expected:
        raise PipelineError(
            f"{case / _EXPECTED} expects nothing", "write what a sink must get, a row on each line"
        )
    given = {name: _example_file(case, name) for name in pipeline.sources}
    if not any(given.values()):
        wanted = ", ".join(f"{name}.jsonl" for name in pipeline.sources)
        raise PipelineError(f"{case} has no records", f"write {wanted}")
    frames = {name: records.examples(spark, pipeline.sources[name], path) for name, path in given.items()}
    parts = Parts(pipeline, spark, frames)
    differences = []
    for name, wanted_rows in expected.items():
        got = Counter(_normal(row) for row in _rows_of(pipeline, parts, name, case))
        wanted_counts = Counter(wanted_rows)
        if got != wanted_counts:
            differences.append(
                Difference(
                    name,
                    tuple(sorted((wanted_counts - got).elements())),
                    tuple(sorted((got - wanted_counts).elements())),
                )
            )
    return Outcome(case.name, tuple(differences))


def _rows_of(pipeline: Pipeline, parts: Parts, name: str, case: Path) -> list[dict[str, Any]]:
    if name == _DEAD_LETTERS:
        return [row for frame in parts.rejected for row in json_rows(shown(frame))]
    part = pipeline.sinks[name].input if name in pipeline.sinks else name
    if part not in parts.frames:
        known = ", ".join((*pipeline.sinks, *parts.frames))
        raise PipelineError(
            f"{case}/{_EXPECTED}/{name}.jsonl is for no part of the pipeline", f"there are {known}"
        )
    return json_rows(parts.frames[part])


def _example_file(case: Path, source: str) -> Path | None:
    return next(iter(sorted(case.glob(f"{source}.*"))), None)


def _lines(path: Path) -> list[str]:
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip():
            try:
                found.append(_normal(json.loads(line)))
            except json.JSONDecodeError as error:
                raise PipelineError(f"{path}:{number}: no JSON: {error}") from None
    return found


def _normal(row: Any) -> str:
    return json.dumps(row, sort_keys=True, ensure_ascii=False)
