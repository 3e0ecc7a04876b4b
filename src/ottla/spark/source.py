"""Topics as a Spark data source: `.format("ottla")`, with the options and columns of Spark's own Kafka
connector.

A batch read asks the brokers once where everything starts and ends, and makes one task of each range of
offsets. Streams are in `stream`, the way of a range into Arrow columns in `fetching`, writing in `sink`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from ottla.client.admin import Admin
from ottla.spark.columns import check_types, ddl
from ottla.spark.connections import common_settings
from ottla.spark.fetching import read_range
from ottla.spark.filters import Narrowing, narrowed
from ottla.spark.loss import LossPolicy
from ottla.spark.offsets import Offsets
from ottla.spark.options import (
    ReadOptions,
    check_chosen,
    read_columns,
    read_options,
    refuse_secrets,
    write_options,
)
from ottla.spark.places import Log, resolve
from ottla.spark.ranges import OffsetRange, cut_into_tasks, ranges_between
from ottla.spark.topics import some_subscribed

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from ottla.spark.sink import StreamSink, TopicSink
    from ottla.spark.stream import TopicStreamReader

_PUSHING_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"


class TopicSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ottla"

    def schema(self) -> str:
        refuse_secrets(self.options)
        return ddl(read_columns(self.options))

    def reader(self, schema: StructType) -> TopicReader:
        options = replace(read_options(self.options, streaming=False), columns=self._columns(schema))
        return FilteringTopicReader(options) if _filters_are_pushed() else TopicReader(options)

    def streamReader(self, schema: StructType) -> TopicStreamReader:  # noqa: N802  # Spark's name
        from ottla.spark.stream import TopicStreamReader

        options = replace(read_options(self.options, streaming=True), columns=self._columns(schema))
        return TopicStreamReader(options)

    def writer(self, schema: StructType, overwrite: bool) -> TopicSink:
        from ottla.spark.sink import TopicSink

        return TopicSink(write_options(self.options, streaming=False), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamSink:  # noqa: N802
        from ottla.spark.sink import StreamSink

        return StreamSink(write_options(self.options, streaming=True), schema)

    def _columns(self, schema: StructType) -> tuple[str, ...]:
        columns = check_types((field.name, field.dataType.simpleString()) for field in schema.fields)
        check_chosen(self.options, columns)
        return columns


class RangePartition(InputPartition):
    """What one task reads."""

    def __init__(self, range_: OffsetRange, reader_id: str | None = None) -> None:
        self.range = range_
        self.reader_id = reader_id  # set where the task is to announce the query (`progress`)


class TopicReader(DataSourceReader):
    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._narrowing = Narrowing()

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        if options.path is not None:
            from ottla.spark.files import LogFiles, cut_at_segments

            files = LogFiles(options.path)
            ranges = cut_at_segments(files, self._ranges(files))
        else:
            with Admin(options.bootstrap, **common_settings(options.client)) as admin:
                ranges = self._ranges(admin)
        tasks = cut_into_tasks(
            self._narrow(ranges),
            min_partitions=options.min_partitions,
            records_max=options.range_records_max,
        )
        # Spark makes one partition of none and reads it: an empty range gives it nothing.
        return [RangePartition(each) for each in tasks] or [RangePartition(OffsetRange("", 0, 0, 0))]

    def _ranges(self, log: Log) -> list[OffsetRange]:
        options = self._options
        targets = some_subscribed(log, options.subscription).partitions
        start = resolve(options.start, log, targets, read_committed=options.reads_committed)
        end = resolve(options.end, log, targets, read_committed=options.reads_committed)
        policy = LossPolicy(fails=options.fail_on_data_loss)
        first = log.earliest_offsets(targets)
        latest = log.latest_offsets(targets, read_committed=options.reads_committed)
        start = policy.begun(start, first, latest)
        end = policy.reachable(end, latest)
        return ranges_between(self._from_time(log, start), end)

    def _from_time(self, log: Log, start: Offsets) -> Offsets:
        if self._narrowing.time_ms is None:
            return start
        found = log.list_offsets(dict.fromkeys(start, self._narrowing.time_ms))
        beyond = 2**63 - 1
        return {
            target: max(offset, beyond if (at := found[target].offset) is None else at)
            for target, offset in start.items()
        }

    def _narrow(self, ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
        wanted = self._narrowing
        cut = (
            replace(
                each,
                start_offset=max(each.start_offset, wanted.offset_start),
                end_offset=min(each.end_offset, wanted.offset_end),
            )
            for each in ranges
            if wanted.wants(each.partition)
        )
        return [each for each in cut if each.size > 0]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        assert isinstance(partition, RangePartition)
        return read_range(self._options, partition.range)


class FilteringTopicReader(TopicReader):
    """Spark refuses a reader with `pushFilters` unless spark.sql.python.filterPushdown.enabled is true."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  # Spark's name
        self._narrowing = narrowed(filters)
        return filters


def _filters_are_pushed() -> bool:
    """Whether this is the process that pushes filters: no other one has its module."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _PUSHING_WORKER in sys.modules or getattr(spec, "name", "") == _PUSHING_WORKER
