"""Whether sinks get what they need of the rows that lead to them; runs nothing."""

from __future__ import annotations

from difflib import get_close_matches

from ottla.pipeline.definition import DatabaseTarget, DeltaTarget, ParquetTarget, Pipeline, Sink, TopicTarget
from ottla.pipeline.parts import CDC_ORDER, HIDDEN, Parts
from ottla.pipeline.problems import DefinitionError, Problem


def check_sinks(pipeline: Pipeline, parts: Parts) -> None:
    """Raises DefinitionError with all that is missing."""
    problems = []
    for sink in pipeline.sinks.values():
        frame = parts.frames[sink.input]
        columns = [name for name in frame.columns if name not in HIDDEN]
        problems += [
            Problem(
                pipeline.file, sink.line, f"sink {sink.name} needs the column {name}", _cure(name, columns)
            )
            for name in _needed(sink)
            if name not in columns
        ]
        if CDC_ORDER in frame.columns and not (
            isinstance(sink.target, DatabaseTarget | DeltaTarget) and sink.target.keys
        ):
            text = f"sink {sink.name} cannot apply changes of a cdc step"
            problems.append(
                Problem(pipeline.file, sink.line, text, "use sqlite, postgresql or delta, with keys")
            )
    if problems:
        raise DefinitionError(problems)


def _needed(sink: Sink) -> list[str]:
    match sink.target:
        case TopicTarget(key=key, format=form):
            return [*([key] if key else []), *([] if form == "json" else ["value"])]
        case ParquetTarget(partition_by=names):
            return list(names)
        case DeltaTarget(partition_by=names, keys=keys):
            return [*names, *keys]
        case DatabaseTarget(keys=keys, unique=unique):
            return [*keys, *unique]
        case _:
            return []


def _cure(name: str, columns: list[str]) -> str:
    near = get_close_matches(name, columns, n=1)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(columns)}"
