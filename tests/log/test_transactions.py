"""Transactions in a log: what read_committed may see, after crashes, truncation and power cuts too."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from faults.power_cut import SimulatedFiles
from log.building import NOW_MS, PARTITION, TOPIC_ID, config, new_log, open_directory, produced, sync
from ottla.log.directory import LogDirectory
from ottla.log.partition_log import PartitionLog
from ottla.log.transaction_markers import build_marker
from ottla.log.txn_index import AbortedTransaction
from ottla.model.errors import ErrorCode, Refused
from ottla.records.batch import TRANSACTIONAL, read_header
from ottla.replica.partition import Partition

_DISK = "/disk/logs"
_COMMIT, _ABORT = True, False


def write(log: PartitionLog, producer_id: int, sequence: int, count: int = 1) -> int:
    made = produced(producer_id, 0, sequence, count, flags=TRANSACTIONAL)
    assert log.producers.check(made.header) is None
    return log.append([made], 0, NOW_MS).first_offset


def end(log: PartitionLog, producer_id: int, is_commit: bool, coordinator_epoch: int = 0) -> int:
    log.producers.check_marker(producer_id, 0, coordinator_epoch)
    marker = build_marker(producer_id, 0, is_commit, coordinator_epoch, NOW_MS)
    return log.append([marker], 0, NOW_MS).last_offset


def partition_of(log: PartitionLog) -> Partition:
    return Partition(PARTITION.topic, TOPIC_ID, PARTITION.partition, log, 0, lambda *_: None)


def committed_offsets(log: PartitionLog, end_offset: int, bytes_max: int = 1 << 20) -> list[int]:
    """What a read_committed consumer keeps, by the rules of the clients."""
    kept: list[int] = []
    offset = log.log_start_offset
    while (part := log.read(offset, bytes_max, end_offset)) is not None:
        waiting = sorted(log.aborted_transactions(offset, part), key=lambda each: each.first_offset)
        aborting: set[int] = set()
        data, position = part.read(), 0
        while len(data) - position >= 61 and read_header(data, position).size <= len(data) - position:
            header = read_header(data, position)
            while waiting and waiting[0].first_offset <= header.last_offset:
                aborting.add(waiting.pop(0).producer_id)
            if header.is_control:
                aborting.discard(header.producer_id)
            elif header.producer_id not in aborting:
                kept += range(max(offset, header.base_offset), header.next_offset)
            position += header.size
            following = header.next_offset
        offset = following
    return kept


@pytest.fixture
def files() -> SimulatedFiles:
    return SimulatedFiles()


def test_the_last_stable_offset_stops_at_the_first_open_transaction(files: SimulatedFiles) -> None:
    _, log = new_log(files, _DISK)
    partition = partition_of(log)
    write(log, 1, 0, count=2)
    write(log, 2, 0)
    sync(log)
    partition.advance()
    assert (partition.last_stable_offset, partition.high_watermark) == (0, 3)
    end(log, 1, _COMMIT)
    assert partition.last_stable_offset == 0, "the marker is not durable yet"
    sync(log)
    partition.advance()
    assert (partition.last_stable_offset, partition.high_watermark) == (2, 4)
    end(log, 2, _ABORT)
    sync(log)
    partition.advance()
    assert partition.last_stable_offset == partition.high_watermark == 5


def test_aborted_transactions_are_told_to_those_who_read_them(files: SimulatedFiles) -> None:
    _, log = new_log(files, _DISK)
    write(log, 1, 0)  # 0
    write(log, 2, 0)  # 1
    end(log, 1, _ABORT)  # 2
    write(log, 1, 1)  # 3
    end(log, 2, _ABORT)  # 4
    end(log, 1, _COMMIT)  # 5
    whole = log.read(0, 1 << 20, log.log_end_offset)
    assert whole is not None
    first, second = AbortedTransaction(1, 0, 2, 1), AbortedTransaction(2, 1, 4, 3)
    assert log.aborted_transactions(0, whole) == [first, second]
    assert committed_offsets(log, log.log_end_offset) == [3]
    behind = log.read(3, 1 << 20, log.log_end_offset)
    assert behind is not None
    assert log.aborted_transactions(3, behind) == [second]


def test_a_transaction_over_segments_is_left_out_of_all_of_them(files: SimulatedFiles) -> None:
    _, log = new_log(files, _DISK, config(segment_bytes=300))
    for sequence in range(10):
        write(log, 1, sequence)
        write(log, 2, sequence)
    assert len(log.segments) > 3
    end(log, 1, _ABORT)
    end(log, 2, _COMMIT)
    assert committed_offsets(log, log.log_end_offset) == list(range(1, 20, 2))


def test_a_marker_of_the_past_is_refused(files: SimulatedFiles) -> None:
    _, log = new_log(files, _DISK)
    write(log, 1, 0)
    end(log, 1, _COMMIT, coordinator_epoch=3)
    with pytest.raises(Refused) as fenced:
        end(log, 1, _COMMIT, coordinator_epoch=2)
    assert fenced.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    with pytest.raises(Refused) as old:
        log.producers.check_marker(1, -1, 3)
    assert old.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_abort_that_the_full_disk_did_not_take_can_be_tried_again(files: SimulatedFiles) -> None:
    directory, log = new_log(files, _DISK)
    write(log, 1, 0)
    sync(log)
    for spare_bytes in range(120):
        files.capacity_bytes = spare_bytes
        with suppress(OSError):
            end(log, 1, _ABORT)
            break
        assert log.log_end_offset == 1
        files.capacity_bytes = None
        assert directory.ballast.maybe_lay_by()
    assert committed_offsets(log, log.log_end_offset) == []
    assert len(log.segments[0].txn_index) == 1


def test_truncation_takes_the_ends_of_transactions_back(files: SimulatedFiles) -> None:
    directory, log = new_log(files, _DISK)
    write(log, 1, 0)
    end(log, 1, _ABORT)
    write(log, 1, 1)
    marker_offset = end(log, 1, _ABORT)
    sync(log)
    directory.truncate(log, marker_offset, NOW_MS)
    assert log.producers.first_unstable_offset(marker_offset) == 2
    assert len(log.segments[0].txn_index) == 1
    end(log, 1, _COMMIT)
    assert committed_offsets(log, log.log_end_offset) == [2]


class _Modelled:
    """Random transactions of a few producers, and which offsets were committed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.topic = config(
            segment_bytes=self.random.choice((300, 2_000)), index_interval_bytes=self.random.choice((0, 200))
        )
        self.sequences = dict.fromkeys(range(4), 0)
        self.open: dict[int, list[int]] = {}
        self.ended: list[tuple[int, list[int]]] = []  # marker, what it committed
        self.synced = 0

    def step(self, directory: LogDirectory, log: PartitionLog) -> None:
        producer_id = self.random.randrange(4)
        chance = self.random.random()
        if chance < 0.6:
            count = self.random.randint(1, 3)
            first = write(log, producer_id, self.sequences[producer_id], count)
            self.sequences[producer_id] += count
            self.open.setdefault(producer_id, []).extend(range(first, first + count))
        elif chance < 0.85 and producer_id in self.open:
            is_commit = self.random.random() < 0.5
            offsets = self.open.pop(producer_id)
            self.ended.append((end(log, producer_id, is_commit), offsets if is_commit else []))
        elif chance < 0.95:
            sync(log)
            self.synced = log.log_end_offset
        else:
            directory.checkpoints.begin({PARTITION: self.synced}).run()

    def committed(self, end_offset: int) -> list[int]:
        return sorted(offset for marker, offsets in self.ended if marker < end_offset for offset in offsets)


