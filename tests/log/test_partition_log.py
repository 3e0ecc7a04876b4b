"""Appending, reading, rolling and cutting one partition's log."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from faults.power_cut import SimulatedFiles
from log.building import (
    NOW_MS,
    PARTITION,
    append,
    batch,
    config,
    new_log,
    open_directory,
    produced,
    read_all,
    records_in,
    regain_room,
    sync,
)
from ottla.log.partition_log import OffsetOutOfRange, PartitionLog
from ottla.log.system_files import SystemFiles
from ottla.model.errors import ErrorCode
from ottla.records.batch import HEADER_BYTES, read_header
from ottla.records.formats import verify_crc


@pytest.fixture
def files() -> SimulatedFiles:
    return SimulatedFiles()


def make(files: SimulatedFiles, **changes: Any) -> PartitionLog:
    return new_log(files, "/disk", config(**changes))[1]


# -- appending -----------------------------------------------------------------------------------------------


def test_batches_get_dense_offsets_and_the_leaders_epoch(files: SimulatedFiles) -> None:
    log = make(files)
    first = log.append([batch([b"a", b"b"]), batch([b"c"])], 4, NOW_MS)
    second = log.append([batch([b"d"])], 5, NOW_MS)
    assert (first.first_offset, first.last_offset, first.log_append_time_ms) == (0, 2, -1)
    assert (second.first_offset, second.last_offset) == (3, 3)
    part = log.read(0, 10_000, 4)
    assert part is not None
    data, position, seen = part.read(), 0, []
    while position < len(data):
        header = read_header(data, position)
        assert verify_crc(data, header, position)
        seen.append((header.base_offset, header.leader_epoch))
        position += header.size
    assert seen == [(0, 4), (2, 4), (3, 5)]
    assert log.epochs.entries() == ((4, 0), (5, 3))


def test_log_append_time_is_written_into_the_batch(files: SimulatedFiles) -> None:
    log = make(files, message_timestamp_log_append=True)
    result = log.append([batch([b"a", b"b"], timestamp=5)], 0, NOW_MS)
    assert result.log_append_time_ms == NOW_MS
    assert [record.timestamp for record in read_all(log)] == [NOW_MS, NOW_MS]
    found = log.offset_for_timestamp(NOW_MS)
    assert found is not None
    assert found.offset == 0


def test_one_append_is_one_write(files: SimulatedFiles) -> None:
    log = make(files)
    append(log, [b"first"])
    before = files.operations
    log.append([produced(1, 0, number) for number in range(100)], 0, NOW_MS)
    assert files.operations == before + 1


def test_a_full_disk_refuses_and_loses_nothing(files: SimulatedFiles) -> None:
    log = make(files)
    log.append([produced(1, 0, 0)], 0, NOW_MS)
    size = log.size_bytes
    files.capacity_bytes = 50
    with pytest.raises(OSError, match="No space") as caught:
        log.append([produced(1, 0, 1)], 0, NOW_MS)
    assert caught.value.errno == errno.ENOSPC
    assert (log.log_end_offset, log.size_bytes) == (1, size)
    assert len(read_all(log)) == 1
    files.capacity_bytes = None
    regain_room(log)
    assert log.producers.check(produced(1, 0, 1).header) is None, "what was refused may come again"
    assert log.append([produced(1, 0, 1)], 0, NOW_MS).first_offset == 1
    sync(log)
    assert log.synced_offset == 2


def test_a_full_disk_refuses_a_new_epoch_and_stops_no_round(files: SimulatedFiles) -> None:
    log = make(files)
    append(log, [b"x"], epoch=1)
    files.capacity_bytes = 0
    log.delete_records(1)
    sync(log)
    assert log.synced_offset == 1
    with pytest.raises(OSError, match="No space"):
        append(log, [b"y"], epoch=2)
    assert log.epochs.latest == 1
    files.capacity_bytes = None
    regain_room(log)
    append(log, [b"y"], epoch=2)
    assert log.epochs.entries() == ((2, 1),)


def test_an_epoch_may_begin_while_the_one_before_is_being_written(files: SimulatedFiles) -> None:
    log = make(files)
    append(log, [b"x"], epoch=1)
    ticket = log.begin_sync()
    assert ticket is not None
    append(log, [b"y"], epoch=2)
    append(log, [b"z"], epoch=3)
    ticket.run()
    log.finish_sync(ticket)
    sync(log)
    assert files.read_all("/disk/orders-0/leader-epoch-checkpoint") == b"0\n3\n1 0\n2 1\n3 2\n"
    assert not [name for name, _ in files.list_directory("/disk/orders-0") if name.endswith(".tmp")]


def test_a_full_disk_while_rolling_leaves_the_log_usable(files: SimulatedFiles) -> None:
    log = make(files, segment_bytes=200, index_interval_bytes=0)
    for _ in range(2):
        append(log, [b"x" * 20])
    for operation in ("create", "append", "truncate"):
        files.fail(operation, errno.ENOSPC)
        with pytest.raises(OSError, match="No space"):
            append(log, [b"y" * 100])
        with pytest.raises(OSError, match="the disk is full; make room"):
            append(log, [b"y" * 100])
        regain_room(log)
    assert append(log, [b"y" * 100]) == 2
    assert len(log.segments) == 2
    assert [record.value[:1] for record in read_all(log)] == [b"x", b"x", b"y"]


# -- reading -------------------------------------------------------------------------------------------------


def test_a_read_starts_with_the_batch_that_holds_the_offset(files: SimulatedFiles) -> None:
    log = make(files)
    for first in range(0, 50, 5):
        append(log, [b"%d" % (first + number) for number in range(5)])
    for offset in range(50):
        part = log.read(offset, 10_000, 50)
        assert part is not None
        assert records_in(part.read())[0].offset == offset - offset % 5


def test_the_first_batch_is_whole_and_alone_however_it_was_appended(files: SimulatedFiles) -> None:
    """Where it was appended with others, its size is not that of its append."""
    log = make(files)
    together = [batch([b"x" * 1_000]), batch([b"y" * 1_000])]
    log.append(together, 0, NOW_MS)
    append(log, [b"z" * 1_000])
    for offset, alone in enumerate((False, False, True)):
        part = log.read(offset, 10, 3)
        assert part is not None
        assert [record.offset for record in records_in(part.read())] == [offset]
        assert part.size == read_header(part.read()).size
        assert log.segments[0].was_appended_alone(part.position) == alone


def test_at_least_one_whole_batch_is_returned_if_asked_for(files: SimulatedFiles) -> None:
    log = make(files)
    append(log, [b"x" * 1_000])
    append(log, [b"y" * 1_000])
    part = log.read(0, 10, 2)
    assert part is not None
    assert [record.offset for record in records_in(part.read())] == [0]
    assert part.size == read_header(part.read()).size
    assert log.read(0, 10, 2, at_least_one=False) is None
    first_and_a_bit = log.read(0, 1_100, 2, at_least_one=False)
    assert first_and_a_bit is not None
    assert first_and_a_bit.size == 1_100


def test_a_read_never_passes_the_end_it_was_given(files: SimulatedFiles) -> None:
    log = make(files, index_interval_bytes=0)
    for _ in range(300):
        append(log, [b"a", b"b"])
    for end in (0, 1, 2, 3, 100, 301, 599, 600):
        found = [record.offset for start in (0, 1) for record in _read(log, start, end)]
        assert all(offset < end for offset in found)
        assert len(_read(log, 0, end)) == end - end % 2
    assert log.read(600, 1_000, 600) is None


def _read(log: PartitionLog, offset: int, end: int) -> list[Any]:
    part = log.read(offset, 1 << 20, end) if offset <= log.log_end_offset else None
    return records_in(part.read()) if part is not None else []


def test_offsets_outside_of_the_log_are_refused(files: SimulatedFiles) -> None:
    log = make(files)
    append(log, [b"a", b"b", b"c"])
    log.delete_records(1)
    for offset in (-1, 0, 4):
        with pytest.raises(OffsetOutOfRange) as caught:
            log.read(offset, 100, 3)
        assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.read(3, 100, 3) is None


def test_a_range_stays_whole_when_its_segment_is_deleted(tmp_path: Path) -> None:
    directory, log = new_log(SystemFiles(), str(tmp_path), config(segment_bytes=100))
    append(log, [b"x" * 50])
    append(log, [b"y" * 50])
    part = log.read(0, 1_000, 1)
    assert part is not None
    log.delete_records(1)
    directory.checkpoints.begin().run()
    removal = directory.take_due_deletions(NOW_MS)
    assert removal is None
    removal = directory.take_due_deletions(NOW_MS + 60_000)
    assert removal is not None
    removal.run()
    assert not list(tmp_path.glob("orders-0/00000000000000000000.*"))
    assert [record.value for record in records_in(part.read())] == [b"x" * 50]
    directory.abandon()


def test_an_index_that_lies_does_not_mislead(files: SimulatedFiles) -> None:
    directory, log = new_log(files, "/disk", config(index_interval_bytes=0))
    for number in range(50):
        append(log, [b"%d" % number])
    directory.close()
    path = "/disk/orders-0/00000000000000000000.index"
    handle = files.open(path)
    handle.truncate(0)
    handle.append([bytes.fromhex("00000005 00000101 00000006 00000202 00000030 00000303")])
    directory = open_directory(files, "/disk")
    log = directory.logs[log.topic_partition]
    for offset in range(log.log_end_offset):
        part = log.read(offset, 1, 50)
        assert part is not None
        assert records_in(part.read())[0].value == b"%d" % offset


# -- rolling -------------------------------------------------------------------------------------------------


def bases(log: PartitionLog) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_a_segment_is_rolled_before_it_grows_too_large(files: SimulatedFiles) -> None:
    size = len(batch([b"x" * 100]).body)
    log = make(files, segment_bytes=3 * size)
    for _ in range(7):
        append(log, [b"x" * 100])
    assert bases(log) == [0, 3, 6]


def test_a_segment_is_rolled_by_the_time_in_its_records(files: SimulatedFiles) -> None:
    log = make(files, segment_ms=1_000)
    for age_ms in (0, 500, 1_000, 1_001, 1_500):
        append(log, [b"x"], timestamp=NOW_MS + age_ms)
    assert bases(log) == [0, 3]


def test_a_segment_without_timestamps_is_rolled_by_its_age(files: SimulatedFiles) -> None:
    log = make(files, segment_ms=1_000)
    for age_ms in (0, 900, 1_001):
        append(log, [b"x"], timestamp=-1, now_ms=NOW_MS + age_ms)
    assert bases(log) == [0, 2]


def test_jitter_lets_a_segment_roll_earlier(files: SimulatedFiles) -> None:
    log = make(files, segment_ms=1_000_000, segment_jitter_ms=1_000_000)
    log.segments[0].roll_jitter_ms = 999_000
    append(log, [b"x"], timestamp=NOW_MS)
    append(log, [b"x"], timestamp=NOW_MS + 1_001)
    assert bases(log) == [0, 1]
    assert 0 <= log.segments[1].roll_jitter_ms < 1_000_000


def test_a_segment_is_rolled_when_its_index_is_full(files: SimulatedFiles) -> None:
    log = make(files, index_interval_bytes=0, segment_index_bytes=48)
    for _ in range(12):
        append(log, [b"x"])
    assert bases(log) == [0, 5, 10]
    assert all(len(segment.offset_index) <= 4 for segment in log.segments)


def test_a_segment_is_rolled_when_relative_offsets_overflow(files: SimulatedFiles) -> None:
    log = make(files)
    append(log, [b"x"])
    log.segments[0].base_offset -= 2**31 - 1
    append(log, [b"y"])
    assert len(log.segments) == 2


def test_settings_change_while_the_log_is_open(files: SimulatedFiles) -> None:
    log = make(files)
    assert log.durable
    append(log, [b"x" * 100])
    log.set_config(config(segment_bytes=150, flush_messages=2**63 - 1))
    assert not log.durable
    append(log, [b"x" * 100])
    assert bases(log) == [0, 1]


def test_batches_larger_than_a_segment_together_are_split_between_segments(files: SimulatedFiles) -> None:
    log = make(files, segment_bytes=1_000)
    result = log.append([batch([b"x" * 200]) for _ in range(20)], 0, NOW_MS)
    assert (result.first_offset, result.last_offset) == (0, 19)
    assert len(log.segments) > 4
    assert all(segment.size <= 1_000 for segment in log.segments)
    assert len(read_all(log)) == 20


def test_preallocated_space_is_trimmed_when_the_segment_is_sealed(files: SimulatedFiles) -> None:
    directory, log = new_log(files, "/disk", config(preallocate=True, segment_bytes=10_000))
    append(log, [b"x"])
    path = log.segments[0].log.path
    assert files.size(path) == 10_000
    log.roll(NOW_MS)
    assert files.size(path) == log.segments[0].size
    directory.close()
    assert files.size(path.replace("0.log", "1.log")) == 0


# -- timestamps ----------------------------------------------------------------------------------------------


def test_offsets_are_found_by_time_across_segments(files: SimulatedFiles) -> None:
    log = make(files, segment_bytes=400, index_interval_bytes=0)
    stamps = [10, 30, 20, 50, 40, 60, 55, 70]
    for stamp in stamps:
        append(log, [b"a", b"b"], timestamps=[stamp, stamp + 1], epoch=2)
    everything = [(index, stamp) for index, stamp in enumerate(s + add for s in stamps for add in (0, 1))]
    for wanted in range(5, 75):
        expected = next(((*found, 2) for found in everything if found[1] >= wanted), None)
        assert log.offset_for_timestamp(wanted) == expected
    assert log.offset_for_max_timestamp() == (15, 71, 2)
    log.delete_records(8)
    found = log.offset_for_timestamp(0)
    assert found is not None
    assert found.offset == 8


def test_an_empty_log_knows_no_times(files: SimulatedFiles) -> None:
    log = make(files)
    assert log.offset_for_timestamp(0) is None
    assert log.offset_for_max_timestamp() is None


# -- cutting -------------------------------------------------------------------------------------------------


def test_truncation_cuts_whole_batches_and_everything_behind(files: SimulatedFiles) -> None:
    log = make(files, segment_bytes=300)
    for number in range(10):
        log.append([produced(1, 0, number * 2, 2)], number, NOW_MS)
    sync(log)
    log.truncate_to(7, NOW_MS)
    assert (log.log_end_offset, log.synced_offset) == (6, 6)
    assert log.epochs.latest == 2
    assert log.producers.check(produced(1, 0, 6).header) is None
    assert len(read_all(log)) == 6
    assert append(log, [b"next"], epoch=10) == 6
    assert read_all(log)[-1].value == b"next"


def test_truncation_during_a_round_is_not_undone_by_its_end(files: SimulatedFiles) -> None:
    log = make(files)
    for _ in range(10):
        append(log, [b"x"])
    ticket = log.begin_sync()
    assert ticket is not None
    log.truncate_to(5, NOW_MS)
    append(log, [b"y"])
    ticket.run()
    log.finish_sync(ticket)
    assert log.synced_offset == 5
    sync(log)
    assert log.synced_offset == 6


def test_a_log_can_start_over_elsewhere(files: SimulatedFiles) -> None:
    directory, log = new_log(files, "/disk", config(segment_bytes=300))
    for _ in range(10):
        append(log, [b"x" * 50])
    for offset in (1_000, 5, 5):
        directory.restart(log, offset, NOW_MS)
        assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (offset, offset, 0)
        assert append(log, [b"y"]) == offset
        directory.abandon()
        directory = open_directory(files, "/disk", config(segment_bytes=300))
        log = directory.logs[log.topic_partition]
        assert [(record.offset, record.value) for record in read_all(log)] == [(offset, b"y")]


def test_closed_files_are_trimmed_to_what_kafka_expects(files: SimulatedFiles) -> None:
    directory, log = new_log(files, "/disk", config(index_interval_bytes=200))
    for number in range(10):
        append(log, [b"x" * 100], timestamp=NOW_MS + number)
    directory.close()
    size = len(batch([b"x" * 100]).body)
    assert size > HEADER_BYTES
    index = files.read_all("/disk/orders-0/00000000000000000000.index")
    # An entry whenever more than 200 bytes came since the last one: behind every second batch.
    assert index == b"".join(
        offset.to_bytes(4, "big") + (offset * size).to_bytes(4, "big") for offset in (2, 4, 6, 8)
    )
    times = files.read_all("/disk/orders-0/00000000000000000000.timeindex")
    assert times == b"".join(
        (NOW_MS + offset).to_bytes(8, "big") + offset.to_bytes(4, "big") for offset in (2, 4, 6, 8, 9)
    )


def test_the_largest_timestamp_is_known_after_a_truncation_within_an_append(files: SimulatedFiles) -> None:
    directory, log = new_log(files, "/disk", config(index_interval_bytes=100))
    appends = [[0], [1], [2], [30], [20, 40]]  # the third and the last get index entries
    for timestamps in appends:
        log.append([batch([b"a"], timestamp=NOW_MS + each) for each in timestamps], 0, NOW_MS)
    assert len(log.segments[0].offset_index) == 2
    directory.truncate(log, 5, NOW_MS)
    for _ in range(2):
        found = log.offset_for_max_timestamp()
        assert found is not None
        assert (found.offset, found.timestamp) == (3, NOW_MS + 30)
        directory.close()
        directory = open_directory(files, "/disk")
        log = directory.logs[PARTITION]
