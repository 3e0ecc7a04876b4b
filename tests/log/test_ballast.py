"""On a full disk what frees space still fits, and appends wait until there is room."""

from __future__ import annotations

import errno

import pytest

from faults.power_cut import SimulatedFiles
from log.building import (
    BALLAST_BYTES,
    NOW_MS,
    PARTITION,
    append,
    config,
    new_log,
    open_directory,
    read_all,
    sync,
)
from ottla.log.ballast import Ballast

FILE = "/disk/.ottla_ballast"


def test_retention_frees_a_full_disk() -> None:
    files = SimulatedFiles()
    directory, log = new_log(files, "/disk", config(segment_bytes=2_000, retention_bytes=3_000))
    for _ in range(10):
        append(log, [b"x" * 900])
    sync(log)
    files.capacity_bytes = 0
    with pytest.raises(OSError, match="No space left"):
        append(log, [b"x" * 900])
    assert directory.ballast.is_spent
    assert not files.exists(FILE)
    assert log.apply_retention(NOW_MS, log.log_end_offset)
    directory.checkpoints.begin_log_starts().run()
    removal = directory.take_due_deletions(NOW_MS)  # at once: file.delete.delay.ms is for disks with room
    assert removal is not None
    removal.run()
    assert len(read_all(log)) == log.log_end_offset - log.log_start_offset < 10
    with pytest.raises(OSError, match="the disk is full; make room"):
        append(log, [b"y"])
    files.capacity_bytes = 3 * BALLAST_BYTES
    assert directory.ballast.maybe_lay_by()
    assert files.size(FILE) == BALLAST_BYTES
    assert append(log, [b"y"]) == 10


def test_a_start_on_a_full_disk_reads_what_is_there_and_refuses_writes() -> None:
    files = SimulatedFiles()
    directory, log = new_log(files, "/disk")
    append(log, [b"x"], epoch=1)
    directory.abandon()  # a crash: the start writes epochs and checkpoints
    files.capacity_bytes = 0
    directory = open_directory(files, "/disk")
    log = directory.logs[PARTITION]
    assert [record.value for record in read_all(log)] == [b"x"]
    with pytest.raises(OSError, match="the disk is full"):
        append(log, [b"y"], epoch=1)


def test_a_disk_that_is_too_full_for_the_ballast_takes_no_writes() -> None:
    files = SimulatedFiles()
    files.capacity_bytes = BALLAST_BYTES // 2
    files.make_directory("/disk")
    ballast = Ballast(files, "/disk", BALLAST_BYTES)
    assert ballast.is_spent
    assert files.capacity_bytes == BALLAST_BYTES // 2
    with pytest.raises(OSError, match="the disk is full") as refused:
        ballast.check()
    assert refused.value.errno == errno.ENOSPC


def test_other_trouble_spends_no_ballast() -> None:
    files = SimulatedFiles()
    files.make_directory("/disk")
    ballast = Ballast(files, "/disk")
    attempts = []

    def fail() -> None:
        attempts.append(1)
        raise OSError(errno.EIO, "the disk is sick")

    with pytest.raises(OSError, match="sick"):
        ballast.help(fail)
    ballast.note(OSError(errno.EIO, "the disk is sick"))
    assert (len(attempts), ballast.is_spent) == (1, False)
