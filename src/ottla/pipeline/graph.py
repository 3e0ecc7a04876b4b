"""How the parts of a pipeline hang together: the order of steps, what is missing, what runs in a circle."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter

from ottla.pipeline.definition import Pipeline, SqlStep, Step
from ottla.pipeline.problems import Problem


def inputs_of(pipeline: Pipeline, step: Step) -> tuple[str, ...]:
    """The parts that a step reads; of the words that a SQL text may read, those that are parts."""
    if isinstance(step, SqlStep):
        return tuple(name for name in step.inputs if name in _parts(pipeline) and name != step.name)
    return step.inputs


def steps_in_order(pipeline: Pipeline) -> list[Step]:
    """Each step behind those that it reads."""
    waits = {name: inputs_of(pipeline, step) for name, step in pipeline.steps.items()}
    return [
        pipeline.steps[name] for name in TopologicalSorter(waits).static_order() if name in pipeline.steps
    ]


def sources_behind(pipeline: Pipeline, part: str) -> list[str]:
    """The sources whose records reach this part, in order."""
    return [name for name in parts_behind(pipeline, part) if name in pipeline.sources]


def parts_behind(pipeline: Pipeline, part: str) -> list[str]:
    """This part and everything that leads to it."""
    seen: dict[str, None] = {part: None}
    waiting = [part]
    while waiting:
        step = pipeline.steps.get(waiting.pop(0))
        if step is not None:
            new = [name for name in inputs_of(pipeline, step) if name not in seen]
            seen.update(dict.fromkeys(new))
            waiting += new
    return list(seen)


def edges(pipeline: Pipeline) -> list[tuple[str, str]]:
    """From part to part; a sink is named as `sink:NAME`, since a step may have the same name."""
    found = [(source, step.name) for step in pipeline.steps.values() for source in inputs_of(pipeline, step)]
    return found + [(sink.input, f"sink:{sink.name}") for sink in pipeline.sinks.values()]


def find_graph_problems(pipeline: Pipeline, written: Collection[str]) -> list[Problem]:
    """`written` names all parts of the file: one that could not be read has its problem told already."""
    problems = _name_clashes(pipeline) or _circles(pipeline)
    parts = _parts(pipeline)
    unread = set(written) - parts.keys()
    is_whole = not problems and not unread
    for step in pipeline.steps.values():
        inputs = inputs_of(pipeline, step)
        if not inputs and isinstance(step, SqlStep) and not unread.intersection(step.inputs):
            text = f"step {step.name} reads no source, table or step"
            problems.append(Problem(step.file, step.line, text, f"there are {', '.join(parts)}"))
        for name in inputs:
            if name not in parts and name not in unread:
                problems.append(_unknown(pipeline, f"step {step.name}", name, step.line))
    for sink in pipeline.sinks.values():
        if sink.input not in parts:
            if sink.input not in unread:
                problems.append(_unknown(pipeline, f"sink {sink.name}", sink.input, sink.line))
        elif is_whole and not sources_behind(pipeline, sink.input):
            text = f"no source leads to sink {sink.name}"
            problems.append(Problem(pipeline.file, sink.line, text, "a table alone has no end to wait for"))
    return problems


def _circles(pipeline: Pipeline) -> list[Problem]:
    try:
        steps_in_order(pipeline)
    except CycleError as error:
        circle = " → ".join(reversed(error.args[1]))
        line = pipeline.steps[error.args[1][0]].line
        text = f"steps wait for each other: {circle}"
        return [Problem(pipeline.file, line, text, "one of them must read a source instead")]
    return []


def _parts(pipeline: Pipeline) -> dict[str, int]:
    """Whatever can be read, with its line."""
    kinds: tuple[Mapping[str, object], ...] = (pipeline.sources, pipeline.tables, pipeline.steps)
    return {name: getattr(part, "line", 0) for kind in kinds for name, part in kind.items()}


def _name_clashes(pipeline: Pipeline) -> list[Problem]:
    seen: set[str] = set()
    problems = []
    for kind in (pipeline.sources, pipeline.tables, pipeline.steps):
        for name, part in kind.items():
            if name in seen:
                text = f"{name} is the name of two parts"
                problems.append(Problem(pipeline.file, part.line, text, "rename one of them"))
            seen.add(name)
    return problems


def _unknown(pipeline: Pipeline, who: str, name: str, line: int) -> Problem:
    near = get_close_matches(name, _parts(pipeline), n=1)
    cure = f"did you mean {near[0]}?" if near else f"there are {', '.join(_parts(pipeline)) or 'none'}"
    return Problem(pipeline.file, line, f"{who} reads {name or 'nothing'}, which is not there", cure)
