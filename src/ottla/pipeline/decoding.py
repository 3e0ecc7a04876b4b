"""From the bytes of records to columns, and what could not be decoded with the reason why.

Beside the columns of its schema a decoded source has `_source`, a struct that says where a row comes from
(topic, partition, offset, timestamp, key, value as they were); sinks leave it out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.pipeline.avro_text import avro_to_json
from ottla.pipeline.definition import Source, Watermark
from ottla.pipeline.problems import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ORIGIN = "_source"
PROBLEM = "_problem"
_CORRUPT = "_corrupt"
_ORIGIN_FIELDS = ("topic", "partition", "offset", "timestamp", "key", "value")


def decoded(records: DataFrame, source: Source) -> DataFrame:
    """All rows of a topic: decoded ones have no `_problem`, the others nothing else but their origin."""
    from pyspark.sql import functions as sql

    origin = sql.struct(*_ORIGIN_FIELDS).alias(ORIGIN)
    if source.format == "raw":
        return records.select("key", "value", origin, sql.lit(None).cast("string").alias(PROBLEM))
    text = sql.col("value").cast("string")
    if source.format == "text":
        return records.select(text.alias("value"), origin, _no_value().alias(PROBLEM))
    parsed = records.select(origin, _parsed(text, source).alias("row"))
    corrupt = sql.col(f"row.{_CORRUPT}").isNotNull()
    problem = sql.when(corrupt, f"the value is no {source.format} of the schema").when(
        sql.col(f"{ORIGIN}.value").isNull(), "there is no value"
    )
    columns = parsed.select(origin_column(), "row.*", problem.alias(PROBLEM)).drop(_CORRUPT)
    return columns if source.watermark is None else with_watermark(columns, source.watermark)


def with_watermark(rows: DataFrame, mark: Watermark) -> DataFrame:
    """Spark itself looks at the column only when rows are a stream, and then at the end of the plan."""
    from pyspark.sql.types import TimestampType

    visible = [name for name in rows.columns if not name.startswith("_")]
    if mark.column not in rows.columns:
        raise PipelineError(f"watermark: {mark.column} is no column", f"there are {', '.join(visible)}")
    kind = rows.schema[mark.column].dataType
    if not isinstance(kind, TimestampType):
        raise PipelineError(
            f"watermark: {mark.column} is {kind.simpleString().upper()}", "it must be a TIMESTAMP"
        )
    return rows.withWatermark(mark.column, mark.delay)


def good(decoded_rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as sql

    return decoded_rows.filter(sql.col(PROBLEM).isNull()).drop(PROBLEM)


def bad(decoded_rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as sql

    return decoded_rows.filter(sql.col(PROBLEM).isNotNull())


def origin_column() -> Column:
    from pyspark.sql import functions as sql

    return sql.col(ORIGIN)


def _no_value() -> Column:
    from pyspark.sql import functions as sql

    return sql.when(sql.col("value").isNull(), "there is no value")


def _parsed(text: Column, source: Source) -> Column:
    from pyspark.sql import functions as sql

    schema = f"{source.schema}, {_CORRUPT} STRING"
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT, **source.options}
    if source.format == "csv":
        return sql.from_csv(text, schema, options)
    if source.format == "avro":
        assert source.avro_file is not None
        text = avro_to_json(sql.col("value"), source.avro_file)
    return sql.from_json(text, schema, options)
