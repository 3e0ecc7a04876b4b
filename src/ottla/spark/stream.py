"""Topics as a stream. Spark's checkpoint keeps the offsets, written as Spark's own Kafka source writes them.

Spark asks for the latest offset as often as it can; while there is nothing new, the answer waits at the
broker. An instance lives in the driver for as long as its run; copies of it travel to the tasks, which only
`read`.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from ottla.client.admin import Admin
from ottla.client.errors import UnknownPartition, UnknownTopic
from ottla.spark.connections import admin_of, consumer_of
from ottla.spark.fetching import read_range
from ottla.spark.lag import ProgressMirror, announce
from ottla.spark.loss import LossPolicy
from ottla.spark.offsets import Json, Offsets, from_json, to_json
from ottla.spark.options import ReadOptions
from ottla.spark.places import resolve
from ottla.spark.ranges import cut_into_tasks, hold_back, ranges_between
from ottla.spark.reader import RangePartition
from ottla.spark.topics import Subscribed, some_subscribed, still_subscribed

if TYPE_CHECKING:
    from pyarrow import RecordBatch

_WAIT_SECONDS = 0.5  # of one long poll: a query that is stopped meanwhile is kept waiting so long
_HELD_BACK_SECONDS = 0.1  # between looks at a backlog that is below minOffsetsPerTrigger


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._policy = LossPolicy(fails=options.fail_on_data_loss)
        self._reader_id = str(uuid.uuid4())
        self._mirror = ProgressMirror(options, self._reader_id)
        self._initial: Offsets | None = None  # where a query starts that has no checkpoint yet
        self._topic_ids: dict[str, str] = {}  # as this run first saw them
        self._last_end: Offsets = {}  # of the partitions, as brokers last told
        self._target: Offsets | None = None  # where AvailableNow stops
        self._planned: tuple[Offsets, ...] = ()  # start and end of the last batch that was cut into ranges
        self._announced = False
        self._triggered = time.monotonic()  # when the last batch was given, for maxTriggerDelay

    @property
    def _admin(self) -> Admin:
        return admin_of(self._options.bootstrap, self._options.client)

    # -- offsets -------------------------------------------------------------------------------------------

    def initialOffset(self) -> Json:  # noqa: N802  # Spark's names, here and below
        """Asked again when the first batch is planned, and by a run after one that did not finish it."""
        if self._initial is None:
            self._initial = self._find_initial()
        return to_json(self._initial)

    def _find_initial(self) -> Offsets:
        targets = some_subscribed(self._admin, self._options.subscription).partitions
        start = resolve(
            self._options.start, self._admin, targets, read_committed=self._options.reads_committed
        )
        first = self._admin.earliest_offsets(targets)
        return self._policy.begun(start, first, self._ends(targets))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        if self._options.max_offsets is not None:
            return ReadMaxRows(self._options.max_offsets)
        if self._options.min_offsets is not None:
            return ReadMinRows(self._options.min_offsets)
        return ReadAllAvailable()

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:  # noqa: N802
        """`start` is the end of the last batch, which is finished and can be mirrored."""
        begun = from_json(start)
        end = self._look() if self._target is None else self._within_target(begun)
        is_idle = not _is_new(begun, end)
        self._mirror_end(begun)
        if self._target is not None:
            if is_idle:
                self._mirror.settle()  # Spark ends the query, and this process, as soon as it knows
            return to_json(self._limited(begun, end, limit))
        if is_idle:
            self._wait_for_more(end)
            end = self._look()
        self._policy.gone_partitions(begun, end)
        if self._must_wait(begun, end, limit):
            time.sleep(_HELD_BACK_SECONDS)
            return start
        self._triggered = time.monotonic()
        return to_json(self._limited(begun, end, limit))

    def _mirror_end(self, finished: Offsets) -> None:
        if self._announced and self._options.mirrors_progress:
            self._mirror.offer(finished)

    def reportLatestOffset(self) -> Json | None:  # noqa: N802
        """Also of a run whose first batch comes from the checkpoint, without a look at the topics."""
        return to_json(self._last_end or self._look()) or None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._look()

    def _look(self) -> Offsets:
        """Where all partitions end that are there now."""
        found = still_subscribed(self._admin, self._options.subscription)
        self._check_ids(found)
        self._last_end = self._ends(found.partitions)
        return self._last_end

    def _check_ids(self, found: Subscribed) -> None:
        for topic, topic_id in found.topic_ids.items():
            self._policy.re_created(topic, self._topic_ids.get(topic, topic_id), topic_id)
        self._topic_ids |= found.topic_ids

    def _ends(self, targets: Sequence[Any]) -> Offsets:
        return self._admin.latest_offsets(targets, read_committed=self._options.reads_committed)

    def _within_target(self, begun: Offsets) -> Offsets:
        """What AvailableNow is still to read; a partition that was there only before is loss."""
        assert self._target is not None
        self._policy.gone_partitions(begun, self._target)
        return self._target

    def _begun(self, begun: Offsets, end: Offsets) -> Offsets:
        """Where a batch with this end starts, in the partitions that are still there.

        One that goes on where this run was is not looked at again: its tasks find what is gone since then.
        """
        if begun in self._planned and _goes_on(begun, end):
            return begun
        try:
            first = self._admin.earliest_offsets(end)
        except (UnknownTopic, UnknownPartition):
            there = self._look()
            self._policy.gone_partitions(end, there)
            end = {target: offset for target, offset in end.items() if target in there}
            first = self._admin.earliest_offsets(end)
        if begun == self._initial and any(begun.get(target, 0) > end[target] for target in end):
            self._policy.report(
                f"the query stopped before its first batch was finished, which ends at {to_json(end)}. It "
                f"was to start where the topics ended then, which is not known any more: now it is at "
                f"{to_json(begun)}"
            )
            begun = {target: min(offset, end.get(target, offset)) for target, offset in begun.items()}
        return self._policy.begun(begun, first, end)

    def _limited(self, begun: Offsets, end: Offsets, limit: ReadLimit) -> Offsets:
        if isinstance(limit, ReadAllAvailable) or self._options.max_offsets is None:
            return end
        if sum(end.values()) - sum(begun.values()) <= self._options.max_offsets and len(end) == len(begun):
            return end
        return hold_back(self._begun(begun, end), end, self._options.max_offsets)

    def _must_wait(self, begun: Offsets, end: Offsets, limit: ReadLimit) -> bool:
        least = self._options.min_offsets
        if least is None or isinstance(limit, ReadAllAvailable):
            return False
        waited_ms = (time.monotonic() - self._triggered) * 1000
        ready = sum(max(end[target] - begun.get(target, 0), 0) for target in end)
        return ready < least and waited_ms < self._options.trigger_delay_ms_max

    def _wait_for_more(self, end: Offsets) -> None:
        """Until something comes behind these ends, or a little while; what comes is not kept here."""
        if not end:
            time.sleep(_WAIT_SECONDS)
            return
        consumer = consumer_of(
            self._options.bootstrap, {**self._options.client, "max.partition.fetch.bytes": "1"}
        )
        consumer.assign(end)  # it keeps them, so that the next wait need not ask who leads them
        consumer.poll(_WAIT_SECONDS)

    # -- ranges --------------------------------------------------------------------------------------------

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        wanted = from_json(end)
        if not wanted:
            return []
        begun = self._begun(from_json(start), wanted)
        self._planned = (begun, wanted)
        ranges = ranges_between(begun, wanted)
        tasks = cut_into_tasks(
            ranges,
            min_partitions=self._options.min_partitions,
            records_max=self._options.range_records_max,
        )
        firsts = {(each.target, each.start_offset) for each in ranges}
        announcing = self._options.mirrors_progress and not self._announced
        self._announced = self._announced or bool(tasks)
        return [
            RangePartition(
                each,
                self._reader_id if announcing and (each.target, each.start_offset) in firsts else None,
            )
            for each in tasks
        ]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        assert isinstance(partition, RangePartition)
        if partition.reader_id is not None:
            range_ = partition.range
            announce(self._admin, self._options, range_.target, range_.start_offset, partition.reader_id)
        return read_range(self._options, partition.range)

    def commit(self, end: Json) -> None:
        """Nothing: it comes one batch late; `latestOffset` knows sooner what is finished."""

    def stop(self) -> None:
        self._mirror.stop()


def _goes_on(begun: Offsets, end: Offsets) -> bool:
    return begun.keys() == end.keys() and all(begun[target] <= end[target] for target in end)


def _is_new(begun: Offsets, end: Offsets) -> bool:
    return begun.keys() != end.keys() or any(end[target] != begun[target] for target in end)
