"""`pipeline.toml` and the files beside it, read into a `Pipeline`, with every problem named by file and line.

Texts may name environment variables as ${NAME}, for what does not belong into a file, such as passwords.
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

from ottla.client.errors import InvalidOffsetSpec
from ottla.client.offset_spec import parse_offset
from ottla.model.topics import topic_name_problem
from ottla.pipeline.definition import FORMATS, TABLE_FORMATS, Pipeline, Source, Table
from ottla.pipeline.graph import find_graph_problems
from ottla.pipeline.problems import DefinitionError, PipelineError, Problem
from ottla.pipeline.section import Section
from ottla.pipeline.sinks_section import read_sink
from ottla.pipeline.steps_section import read_step, read_watermark
from ottla.pipeline.toml_places import Places

FILE = "pipeline.toml"
NAME = r"[a-z][a-z0-9_]*"
_PIPELINE_NAME = r"[a-z0-9][a-z0-9._-]{0,99}"
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_DECODE_ERROR = re.compile(r"(.*) \(at line (\d+), column \d+\)")


def load_pipeline(folder: Path) -> Pipeline:
    """Raises DefinitionError with everything that is wrong, PipelineError when there is no definition."""
    pipeline, problems, written = _load(folder)
    problems += find_graph_problems(pipeline, written)
    if problems:
        raise DefinitionError(sorted(problems, key=lambda problem: (problem.file, problem.line)))
    return pipeline


def load_sources(folder: Path) -> Pipeline:
    """As far as it can be read: for a definition that lacks the schemas which are to be found out."""
    return _load(folder)[0]


def _load(folder: Path) -> tuple[Pipeline, list[Problem], set[str]]:
    """With what is wrong, and the names of all parts that are written, also of those that cannot be read."""
    path = folder / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise PipelineError(
            f"{path} is not there", "name a pipeline's folder, or begin one with `ottla pipeline new`"
        ) from None
    except UnicodeDecodeError as error:
        raise PipelineError(f"{path} is no text in UTF-8: {error}", "save it as such") from None
    shown = str(path)
    problems: list[Problem] = []
    try:
        values = _with_variables(tomllib.loads(text), shown, Places(text), (), problems)
    except tomllib.TOMLDecodeError as error:
        found = _DECODE_ERROR.fullmatch(str(error))
        raise DefinitionError(
            [Problem(shown, int(found[2]) if found else 0, f"no TOML: {found[1] if found else error}")]
        ) from None
    top = Section(values, (), shown, Places(text), problems)
    kinds = (values.get(kind) for kind in ("source", "table", "step"))
    written = {name.lower() for kind in kinds if isinstance(kind, dict) for name in kind}
    return _read_pipeline(top, folder, shown), problems, written


def _with_variables(
    value: Any, file: str, places: Places, path: tuple[str, ...], problems: list[Problem]
) -> Any:
    if isinstance(value, dict):
        return {
            key: _with_variables(inner, file, places, (*path, key), problems) for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_with_variables(inner, file, places, path, problems) for inner in value]
    if not isinstance(value, str):
        return value

    def replaced(found: re.Match[str]) -> str:
        if found[1] not in os.environ:
            problems.append(
                Problem(file, places.line_of(path), f"the variable {found[1]} is not set", "export it first")
            )
        return os.environ.get(found[1], "")

    return _VARIABLE.sub(replaced, value)


def _read_pipeline(top: Section, folder: Path, file: str) -> Pipeline:
    head = top.section("pipeline") or Section({}, ("pipeline",), file, Places(""), top.problems)
    name = head.matching("name", _PIPELINE_NAME, "name (a-z, 0-9, . _ -)", folder.resolve().name.lower())
    pipeline = Pipeline(
        name=name,
        folder=folder,
        file=file,
        bootstrap=head.text("bootstrap") or None,
        master=head.text("master") or None,
        state=folder / head.text("state", ".state"),
        dead_letters=_topic(head, "dead_letters") or f"{name}.dead-letters",
        spark=head.settings("spark"),
        sources={each: _read_source(each, section, folder) for each, section in _named(top, "source")},
        tables={each: _read_table(each, section, folder) for each, section in _named(top, "table")},
        steps={
            each: step
            for each, section in _named(top, "step")
            if (step := read_step(each, section, folder)) is not None
        },
        sinks={
            each: sink
            for each, section in _named(top, "sink")
            if (sink := read_sink(each, section, folder.absolute())) is not None
        },
    )
    head.finish()
    top.finish()
    for kind, found in (("source", pipeline.sources), ("sink", pipeline.sinks)):
        if not found and kind not in top:
            top.problems.append(Problem(file, 0, f"there is no {kind}", f"write a table [{kind}.NAME]"))
    return pipeline


def _named(top: Section, kind: str) -> list[tuple[str, Section]]:
    found = []
    for name, section in top.sections(kind):
        if not re.fullmatch(NAME, name):
            section.problems.append(
                Problem(
                    section.file, section.line, f"{name!r} is no name", "use a-z, 0-9 and _, a letter first"
                )
            )
        else:
            found.append((name, section))
    return found


def _topic(section: Section, name: str) -> str:
    topic = section.text(name)
    if topic and (problem := topic_name_problem(topic)) is not None:
        section.problem(name, f"{topic!r} is no name of a topic: {problem}")
    return topic


def _read_source(name: str, section: Section, folder: Path) -> Source:
    topics = section.texts("topic", required=True)
    for topic in topics:
        if (problem := topic_name_problem(topic)) is not None:
            section.problem("topic", f"{topic!r} is no name of a topic: {problem}")
    form = section.text("format", "json", choices=FORMATS)
    schema = section.text("schema") or None
    avro_file = section.text("avro_schema") or None
    if form in ("json", "csv", "avro") and schema is None:
        section.problem(
            "schema",
            f"source {name} has no schema",
            'write schema = "id BIGINT, at TIMESTAMP", or let `ottla pipeline infer` write it',
        )
    if form == "avro" and avro_file is None:
        section.problem("avro_schema", f"source {name} does not say how its avro was written",
                        'write avro_schema = "FILE.avsc"')  # fmt: skip
    start = section.text("start", "start")
    try:
        parse_offset(start, 0)
    except InvalidOffsetSpec as error:
        section.problem("start", error.text, error.cure)
    source = Source(
        name=name,
        topics=topics,
        format=form,
        schema=schema,
        avro_file=section.existing("avro_schema", folder) if avro_file else None,
        start=start,
        batch_records_max=section.integer("batch_records_max"),
        watermark=read_watermark(section),
        options=section.settings("options"),
        line=section.line,
    )
    section.finish()
    return source


def _read_table(name: str, section: Section, folder: Path) -> Table:
    path = section.existing("path", folder, required=True)
    by_suffix = path.suffix.removeprefix(".")
    default = by_suffix if by_suffix in TABLE_FORMATS else "parquet"
    table = Table(
        name=name,
        path=path,
        format=section.text("format", default, choices=TABLE_FORMATS),
        schema=section.text("schema") or None,
        line=section.line,
    )
    section.finish()
    return table
