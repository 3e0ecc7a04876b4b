"""The raw rows of sources: a stream from a topic, a range of it, or examples out of a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.client import Admin
from ottla.client.access import Access
from ottla.client.offset_spec import End, Start, parse_offset
from ottla.pipeline.definition import Pipeline, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FORMAT = "ottla"
_SCHEMA = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset LONG, timestamp TIMESTAMP, "
    "timestampType INT"
)
Offsets = Mapping[str, Mapping[int, int]]


def streams(pipeline: Pipeline, spark: SparkSession, access: Access, group: str) -> dict[str, DataFrame]:
    """Every source as a stream; the first run of a query begins where the source says."""
    found = {}
    for source in pipeline.sources.values():
        reader = (
            spark.readStream.format(_FORMAT)
            .options(**broker_options(access))
            .option("subscribe", ",".join(source.topics))
            .option("startingOffsets", _start(source, access))
            .option("kafka.group.id", group)
        )
        if source.batch_records_max is not None:
            reader = reader.option("maxOffsetsPerTrigger", str(source.batch_records_max))
        found[source.name] = reader.load()
    return found


def broker_options(access: Access) -> dict[str, str]:
    """Spark's options for the way to the brokers."""
    settings = {f"kafka.{name}": value for name, value in access.settings.items()}
    return {"kafka.bootstrap.servers": access.bootstrap, **settings}


def range_of(
    source: Source, spark: SparkSession, access: Access, starts: Offsets, stops: Offsets
) -> DataFrame:
    """What lies between two places of a source, as a batch."""
    return (
        spark.read.format(_FORMAT)
        .options(**broker_options(access))
        .option("subscribe", ",".join(source.topics))
        .option("startingOffsets", as_json(starts))
        .option("endingOffsets", as_json(stops))
        .load()
    )


def places(source: Source, admin: Admin, place: str) -> dict[str, dict[int, int]]:
    """The offset of a place in each partition of a source."""
    found: dict[str, dict[int, int]] = {}
    for topic in source.topics:
        offsets = admin.resolve_offsets(admin.partitions_of(topic), place)
        found[topic] = {target.partition: offset for target, offset in offsets.items()}
    return found


def as_json(offsets: Offsets) -> str:
    return json.dumps(
        {topic: {str(index): offset for index, offset in each.items()} for topic, each in offsets.items()}
    )


def examples(spark: SparkSession, source: Source, path: Path | None) -> DataFrame:
    """Each line of a file is the value of a record; without a file there are none."""
    lines = [] if path is None else path.read_bytes().splitlines()
    written = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [
        (None, bytearray(line), source.topics[0], 0, offset, written, 0) for offset, line in enumerate(lines)
    ]
    return spark.createDataFrame(rows, _SCHEMA)


def _start(source: Source, access: Access) -> str:
    match parse_offset(source.start, 0):
        case Start():
            return "earliest"
        case End():
            return "latest"
    with Admin(access.bootstrap, **access.settings) as admin:
        return as_json(places(source, admin, source.start))
