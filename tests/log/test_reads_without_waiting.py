"""Reading that never waits for the disk: it says what is missing, and goes on when a worker has read it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from faults.cold_disk import ColdFiles
from log.building import NOW_MS, append, config, new_log, open_directory, records_in, sync
from ottla.log.files import NotResident
from ottla.log.partition_log import PartitionLog
from ottla.log.system_files import SystemFiles

T = TypeVar("T")

BATCHES = 600
ROUNDS_MAX = 30  # two indexes, some headers and a batch; indexes and a header of every segment passed by


@pytest.fixture
def disk() -> ColdFiles:
    return ColdFiles()


@pytest.fixture
def log(tmp_path: Path, disk: ColdFiles) -> PartitionLog:
    """Several segments, loaded anew, so that nothing is remembered from writing them."""
    topic = config(segment_bytes=200_000, index_interval_bytes=1_000)
    directory, written = new_log(disk, str(tmp_path), topic)
    for number in range(BATCHES):
        append(written, [b"x" * 900], timestamp=NOW_MS + 10 * number)
    sync(written)
    directory.close({})
    reopened = open_directory(disk, str(tmp_path), topic)
    disk.chill()
    return next(iter(reopened.logs.values()))


def with_worker(log: PartitionLog, read: Callable[[], T]) -> tuple[T, int]:
    """What `read` gives, and how often something had to be read for it first."""
    for rounds in range(ROUNDS_MAX):
        try:
            with log.without_waiting:
                return read(), rounds
        except NotResident as cold:
            cold.file_range.read()
    raise AssertionError("it does not come to an end")


def test_a_read_of_cold_data_names_what_it_misses(log: PartitionLog, disk: ColdFiles) -> None:
    with pytest.raises(NotResident), log.without_waiting:
        log.read(100, 1_000, BATCHES)
    assert disk.waits == []


@pytest.mark.parametrize("offset", [0, 1, 250, 599])
def test_a_read_succeeds_when_what_it_missed_was_read(log: PartitionLog, offset: int) -> None:
    found, rounds = with_worker(log, lambda: log.read(offset, 3_000, BATCHES))
    assert found is not None
    assert records_in(found.read())[0].offset == offset
    assert rounds > 0
    assert with_worker(log, lambda: log.read(offset, 3_000, BATCHES))[1] == 0


@pytest.mark.parametrize("number", [0, 250, 599])
def test_a_time_is_found_without_waiting(log: PartitionLog, number: int) -> None:
    found, rounds = with_worker(log, lambda: log.offset_for_timestamp(NOW_MS + 10 * number))
    assert found is not None
    assert found.offset == number
    assert rounds > 0


def test_the_newest_time_is_found_without_waiting(log: PartitionLog) -> None:
    found, _ = with_worker(log, log.offset_for_max_timestamp)
    assert found is not None
    assert found.offset == BATCHES - 1


def test_waiting_is_the_rule_outside_of_the_block(log: PartitionLog, disk: ColdFiles) -> None:
    with pytest.raises(NotResident), log.without_waiting:
        log.read(100, 1_000, BATCHES)
    assert log.read(100, 1_000, BATCHES) is not None
    assert disk.waits


def test_real_files_are_read_at_once_when_they_are_in_memory(tmp_path: Path) -> None:
    handle = SystemFiles().create(str(tmp_path / "data"))
    handle.append([bytes(range(256)) * 40])
    assert handle.pread_now(100, 50) == handle.pread(100, 50)
    assert handle.pread_now(1_000, 10_000) == handle.pread(1_000, 10_000)  # beyond the end
    assert handle.pread_now(10, 20_000) == b""
    handle.sync()
    os.posix_fadvise(handle.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    assert handle.pread_now(100, 50) in (None, handle.pread(100, 50))  # not every filesystem forgets
