"""What a pipeline is: sources, tables, steps, sinks. Values only; `definition_file` reads them from a folder.

    source → step → … → step → sink

Every sink is a query of its own with a checkpoint of its own: sinks do not wait for each other, and each
gets every record exactly once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

FORMATS = ("json", "csv", "avro", "text", "raw")
TABLE_FORMATS = ("csv", "json", "parquet")
ACTIONS = ("warn", "drop", "quarantine", "fail")
OUTPUT_MODES = ("append", "update", "complete")
TOPIC_FORMATS = ("json", "text", "raw")


@dataclass(frozen=True, slots=True)
class Watermark:
    """How late a record may come: event times older than the latest seen minus `delay` are done with."""

    column: str
    delay: str


@dataclass(frozen=True, slots=True)
class Source:
    name: str
    topics: tuple[str, ...]
    format: str
    schema: str | None  # columns as Spark writes them: "id BIGINT, at TIMESTAMP"
    avro_file: Path | None
    start: str  # where the first run begins, in the grammar of offsets
    batch_records_max: int | None
    watermark: Watermark | None
    options: Mapping[str, str]  # of Spark's reader of that format
    line: int


@dataclass(frozen=True, slots=True)
class Table:
    """Something that stands still, for joins; read anew for every batch."""

    name: str
    path: Path
    format: str
    schema: str | None
    line: int


@dataclass(frozen=True, slots=True)
class SqlStep:
    name: str
    inputs: tuple[str, ...]
    sql: str
    file: str  # where the text stands, for errors
    line: int  # of its first line
    watermark: Watermark | None = None


@dataclass(frozen=True, slots=True)
class DeduplicateStep:
    """The first of records with equal keys goes on, for as long as the watermark of the input remembers."""

    name: str
    input: str
    keys: tuple[str, ...]
    line: int

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Expectation:
    name: str
    check: str  # SQL that must be true; NULL counts as false
    action: str
    line: int


@dataclass(frozen=True, slots=True)
class ExpectStep:
    name: str
    input: str
    expectations: tuple[Expectation, ...]
    line: int

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class CdcStep:
    """Marks rows as changes of keyed rows; a database or Delta sink then applies them in order per key."""

    name: str
    input: str
    order_by: str  # SQL: of two changes of a key the one with the greater value is the later
    delete_when: str  # SQL; empty: nothing is deleted
    line: int

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class PythonStep:
    """A function of the user's own: DataFrames of the inputs in, a DataFrame out."""

    name: str
    inputs: tuple[str, ...]
    file: Path
    function: str
    line: int


Step = SqlStep | DeduplicateStep | ExpectStep | CdcStep | PythonStep


@dataclass(frozen=True, slots=True)
class TopicTarget:
    topic: str
    key: str | None  # the column that becomes the key
    format: str
    exactly_once: bool

    kind = "topic"


@dataclass(frozen=True, slots=True)
class ParquetTarget:
    path: Path
    partition_by: tuple[str, ...]

    kind = "parquet"


@dataclass(frozen=True, slots=True)
class DeltaTarget:
    path: str
    partition_by: tuple[str, ...]
    keys: tuple[str, ...]  # empty: rows are appended

    kind = "delta"


@dataclass(frozen=True, slots=True)
class IcebergTarget:
    table: str  # namespace.table
    catalog: Mapping[str, str]

    kind = "iceberg"


@dataclass(frozen=True, slots=True)
class DatabaseTarget:
    kind: str  # sqlite or postgresql
    address: str  # a file, or a connection string
    table: str
    keys: tuple[str, ...]  # empty: rows are appended
    unique: tuple[str, ...]  # ids that a ledger remembers for good: a row with a known one is left out


Target = TopicTarget | ParquetTarget | DeltaTarget | IcebergTarget | DatabaseTarget


@dataclass(frozen=True, slots=True)
class Sink:
    name: str
    input: str
    target: Target
    mode: str
    every: str  # how often a batch may start
    line: int


@dataclass(frozen=True, slots=True)
class Pipeline:
    name: str
    folder: Path
    file: str  # as errors name it
    bootstrap: str | None
    master: str | None
    state: Path  # checkpoints, status
    dead_letters: str  # the topic
    spark: Mapping[str, str]
    sources: Mapping[str, Source] = field(default_factory=dict)
    tables: Mapping[str, Table] = field(default_factory=dict)
    steps: Mapping[str, Step] = field(default_factory=dict)
    sinks: Mapping[str, Sink] = field(default_factory=dict)

    @property
    def topics(self) -> list[str]:
        """All that is read, in order."""
        return list(dict.fromkeys(topic for source in self.sources.values() for topic in source.topics))
