"""Rows that could not be decoded or did not meet an expectation, as records of the dead-letter topic.

The value is what came, byte for byte; why it is here and where it came from are headers. So a record can be
looked at with any Kafka tool, mended, and sent back to where it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from ottla.pipeline.decoding import ORIGIN, PROBLEM

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PREFIX = "ottla."
REASON, PIPELINE, PART, TOPIC, PARTITION, OFFSET, TIMESTAMP = (
    f"{PREFIX}{name}" for name in ("reason", "pipeline", "part", "topic", "partition", "offset", "timestamp")
)


def as_records(pipeline: str, rejected: Sequence[DataFrame]) -> DataFrame:
    """key, value, headers."""
    frames = [_records_of(pipeline, rows) for rows in rejected]
    return reduce(lambda left, right: left.unionByName(right), frames)


def _records_of(pipeline: str, rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as sql

    headers: dict[str, Column] = {
        REASON: sql.col(PROBLEM),
        PIPELINE: sql.lit(pipeline),
        PART: sql.col("_part"),
    }
    if ORIGIN in rows.columns:
        origin = sql.col(ORIGIN)
        key = origin["key"]
        headers |= {
            TOPIC: origin["topic"],
            PARTITION: origin["partition"],
            OFFSET: origin["offset"],
            TIMESTAMP: sql.unix_millis(origin["timestamp"]),
        }
    else:
        key = sql.lit(None).cast("binary")
    listed = sql.array(
        *(
            sql.struct(sql.lit(name).alias("key"), each.cast("string").cast("binary").alias("value"))
            for name, each in headers.items()
        )
    )
    return rows.select(key.alias("key"), original_value(rows).alias("value"), listed.alias("headers"))


def original_value(rows: DataFrame) -> Column:
    """The bytes that came; the row itself as JSON where a SQL step has left them behind."""
    from pyspark.sql import functions as sql

    if ORIGIN in rows.columns:
        return sql.col(ORIGIN)["value"]
    plain = [name for name in rows.columns if not name.startswith("_")]
    return sql.to_json(sql.struct(*plain)).cast("binary")


def shown(rows: DataFrame) -> DataFrame:
    """Rejected rows for people: part, reason, value."""
    from pyspark.sql import functions as sql

    value = original_value(rows).cast("string").alias("value")
    return rows.select(sql.col("_part").alias("part"), sql.col(PROBLEM).alias("reason"), value)
