"""A range of the topics through the same steps once more, into the same sink or another place.

A backfill has a name made of what it does: range, target, steps. Sinks remember it like a batch, so that one
that was interrupted is simply started again: rows enter once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ottla.client import Admin
from ottla.client.access import Access
from ottla.pipeline import records
from ottla.pipeline.definition import (
    DatabaseTarget,
    DeltaTarget,
    ExpectStep,
    IcebergTarget,
    ParquetTarget,
    Pipeline,
    PythonStep,
    Sink,
    SqlStep,
    Target,
    TopicTarget,
)
from ottla.pipeline.graph import parts_behind, sources_behind
from ottla.pipeline.parts import Parts
from ottla.pipeline.problems import PipelineError
from ottla.pipeline.sinks.tables import write_batch
from ottla.pipeline.sinks.topic import delivery, topic_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Offsets = Mapping[str, Mapping[int, int]]


@dataclass(frozen=True, slots=True)
class Range:
    source: str
    topic: str
    partition: int
    start: int
    stop: int

    @property
    def count(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class Backfill:
    sink: Sink
    target: Target
    ranges: tuple[Range, ...]
    made_by: str  # the sources and steps before the sink: when those were mended, it is another backfill

    @property
    def name(self) -> str:
        told = json.dumps([str(self.target), [str(each) for each in self.ranges], self.made_by])
        return f"backfill-{hashlib.sha256(told.encode()).hexdigest()[:16]}"


def plan(pipeline: Pipeline, access: Access, sink: str, start: str, stop: str, into: str | None) -> Backfill:
    """What would be read, and where it would go. Reads nothing but offsets."""
    chosen = pipeline.sinks.get(sink)
    if chosen is None:
        raise PipelineError(f"there is no sink {sink}", f"there are {', '.join(pipeline.sinks)}")
    ranges = []
    with Admin(access.bootstrap, **access.settings) as admin:
        for name in sources_behind(pipeline, chosen.input):
            source = pipeline.sources[name]
            starts, stops = (records.places(source, admin, place) for place in (start, stop))
            for topic, partitions in starts.items():
                for index, first in partitions.items():
                    ranges.append(Range(name, topic, index, first, max(first, stops[topic][index])))
    target = chosen.target if into is None else moved(chosen.target, pipeline, into)
    return Backfill(chosen, target, tuple(ranges), _content(pipeline, chosen.input))


def _content(pipeline: Pipeline, part: str) -> str:
    """What leads to a part, wherever in its files it is written."""
    told = []
    for name in parts_behind(pipeline, part):
        each = pipeline.sources.get(name) or pipeline.steps.get(name)
        match each:
            case None:  # a table stands still
                continue
            case SqlStep():
                told.append(f"{name}: {each.sql} {each.watermark}")
            case PythonStep():
                told.append(f"{name}: {each.inputs} {each.function} {each.file.read_text(encoding='utf-8')}")
            case ExpectStep():
                checks = [(one.check, one.action) for one in each.expectations]
                told.append(f"{name}: {each.input} {checks}")
            case _:
                told.append(f"{name}: {replace(each, line=0)}")
    return "\n".join(sorted(told))


def moved(target: Target, pipeline: Pipeline, into: str) -> Target:
    """The same kind of target elsewhere: another topic, folder or table."""
    match target:
        case TopicTarget():
            return replace(target, topic=into)
        case ParquetTarget():
            return replace(target, path=pipeline.folder.absolute() / into)
        case DeltaTarget():
            return replace(target, path=into if "://" in into else str(pipeline.folder.absolute() / into))
        case IcebergTarget() | DatabaseTarget():
            return replace(target, table=into)


def run(pipeline: Pipeline, spark: SparkSession, access: Access, work: Backfill) -> bool:
    """False: the target has all of it already."""
    frames = {}
    for source in pipeline.sources.values():
        mine = [each for each in work.ranges if each.source == source.name]
        starts = {each.topic: {} for each in mine}  # type: dict[str, dict[int, int]]
        stops = {each.topic: {} for each in mine}  # type: dict[str, dict[int, int]]
        for each in mine:
            starts[each.topic][each.partition] = each.start
            stops[each.topic][each.partition] = each.stop
        if mine:
            frames[source.name] = records.range_of(source, spark, access, starts, stops)
        else:
            frames[source.name] = records.examples(spark, source, None)
    rows = Parts(pipeline, spark, frames).frames[work.sink.input]
    if isinstance(work.target, TopicTarget):
        writer = topic_rows(rows, work.target).write.format("ottla")
        writer = writer.options(**records.broker_options(access)).option("topic", work.target.topic)
        writer.option("delivery", delivery(work.target)).option("writeId", work.name).mode("append").save()
        return True
    return write_batch(rows, work.target, work.name, 0)
