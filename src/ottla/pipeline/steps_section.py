"""[step.NAME] of a definition: one of sql, file, deduplicate, expect, cdc, python says what the step does."""

from __future__ import annotations

import re
from pathlib import Path

from ottla.pipeline.definition import (
    ACTIONS,
    CdcStep,
    DeduplicateStep,
    Expectation,
    ExpectStep,
    PythonStep,
    SqlStep,
    Step,
    Watermark,
)
from ottla.pipeline.section import Section, near_file
from ottla.pipeline.sql_inputs import tables_read

_FUNCTION = re.compile(r"(?P<file>[^:]+\.py):(?P<function>[A-Za-z_][A-Za-z0-9_]*)")


def read_step(name: str, section: Section, folder: Path) -> Step | None:
    readers = {
        "sql": _read_sql,
        "file": _read_sql_file,
        "deduplicate": _read_deduplicate,
        "expect": _read_expect,
        "cdc": _read_cdc,
        "python": _read_python,
    }
    kind = section.only_one_of(list(readers), "does nothing")
    if kind is None:
        return None
    step = readers[kind](name, section, folder)
    section.finish()
    return step


def _read_sql(name: str, section: Section, _folder: Path) -> Step:
    sql = section.text("sql", required=True)
    return SqlStep(name, tables_read(sql), sql, section.file, section.line_of("sql"), read_watermark(section))


def _read_sql_file(name: str, section: Section, folder: Path) -> Step | None:
    path = folder / section.text("file")
    watermark = read_watermark(section)
    try:
        sql = path.read_text(encoding="utf-8")
    except OSError as error:
        section.problem("file", f"{path}: {error.strerror}", near_file(path))
        return None
    except UnicodeDecodeError as error:
        section.problem("file", f"{path} is no text in UTF-8: {error}", "save it as such")
        return None
    return SqlStep(name, tables_read(sql), sql, str(path), 1, watermark)


def read_watermark(section: Section) -> Watermark | None:
    inner = section.section("watermark", 'write watermark = { column = "at", delay = "10 seconds" }')
    if inner is None:
        return None
    watermark = Watermark(inner.text("column", required=True), inner.text("delay", required=True))
    inner.finish()
    return watermark


def _read_deduplicate(name: str, section: Section, _folder: Path) -> Step:
    source = section.text("input", required=True)
    return DeduplicateStep(name, source, section.texts("deduplicate", required=True), section.line)


def _read_expect(name: str, section: Section, _folder: Path) -> Step:
    source = section.text("input", required=True)
    expectations = []
    for inner in section.listed_sections("expect"):
        check = inner.text("check", required=True)
        expectations.append(
            Expectation(
                inner.text("name", check), check, inner.text("action", "warn", choices=ACTIONS), inner.line
            )
        )
        inner.finish()
    return ExpectStep(name, source, tuple(expectations), section.line)


def _read_cdc(name: str, section: Section, _folder: Path) -> Step | None:
    source = section.text("input", required=True)
    inner = section.section("cdc", 'write cdc = { order_by = "version" }')
    if inner is None:
        return None
    step = CdcStep(
        name, source, inner.text("order_by", required=True), inner.text("delete_when"), section.line
    )
    inner.finish()
    return step


def _read_python(name: str, section: Section, folder: Path) -> Step | None:
    inputs = section.texts("input", required=True)
    place = section.text("python")
    found = _FUNCTION.fullmatch(place)
    if found is None:
        section.problem("python", f"{place!r} names no function", 'write python = "steps.py:function"')
        return None
    path = folder / found["file"]
    if not path.exists():
        section.problem("python", f"{path} is not there", near_file(path))
    return PythonStep(name, inputs, path, found["function"], section.line)
