"""Committed offsets, and those of transactions that have not ended."""

from __future__ import annotations

import pytest

from coordinator.bench import Bench, committed
from ottla.coordinator.group_records import OffsetCommitKey, OffsetCommitValue, offset_record
from ottla.coordinator.offsets import Place
from ottla.coordinator.state_log import StateRecord
from ottla.model.errors import ErrorCode

PLACE = Place("g", "t", 0)


def record(offset: int | None, partition: int = 0) -> StateRecord:
    value = None if offset is None else OffsetCommitValue(offset)
    return offset_record(OffsetCommitKey("g", "t", partition), value)


def test_a_transactions_offsets_count_when_it_is_committed() -> None:
    machine = Bench().machine
    machine.apply(record(1))
    machine.apply(record(2), producer_id=7)
    assert committed(machine) == {("t", 0): 1}
    assert machine.offsets.is_open(PLACE)
    machine.apply_marker(7, committed=True)
    assert committed(machine) == {("t", 0): 2}
    assert not machine.offsets.is_open(PLACE)


def test_an_aborted_transaction_leaves_no_trace() -> None:
    machine = Bench().machine
    machine.apply(record(2), producer_id=7)
    assert "g" in machine.groups, "it is a group as soon as something is written for it"
    machine.apply_marker(7, committed=False)
    assert committed(machine) == {}
    assert not machine.offsets.has_any("g")
    machine.apply_marker(7, committed=True)
    assert committed(machine) == {}


def test_a_later_plain_commit_is_not_undone_by_the_end_of_a_transaction() -> None:
    machine = Bench().machine
    machine.apply(record(5), producer_id=7)
    machine.apply(record(9))
    machine.apply_marker(7, committed=True)
    assert committed(machine) == {("t", 0): 9}


def test_two_transactions_on_one_partition_end_on_their_own() -> None:
    machine = Bench().machine
    machine.apply(record(5), producer_id=7)
    machine.apply(record(6), producer_id=8)
    machine.apply_marker(8, committed=True)
    assert (committed(machine), machine.offsets.is_open(PLACE)) == ({("t", 0): 6}, True)
    machine.apply_marker(7, committed=False)
    assert (committed(machine), machine.offsets.is_open(PLACE)) == ({("t", 0): 6}, False)


def test_open_offsets_do_not_expire_and_keep_their_group() -> None:
    bench = Bench()
    bench.commit({("t", 0): 1})
    bench.machine.apply(record(2), producer_id=7)
    bench.advance(2 * bench.config.offsets_retention_ms)
    bench.expire()
    assert bench.committed() == {("t", 0): 1}
    bench.machine.apply_marker(7, committed=False)
    bench.expire()
    assert bench.committed() == {}


def test_a_strangers_bytes_are_skipped_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    machine = Bench().machine
    machine.apply(StateRecord(b"hello", b"world"))
    machine.apply(StateRecord(b"\0\x63key", b"of a kind to come"))
    machine.apply(StateRecord(b"", None))
    machine.apply(record(3))
    assert committed(machine) == {("t", 0): 3}
    warned = [each for each in caplog.records if each.name.startswith("ottla.")]
    assert len(warned) == 3


def test_offsets_of_topics_that_are_read_are_not_deleted() -> None:
    bench = Bench()
    bench.join("a", version=3)
    bench.advance(3_000)
    bench.sync("a", "a-1", 1, {"a-1": b"all"})
    bench.commit({("t", 0): 1, ("u", 0): 2}, "a-1", 1)
    records, codes = bench.machine.delete_offsets("g", [("t", 0), ("u", 0), ("u", 1)])
    bench.write(records)
    assert codes == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE, ErrorCode.NONE]
    assert bench.committed() == {("t", 0): 1}
