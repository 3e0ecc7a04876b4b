"""The sink of a target that is a table: takes the rows of one micro-batch, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.pipeline.decoding import ORIGIN
from ottla.pipeline.definition import (
    DatabaseTarget,
    DeltaTarget,
    IcebergTarget,
    ParquetTarget,
    Target,
)
from ottla.pipeline.sinks.database import DatabaseSink
from ottla.pipeline.sinks.delta import DeltaSink
from ottla.pipeline.sinks.iceberg import IcebergSink
from ottla.pipeline.sinks.parquet import ParquetSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write_batch(rows: DataFrame, target: Target, query: str, batch: int) -> bool:
    """False: the target has this batch of this query already."""
    rows = rows.drop(ORIGIN)
    match target:
        case ParquetTarget():
            return ParquetSink(target).write(rows, query, batch)
        case DeltaTarget():
            return DeltaSink(target).write(rows.toArrow(), query, batch)
        case IcebergTarget():
            return IcebergSink(target).write(rows.toArrow(), query, batch)
        case DatabaseTarget():
            return DatabaseSink(target).write(rows.toArrow(), query, batch)
    raise AssertionError(f"{target.kind} is no table")
