"""Rows as records of a topic: a key column, and the value as JSON, text or bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.pipeline.definition import TopicTarget
from ottla.pipeline.parts import HIDDEN
from ottla.pipeline.problems import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_OPTIONS = {True: "exactly-once", False: "at-least-once"}


def topic_rows(rows: DataFrame, target: TopicTarget) -> DataFrame:
    """The columns `key` and `value` that the sink of topics takes."""
    from pyspark.sql import functions as sql

    visible = [name for name in rows.columns if name not in HIDDEN]
    if target.key is not None and target.key not in rows.columns:
        raise PipelineError(
            f"topic {target.topic}: {target.key} is no column", f"there are {', '.join(visible)}"
        )
    key: Column = sql.lit(None) if target.key is None else sql.col(target.key)
    if target.format == "json":
        value = sql.to_json(sql.struct(*visible))
    elif "value" in visible:
        value = sql.col("value")
    else:
        raise PipelineError(
            f"topic {target.topic}: format {target.format} needs a column value",
            f"there are {', '.join(visible)}",
        )
    kind = "binary" if target.format == "raw" else "string"
    return rows.select(key.cast(kind).alias("key"), value.cast(kind).alias("value"))


def delivery(target: TopicTarget) -> str:
    return _OPTIONS[target.exactly_once]
