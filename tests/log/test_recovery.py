"""After a crash: the log ends behind the last whole batch, and everything beside it is rebuilt from it."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Any

import pytest

from faults.power_cut import PowerCut, SimulatedFiles
from log.building import (
    CLUSTER_ID,
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
    sync,
)
from ottla.log.partition_log import PartitionLog
from ottla.model.errors import CorruptData
from ottla.model.topics import TopicPartition
from ottla.records.batch import CONTROL, TRANSACTIONAL, CheckedBatch, read_header
from ottla.records.content import Record, build_batch

FIRST = "/disk/orders-0/00000000000000000000"


def written(count: int = 10, synced: int = 0, **changes: Any) -> tuple[SimulatedFiles, PartitionLog]:
    """A log of `count` records, each a batch, that crashed after the first `synced` were checkpointed."""
    files = SimulatedFiles()
    directory, log = new_log(files, "/disk", config(**changes))
    for number in range(count):
        append(log, [b"%d" % number], epoch=number // 4, timestamp=NOW_MS + number)
        if number + 1 == synced:
            sync(log)
            directory.checkpoints.begin().run()
    directory.abandon()
    return files, log


def reopen(files: SimulatedFiles, **changes: Any) -> PartitionLog:
    directory = open_directory(files, "/disk", config(**changes))
    assert not directory.failed
    return directory.logs[PARTITION]


def damage(files: SimulatedFiles, path: str, change: Callable[[bytearray], None]) -> None:
    data = bytearray(files.read_all(path))
    change(data)
    handle = files.open(path)
    handle.truncate(0)
    handle.append([data])


def cut(size: int) -> Callable[[bytearray], None]:
    def change(data: bytearray) -> None:
        del data[size:]

    return change


def flip(position: int) -> Callable[[bytearray], None]:
    def change(data: bytearray) -> None:
        data[position] ^= 0x40

    return change


def test_a_tail_torn_at_any_byte_is_cut_at_the_last_whole_batch() -> None:
    files, log = written(4)
    positions = [log.segments[0].position_of(offset) for offset in range(4)] + [log.size_bytes]
    intact = files.read_all(FIRST + ".log")
    for size in range(positions[1], positions[4], 7):
        damage(files, FIRST + ".log", lambda data, size=size: data.__setitem__(slice(None), intact[:size]))
        log = reopen(files)
        whole = sum(position <= size for position in positions[1:])
        assert log.log_end_offset == log.synced_offset == whole
        assert files.size(FIRST + ".log") == positions[whole]
        assert [record.value for record in read_all(log)] == [b"%d" % number for number in range(whole)]
        files.locked.clear()


@pytest.mark.parametrize("seed", range(30))
def test_damage_behind_the_recovery_point_ends_the_log_there(seed: int) -> None:
    files, log = written(10, synced=4)
    start = log.segments[0].position_of(4)
    position = random.Random(seed).randrange(start, log.size_bytes)
    expected = max(offset for offset in range(4, 10) if log.segments[0].position_of(offset) <= position)
    damage(files, FIRST + ".log", flip(position))
    found = reopen(files).log_end_offset
    # Offset and leader epoch of a batch are not under its CRC; a change there may pass if it stays in order.
    assert found == expected or position - log.segments[0].position_of(expected) < 16


def test_zeros_behind_the_last_batch_are_cut_off() -> None:
    files, log = written(3)
    damage(files, FIRST + ".log", lambda data: data.extend(bytes(100_000)))
    assert reopen(files).log_end_offset == 3
    assert files.size(FIRST + ".log") == log.size_bytes


def test_a_batch_larger_than_one_read_is_recovered() -> None:
    files = SimulatedFiles()
    directory, log = new_log(files, "/disk")
    append(log, [b"small"])
    append(log, [b"x" * 9_000_000])
    append(log, [b"small"])
    directory.abandon()
    assert reopen(files).log_end_offset == 3
    damage(files, FIRST + ".log", cut(8_000_000))
    files.locked.clear()
    # The synced offset is 3 by now, and a batch below it is gone.
    assert isinstance(open_directory(files, "/disk").failed[PARTITION], CorruptData)


def test_segments_behind_a_torn_one_are_dropped() -> None:
    files, log = written(20, synced=2, segment_bytes=300)
    bases = [segment.base_offset for segment in log.segments]
    damage(files, f"/disk/orders-0/{bases[2]:020d}.log", flip(30))
    log = reopen(files, segment_bytes=300)
    assert log.log_end_offset == bases[2]
    assert [segment.base_offset for segment in log.segments] == bases[:3]
    names = [name for name, _ in files.list_directory("/disk/orders-0")]
    assert not [name for name in names if name.startswith(f"{bases[3]:020d}")]
    assert append(log, [b"next"]) == bases[2]


def test_a_segment_that_lost_its_tail_at_a_batch_boundary_ends_the_log() -> None:
    files, log = written(20, synced=2, segment_bytes=300)
    third = log.segments[2]
    damage(files, third.log.path, cut(third.position_of(third.base_offset + 1)))
    assert reopen(files, segment_bytes=300).log_end_offset == third.base_offset + 1


def test_a_compacted_log_that_is_not_synced_has_no_gaps_either() -> None:
    files, log = written(20, synced=2, segment_bytes=300)
    third = log.segments[2]
    damage(files, third.log.path, cut(third.position_of(third.base_offset + 1)))
    log = reopen(files, segment_bytes=300, cleanup_compact=True)
    assert log.log_end_offset == third.base_offset + 1


def test_a_compacted_log_of_kafka_may_have_gaps_between_segments() -> None:
    files, log = written(20, synced=2, segment_bytes=300)
    third = log.segments[2]
    damage(files, third.log.path, cut(third.position_of(third.base_offset + 1)))
    kafkas = f"version=0\nbroker.id=1\ncluster.id={CLUSTER_ID}\n"
    files.write_atomically("/disk/meta.properties", kafkas.encode())
    log = reopen(files, segment_bytes=300, cleanup_compact=True)
    assert log.log_end_offset == 20
    gap = range(third.base_offset + 1, log.segments[3].base_offset)
    assert gap
    for offset in gap:
        part = log.read(offset, 10_000, 20)
        assert part is not None
        assert records_in(part.read())[0].offset == gap.stop


def test_damage_below_the_recovery_point_takes_only_this_partition_offline() -> None:
    files = SimulatedFiles()
    directory, log = new_log(files, "/disk")
    other = directory.create(TopicPartition("other", 0), directory.topic_ids[PARTITION], config(), NOW_MS)
    for _ in range(5):
        append(log, [b"x"])
        append(other, [b"y"])
    sync(log, other)
    directory.checkpoints.begin().run()
    directory.abandon()
    damage(files, FIRST + ".log", cut(100))
    directory = open_directory(files, "/disk")
    failure = directory.failed[PARTITION]
    assert isinstance(failure, CorruptData)
    assert "synced up to 5" in str(failure)
    assert directory.logs[TopicPartition("other", 0)].log_end_offset == 5
    assert files.size(FIRST + ".log") == 100, "nothing is cut away"
    directory.close()
    directory = open_directory(files, "/disk")
    assert not directory.was_clean, "the damaged log has not been looked at"
    assert PARTITION in directory.failed


def test_lost_segments_of_a_synced_log_are_noticed() -> None:
    files, _ = written(10, synced=10)
    files.remove(FIRST + ".log")
    assert isinstance(open_directory(files, "/disk").failed[PARTITION], CorruptData)


@pytest.mark.parametrize("kept", ["nothing", "garbage", "half", "holes"])
def test_indexes_are_rebuilt_whatever_is_left_of_them(kept: str) -> None:
    changes: dict[str, Any] = {"index_interval_bytes": 100}
    files, _ = written(200, synced=150, **changes)
    reference = reopen(files, **changes).segments[0]
    offset_entries, time_entries = reference.offset_index.entries(), reference.time_index.entries()
    files.locked.clear()
    for suffix in (".index", ".timeindex"):
        match kept:
            case "nothing":
                files.remove(FIRST + suffix)
            case "garbage":
                damage(files, FIRST + suffix, lambda data: data.__setitem__(slice(None), b"\x01\x02" * 333))
            case "half":
                damage(files, FIRST + suffix, lambda data: data.__delitem__(slice(len(data) // 2 + 3, None)))
            case "holes":
                damage(files, FIRST + suffix, lambda data: data.__setitem__(slice(96, 192), bytes(96)))
    log = reopen(files, **changes)
    segment = log.segments[0]
    assert segment.offset_index.entries() == offset_entries
    assert set(segment.time_index.entries()) <= set(time_entries)
    assert len(read_all(log, bytes_max=1)) == 200
    found = log.offset_for_timestamp(NOW_MS + 77)
    assert found is not None
    assert found.offset == 77


def test_only_what_follows_the_recovery_point_is_checked() -> None:
    files = SimulatedFiles()
    directory, log = new_log(files, "/disk")
    for number in range(300):
        append(log, [b"x" * 1_000])
        if number == 280:
            sync(log)
            log.segments[0].write_indexes()
            directory.checkpoints.begin().run()
    directory.abandon()
    content = files._inode(log.segments[0].log.path).content
    batch_bytes = len(content) // 300
    content[270 * batch_bytes + 500] ^= 1  # nobody looks there
    directory = open_directory(files, "/disk")
    assert directory.logs[PARTITION].log_end_offset == 300
    directory.abandon()
    content[290 * batch_bytes + 500] ^= 1
    files.write_atomically("/disk/recovery-point-offset-checkpoint", b"0\n1\norders 0 281\n")
    assert open_directory(files, "/disk").logs[PARTITION].log_end_offset == 290


def test_after_a_clean_stop_nothing_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    files = SimulatedFiles()
    directory, log = new_log(files, "/disk", config(segment_bytes=20_000))
    for _ in range(300):
        append(log, [b"x" * 1_000])
    directory.close()
    read: list[int] = []
    real = SimulatedFiles.step

    def step(self: SimulatedFiles, operation: str, name: str, *, counts: bool = True) -> None:
        if operation == "pread" and name.endswith(".log"):
            read.append(1)
        real(self, operation, name, counts=counts)

    monkeypatch.setattr(SimulatedFiles, "step", step)
    log = reopen(files, segment_bytes=20_000)
    assert log.log_end_offset == log.synced_offset == 300
    assert len(read) <= 2, "only the end of the last segment is looked at"


def test_epochs_and_producers_are_rebuilt() -> None:
    files = SimulatedFiles()
    directory, log = new_log(files, "/disk", config(segment_bytes=300))
    for number in range(20):
        log.append([produced(number % 3, 0, number // 3)], number // 5, NOW_MS)
    epochs, producers = log.epochs.entries(), log.producers.entries()
    directory.abandon()
    log = reopen(files, segment_bytes=300)
    assert log.epochs.entries() == epochs
    restored = log.producers.entries()
    assert {key: entry.batches[-1] for key, entry in restored.items()} == {
        key: entry.batches[-1] for key, entry in producers.items()
    }
    assert log.producers.check(produced(1, 0, 6).header) is not None, "a retry is known again"


@pytest.mark.parametrize("kind", [0, 1])
def test_transactions_are_rebuilt_from_their_markers(kind: int) -> None:
    files = SimulatedFiles()
    directory, log = new_log(files, "/disk")
    log.append([produced(1, 0, 0, flags=TRANSACTIONAL), produced(2, 0, 0, flags=TRANSACTIONAL)], 0, NOW_MS)
    record = Record(0, NOW_MS, struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 7))
    data = memoryview(
        build_batch(
            [record], flags=TRANSACTIONAL | CONTROL, producer_id=1, producer_epoch=0, base_sequence=-1
        )
    )
    log.append([CheckedBatch(read_header(data), data)], 0, NOW_MS)
    live = log.producers.entries()
    assert log.producers.first_unstable_offset(100) == 1
    directory.abandon()
    log = reopen(files)
    assert log.producers.entries() == live
    assert log.producers.first_unstable_offset(100) == 1
    entry = log.producers.get(1)
    assert entry is not None
    assert (entry.coordinator_epoch, entry.txn_first_offset) == (7, None)


def test_a_damaged_producer_snapshot_costs_only_time() -> None:
    files = SimulatedFiles()
    directory, log = new_log(files, "/disk", config(segment_bytes=300))
    for number in range(20):
        log.append([produced(7, 0, number)], 0, NOW_MS)
    directory.close()
    for name, _ in files.list_directory("/disk/orders-0"):
        if name.endswith(".snapshot"):
            damage(files, f"/disk/orders-0/{name}", flip(5))
    entry = reopen(files, segment_bytes=300).producers.get(7)
    assert entry is not None
    assert [appended.last_sequence for appended in entry.batches] == [15, 16, 17, 18, 19]


def test_leftovers_of_deletion_and_orphaned_indexes_are_removed() -> None:
    files, _ = written(3)
    for name in ("00000000000000000099.index", "00000000000000000000.log.deleted", "x.tmp", "1.log.cleaned"):
        files.create(f"/disk/orders-0/{name}")
    reopen(files)
    names = {name for name, _ in files.list_directory("/disk/orders-0")}
    assert not {"00000000000000000099.index", "00000000000000000000.log.deleted", "x.tmp"} & names


def test_recovery_may_be_interrupted_at_any_step() -> None:
    def torn() -> SimulatedFiles:
        files, log = written(50, synced=10, segment_bytes=400, index_interval_bytes=50)
        damage(files, log.segments[-3].log.path, flip(100))
        return files

    expected = [
        record.value for record in read_all(reopen(torn(), segment_bytes=400, index_interval_bytes=50))
    ]
    assert 10 < len(expected) < 50
    for step in range(1, 1_000):
        files = torn()
        files.stop_at = files.operations + step
        try:
            reopen(files, segment_bytes=400, index_interval_bytes=50)
            return
        except PowerCut:
            files.stop_at = None
            files.locked.clear()
        log = reopen(files, segment_bytes=400, index_interval_bytes=50)
        assert [record.value for record in read_all(log)] == expected
    pytest.fail("recovery never came to its end")


def test_what_the_time_index_knows_of_earlier_batches_is_kept() -> None:
    """An entry names the largest timestamp of a whole append, which may lie behind its entry of offsets."""
    files = SimulatedFiles()
    directory, log = new_log(files, "/disk", config(index_interval_bytes=250))
    append(log, [b"x" * 100], timestamp=NOW_MS + 142)
    append(log, [b"x" * 100], timestamp=NOW_MS + 133)
    log.append([batch([b"x" * 300], timestamp=NOW_MS + after) for after in (115, 116, 178)], 0, NOW_MS)
    log.segments[0].write_indexes()
    sync(log)
    directory.checkpoints.begin().run()
    directory.abandon()
    found = reopen(files, index_interval_bytes=250).offset_for_timestamp(NOW_MS + 120)
    assert found is not None
    assert found[:2] == (0, NOW_MS + 142)


def test_index_entries_of_batches_that_were_lost_do_not_come_back() -> None:
    """Among those of new batches they would lead to the middle of one."""
    files, log = written(10, synced=4, index_interval_bytes=0)
    log.segments[0].write_indexes()
    position = log.segments[0].position_of(4)
    for suffix in (".log", ".index", ".timeindex"):
        files.open(FIRST + suffix).sync()  # of the log only the beginning
    damage(files, FIRST + ".log", cut(position))
    assert files.size(FIRST + ".index") > 4 * 8
    reopen(files, index_interval_bytes=0)
    for seed in range(10):
        assert files.cut(seed).size(FIRST + ".index") <= 3 * 8


def test_a_position_inside_of_a_batch_is_not_taken_for_a_message_of_an_old_format() -> None:
    files = SimulatedFiles()
    directory, log = new_log(files, "/disk", config(index_interval_bytes=0))
    message = struct.pack(">qiIbbii", 1, 14, 0, 0, 0, -1, 0)  # format 0, at offset 1, of a wrong checksum
    for _ in range(3):
        append(log, [b"before" + message])
    sync(log)
    directory.checkpoints.begin().run()
    directory.abandon()
    inside = files.read_all(FIRST + ".log").rindex(message)
    files.open(FIRST + ".index").append([struct.pack(">ii", 1, inside)])
    files.open(FIRST + ".timeindex").append([struct.pack(">qi", NOW_MS, 1)])
    log = reopen(files, index_interval_bytes=0)
    assert (log.log_end_offset, len(read_all(log))) == (3, 3)


def test_a_topic_whose_creation_was_cut_short_survives_a_start_that_is_cut_short_too() -> None:
    files, _ = written(3)
    damage(files, "/disk/orders-0/partition.metadata", cut(0))
    directory = open_directory(files, "/disk")
    assert PARTITION not in directory.topic_ids
    directory.abandon()  # before the topic's id was written again
    assert not open_directory(files, "/disk").failed