def _check(model: _Modelled, log: PartitionLog) -> None:
    partition = partition_of(log)
    partition.advance()
    stable = partition.last_stable_offset
    expected = [offset for offset in model.committed(log.log_end_offset) if offset < stable]
    for bytes_max in (1, 300, 1 << 20):
        assert committed_offsets(log, stable, bytes_max) == expected


@pytest.mark.parametrize("seed", range(40))
def test_only_committed_records_are_read_after_clean_stops_crashes_and_power_cuts(seed: int) -> None:
    model = _Modelled(seed)
    files = SimulatedFiles()
    directory, log = new_log(files, _DISK, model.topic)
    for _ in range(150):
        model.step(directory, log)
    kind = seed % 3
    if kind == 0:
        directory.close()
    elif kind == 1:
        directory.abandon()
    else:
        files = files.cut(seed)
    directory = open_directory(files, _DISK, model.topic)
    found = directory.logs[PARTITION]
    assert found.log_end_offset >= model.synced
    _check(model, found)


def test_retention_takes_the_records_of_an_open_transaction_and_it_ends_as_any_other() -> None:
    _, log = new_log(SimulatedFiles(), _DISK, config(retention_ms=0))
    write(log, 7, 0)
    log.roll(NOW_MS)
    write(log, 8, 0)
    end(log, 8, _COMMIT)
    log.roll(NOW_MS)
    sync(log)
    partition = partition_of(log)
    partition.advance()
    assert (partition.last_stable_offset, partition.high_watermark) == (0, 3)
    assert log.apply_retention(NOW_MS + 1, partition.high_watermark)
    assert (log.log_start_offset, partition.last_stable_offset) == (3, 3)
    write(log, 7, 1)
    end(log, 7, _ABORT)
    sync(log)
    partition.advance()
    assert partition.last_stable_offset == partition.high_watermark == 5
    assert committed_offsets(log, 5) == []
