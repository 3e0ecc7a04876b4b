"""[sink.NAME] of a definition: where the rows go, said by the one key that names the target."""

from __future__ import annotations

import re
from pathlib import Path

from ottla.model.topics import topic_name_problem
from ottla.pipeline.definition import (
    OUTPUT_MODES,
    TOPIC_FORMATS,
    DatabaseTarget,
    DeltaTarget,
    IcebergTarget,
    ParquetTarget,
    Sink,
    Target,
    TopicTarget,
)
from ottla.pipeline.section import Section

_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?")
_INTERVAL = re.compile(r"\d+ (milli)?(second|minute|hour)s?")


def read_sink(name: str, section: Section, folder: Path) -> Sink | None:
    readers = {
        "topic": _read_topic,
        "parquet": _read_parquet,
        "delta": _read_delta,
        "iceberg": _read_iceberg,
        "sqlite": _read_database,
        "postgresql": _read_database,
    }
    kind = section.only_one_of(list(readers), "names no place to write to")
    if kind is None:
        return None
    source = section.text("input", required=True)
    mode = section.text("mode", "append", choices=OUTPUT_MODES)
    every = section.text("every", "1 second")
    if not _INTERVAL.fullmatch(every):
        section.problem("every", f"every = {every!r} is no interval", 'write it as "10 seconds"')
    target = readers[kind](section, folder, kind)
    if mode != "append" and not isinstance(target, TopicTarget) and not getattr(target, "keys", ()):
        text = f"mode = {mode!r} writes rows anew, and {kind} without keys would keep the old ones"
        section.problem("mode", text, 'write keys = ["…"] into a sink that has them, or mode = "append"')
    section.finish()
    return Sink(name, source, target, mode, every, section.line)


def _read_topic(section: Section, _folder: Path, _kind: str) -> Target:
    topic = section.text("topic", required=True)
    if (problem := topic_name_problem(topic)) is not None:
        section.problem("topic", f"{topic!r} is no name of a topic: {problem}")
    guarantee = section.text("guarantee", "exactly once", choices=("exactly once", "at least once"))
    form = section.text("format", "json", choices=TOPIC_FORMATS)
    return TopicTarget(topic, section.text("key") or None, form, guarantee == "exactly once")


def _read_parquet(section: Section, folder: Path, _kind: str) -> Target:
    return ParquetTarget(folder / section.text("parquet"), section.texts("partition_by"))


def _read_delta(section: Section, folder: Path, _kind: str) -> Target:
    path = section.text("delta")
    return DeltaTarget(
        path if "://" in path else str(folder / path), section.texts("partition_by"), section.texts("keys")
    )


def _read_iceberg(section: Section, _folder: Path, _kind: str) -> Target:
    table = section.text("iceberg")
    if "." not in table:
        section.problem("iceberg", f"{table!r} is no table of a catalog", 'write "NAMESPACE.TABLE"')
    catalog = section.settings("catalog")
    if not catalog:
        section.problem(
            "catalog", "iceberg needs a catalog", 'write catalog = { uri = "sqlite:///lake.db", … }'
        )
    return IcebergTarget(table, catalog)


def _read_database(section: Section, folder: Path, kind: str) -> Target:
    address = section.text(kind)
    table = section.text("table", required=True)
    if table and not _TABLE.fullmatch(table):
        section.problem("table", f"table = {table!r} is no plain name", "use letters, digits and _")
    keys, unique = section.texts("keys"), section.texts("unique")
    if kind == "sqlite":
        address = str(folder / address)
    return DatabaseTarget(kind, address, table, keys, unique)
