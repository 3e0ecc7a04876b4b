"""Batch reads: one look at where everything starts and ends, then one task for each range of offsets.

The way of a range into Arrow columns is in `fetching` and `files`; streams are in `stream`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from ottla.client.admin import Admin
from ottla.spark.connections import common_settings
from ottla.spark.fetching import read_range
from ottla.spark.filters import Narrowing, narrowed
from ottla.spark.loss import LossPolicy
from ottla.spark.offsets import Offsets
from ottla.spark.options import ReadOptions
from ottla.spark.places import Log, resolve
from ottla.spark.ranges import OffsetRange, cut_into_tasks, ranges_between
from ottla.spark.topics import some_subscribed

if TYPE_CHECKING:
    from pyarrow import RecordBatch


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
        start = policy.asked(start, first, latest)
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
