"""The schema of a source, guessed by Spark from its last records, and written into the definition."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.client import Admin
from ottla.client.access import Access
from ottla.pipeline import records
from ottla.pipeline.definition import Source
from ottla.pipeline.problems import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructType


def infer_schema(source: Source, spark: SparkSession, access: Access, record_count: int) -> str:
    from pyspark.sql import functions as sql

    if source.format not in ("json", "csv"):
        raise PipelineError(f"the schema of {source.format} cannot be guessed", "write it")
    with Admin(access.bootstrap, **access.settings) as admin:
        starts = records.places(source, admin, f"-{record_count}")
        stops = records.places(source, admin, "end")
    rows = records.range_of(source, spark, access, starts, stops)
    lines = rows.filter(sql.col("value").isNotNull()).select(sql.col("value").cast("string").alias("line"))
    found = [row[0] for row in lines.collect()]
    if not found:
        raise PipelineError(f"{', '.join(source.topics)} has no records yet", "produce some, then try again")
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=f".{source.format}") as file:
        file.write("\n".join(found))
        file.flush()
        reader = spark.read.options(**source.options)
        read = reader.json if source.format == "json" else reader.option("inferSchema", True).csv
        return _columns(read(file.name).schema)


def write_schema(path: Path, source: str, schema: str) -> None:
    """Into the table of the source, in the place of a schema that is there."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    header = re.compile(rf"\s*\[\s*source\s*\.\s*{re.escape(source)}\s*\]")
    start = next((number for number, line in enumerate(lines) if header.match(line)), None)
    if start is None:
        raise PipelineError(f"{path} has no line [source.{source}]", f'write schema = "{schema}" yourself')
    end = next(
        (number for number in range(start + 1, len(lines)) if lines[number].lstrip().startswith("[")),
        len(lines),
    )
    kept = [line for line in lines[start + 1 : end] if not re.match(r"\s*schema\s*=", line)]
    lines[start + 1 : end] = [f"schema = {json.dumps(schema, ensure_ascii=False)}\n", *kept]
    path.write_text("".join(lines), encoding="utf-8")


def _columns(schema: StructType) -> str:
    return ", ".join(f"{_quoted(field.name)} {_type(field.dataType)}" for field in schema)


def _type(kind: DataType) -> str:
    """As Spark reads it; names within keep their case, since those of JSON must."""
    from pyspark.sql.types import ArrayType, StructType

    if isinstance(kind, StructType):
        return f"STRUCT<{', '.join(f'{_quoted(each.name)}: {_type(each.dataType)}' for each in kind)}>"
    if isinstance(kind, ArrayType):
        return f"ARRAY<{_type(kind.elementType)}>"
    return kind.simpleString().upper()


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else f"`{name}`"
