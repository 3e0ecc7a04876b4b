"""Old segments go by time, size and DeleteRecords, late enough and never too early."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from faults.power_cut import SimulatedFiles
from log.building import NOW_MS, PARTITION, append, config, new_log, open_directory, read_all, sync
from ottla.log.directory import LogDirectory
from ottla.log.partition_log import PartitionLog
from ottla.log.system_files import SystemFiles

DAY_MS = 86_400_000


def filled(**changes: Any) -> tuple[SimulatedFiles, LogDirectory, PartitionLog]:
    """Ten segments of one record each, a day apart, the last one at NOW_MS; the eleventh is empty."""
    files = SimulatedFiles()
    settings = config(segment_bytes=200, **{"retention_ms": -1, "retention_bytes": -1, **changes})
    directory, log = new_log(files, "/disk", settings)
    for number in range(10):
        append(log, [b"x" * 100], timestamp=NOW_MS - (9 - number) * DAY_MS)
        log.roll(NOW_MS)
    sync(log)
    return files, directory, log


def test_segments_go_when_their_newest_record_is_too_old() -> None:
    _, _, log = filled(retention_ms=3 * DAY_MS)
    assert log.apply_retention(NOW_MS, 10)
    assert log.log_start_offset == 6
    assert not log.apply_retention(NOW_MS, 10)


def test_segments_go_when_the_log_is_too_large() -> None:
    _, _, log = filled(retention_bytes=3 * 170 + 1)
    assert log.segments[0].size == 170
    log.apply_retention(NOW_MS, 10)
    assert log.log_start_offset == 6


def test_nothing_goes_without_a_limit_or_with_compaction_only() -> None:
    for changes in ({}, {"retention_ms": 0, "retention_bytes": 0, "cleanup_delete": False}):
        _, _, log = filled(**changes)
        assert not log.apply_retention(NOW_MS + 100 * DAY_MS, 10)


@pytest.mark.parametrize("high_watermark", [0, 4, 5, 10])
def test_nothing_goes_that_is_not_below_the_high_watermark(high_watermark: int) -> None:
    _, _, log = filled(retention_ms=0)
    log.apply_retention(NOW_MS + 1, high_watermark)
    assert log.log_start_offset == high_watermark


def test_the_active_segment_is_rolled_when_everything_has_expired() -> None:
    files = SimulatedFiles()
    directory, log = new_log(files, "/disk", config(retention_ms=1_000))
    append(log, [b"x"])
    sync(log)
    log.apply_retention(NOW_MS + 1_001, 1)
    assert (log.log_start_offset, log.log_end_offset) == (1, 1)
    directory.checkpoints.begin().run()
    directory.drop_expired(NOW_MS)
    assert [segment.base_offset for segment in log.segments] == [1]
    assert append(log, [b"y"]) == 1


def test_records_without_timestamps_expire_by_the_age_of_their_file() -> None:
    files = SimulatedFiles()
    _, log = new_log(files, "/disk", config(retention_ms=1_000))
    append(log, [b"x"], timestamp=-1)
    log.apply_retention(NOW_MS + 1_000, 1)
    assert log.log_start_offset == 0
    log.apply_retention(NOW_MS + 1_001, 1)
    assert log.log_start_offset == 1


def test_files_go_only_after_a_checkpoint_holds_the_new_start_and_after_the_delay() -> None:
    files, directory, log = filled()
    log.delete_records(5)
    first = "/disk/orders-0/00000000000000000000.log"
    directory.drop_expired(NOW_MS)
    assert files.exists(first)
    checkpoint = directory.checkpoints.begin()
    directory.drop_expired(NOW_MS)
    assert files.exists(first), "the checkpoint is not written yet"
    checkpoint.run()
    directory.drop_expired(NOW_MS)
    assert not files.exists(first)
    assert files.exists(first + ".deleted")
    assert log.first_base_offset == 5
    assert directory.take_due_deletions(NOW_MS + 59_999) is None
    removal = directory.take_due_deletions(NOW_MS + 60_000)
    assert removal is not None
    removal.run()
    names = [name for name, _ in files.list_directory("/disk/orders-0")]
    assert [name for name in names if name.endswith(".log")] == [f"{base:020d}.log" for base in range(5, 11)]
    assert not [name for name in names if name.endswith(".deleted")]
    assert min(name for name in names if name.endswith(".snapshot")) == f"{5:020d}.snapshot"


def test_deleted_records_stay_deleted_after_a_clean_stop() -> None:
    files, directory, log = filled()
    log.delete_records(5)
    directory.close()
    directory = open_directory(files, "/disk")
    log = directory.logs[PARTITION]
    assert (log.log_start_offset, log.first_base_offset) == (5, 5)
    assert len(read_all(log)) == 5


def test_a_start_within_a_segment_keeps_the_segment() -> None:
    files = SimulatedFiles()
    directory, log = new_log(files, "/disk")
    append(log, [b"a", b"b", b"c"])
    log.delete_records(2)
    directory.close()
    directory = open_directory(files, "/disk")
    log = directory.logs[PARTITION]
    assert [record.offset for record in read_all(log)] == [2]
    assert log.epochs.entries() == ((0, 2),)


@pytest.mark.skipif(sys.platform != "linux", reason="open files are looked up in /proc")
def test_the_space_of_dropped_segments_is_given_back(tmp_path: Path) -> None:
    """A file that is removed but open keeps its blocks."""
    directory, log = new_log(SystemFiles(), str(tmp_path / "disk"), config(segment_bytes=2_000))
    for _ in range(10):
        append(log, [b"x" * 900])
    sync(log)
    log.delete_records(9)
    directory.checkpoints.begin().run()
    removal = directory.take_due_deletions(NOW_MS)
    assert removal is None
    removal = directory.take_due_deletions(NOW_MS + log.config.file_delete_delay_ms)
    assert removal is not None
    removal.run()
    links = [os.readlink(entry) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
    assert not [link for link in links if link.endswith("(deleted)") and str(tmp_path) in link]
    directory.abandon()
