"""Offsets as Spark writes them, ranges cut into tasks, limits shared by partitions, what counts as loss."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ottla.model.topics import TopicPartition
from ottla.spark.errors import DataLoss
from ottla.spark.loss import LossPolicy
from ottla.spark.offsets import from_json, to_json
from ottla.spark.ranges import OffsetRange, cut_into_tasks, hold_back, ranges_between

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)

targets = st.builds(TopicPartition, st.sampled_from("abc"), st.integers(0, 12))
spans = st.dictionaries(targets, st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=1)


def test_offsets_are_written_as_spark_writes_them() -> None:
    assert json.dumps(to_json({A1: 5, A0: 23}), separators=(",", ":")) == '{"a":{"0":23,"1":5}}'


@given(st.dictionaries(targets, st.integers(0, 2**60)))
def test_written_offsets_are_read_back(offsets: dict[TopicPartition, int]) -> None:
    assert from_json(json.loads(json.dumps(to_json(offsets)))) == offsets


@given(spans, st.integers(1, 40), st.integers(1, 300))
def test_tasks_cover_every_offset_once(
    spans: dict[TopicPartition, tuple[int, int]], min_partitions: int, records_max: int
) -> None:
    start = {target: first for target, (first, _) in spans.items()}
    end = {target: first + size for target, (first, size) in spans.items()}
    whole = ranges_between(start, end)
    tasks = cut_into_tasks(whole, min_partitions=min_partitions, records_max=records_max)
    covered = [
        (task.target, offset) for task in tasks for offset in range(task.start_offset, task.end_offset)
    ]
    wanted = [(each.target, offset) for each in whole for offset in range(each.start_offset, each.end_offset)]
    assert covered == wanted
    assert all(0 < task.size <= records_max for task in tasks)
    assert len(tasks) >= min(min_partitions, len(wanted))


def test_large_ranges_get_more_tasks_than_small_ones() -> None:
    ranges = [OffsetRange("a", 0, 0, 900), OffsetRange("a", 1, 0, 100)]
    tasks = cut_into_tasks(ranges, min_partitions=10, records_max=None)
    assert [task.partition for task in tasks] == [0] * 9 + [1]


@example({TopicPartition("a", 0): (0, 4), TopicPartition("a", 1): (0, 1), TopicPartition("a", 2): (0, 1)}, 3)
@given(spans, st.integers(1, 2000))
def test_a_limit_is_kept_and_nobody_starves(spans: dict[TopicPartition, tuple[int, int]], limit: int) -> None:
    start = {target: first for target, (first, _) in spans.items()}
    end = {target: first + size for target, (first, size) in spans.items()}
    held = hold_back(start, end, limit)
    taken = {target: held[target] - start[target] for target in end}
    waiting = [target for target in end if end[target] > start[target]]
    assert sum(taken.values()) <= max(limit, len(waiting))
    assert all(1 <= taken[target] <= end[target] - start[target] for target in waiting)


def test_what_retention_took_is_loss() -> None:
    with pytest.raises(DataLoss, match=r"a-0 starts at 10 now, the query is at 5.*failOnDataLoss"):
        LossPolicy(fails=True).begun({A0: 5}, {A0: 10}, {A0: 20})
    assert LossPolicy(fails=False).begun({A0: 5}, {A0: 10}, {A0: 20}) == {A0: 10}


def test_a_topic_that_ends_before_the_query_was_created_anew() -> None:
    with pytest.raises(DataLoss, match="created anew"):
        LossPolicy(fails=True).begun({A0: 50}, {A0: 0}, {A0: 20})
    assert LossPolicy(fails=False).begun({A0: 50}, {A0: 0}, {A0: 20}) == {A0: 0}


def test_a_partition_that_is_gone_is_loss() -> None:
    with pytest.raises(DataLoss, match="a-1 is gone"):
        LossPolicy(fails=True).gone_partitions({A0: 1, A1: 1}, {A0: 1})


def test_a_new_partition_is_read_from_its_first_record() -> None:
    assert LossPolicy(fails=True).begun({A0: 5}, {A0: 0, A1: 0}, {A0: 7, A1: 3}) == {A0: 5, A1: 0}
