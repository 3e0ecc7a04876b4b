"""A look at a pipeline's results on live data: the last records of each topic through every step, once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ottla.client import Admin
from ottla.client.access import Access
from ottla.pipeline import records
from ottla.pipeline.dead_letters import shown
from ottla.pipeline.definition import Pipeline
from ottla.pipeline.parts import HIDDEN, Parts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows = list[dict[str, Any]]


def preview(
    pipeline: Pipeline, spark: SparkSession, access: Access, record_count: int, row_count: int
) -> Iterator[tuple[str, Rows]]:
    """Part by part: its first rows, made of the last records of each partition."""
    given: dict[str, DataFrame] = {}
    with Admin(access.bootstrap, **access.settings) as admin:
        for source in pipeline.sources.values():
            starts = records.places(source, admin, f"-{record_count}")
            stops = records.places(source, admin, "end")
            given[source.name] = records.range_of(source, spark, access, starts, stops)
    parts = Parts(pipeline, spark, given)
    for name, frame in parts.frames.items():
        if name not in pipeline.tables:
            yield name, json_rows(frame.limit(row_count))
    rejected = [row for rows in parts.rejected for row in json_rows(shown(rows).limit(row_count))]
    if rejected:
        yield "dead letters", rejected


def json_rows(frame: DataFrame) -> Rows:
    """Rows as JSON has them, without what only the pipeline needs; columns without a value are None."""
    from pyspark.sql import functions as sql

    visible = [name for name in frame.columns if name not in HIDDEN]
    if not visible:
        return [{} for _ in frame.collect()]
    text = sql.to_json(sql.struct(*visible), {"ignoreNullFields": "false"})
    return [json.loads(row[0]) for row in frame.select(text).collect()]
