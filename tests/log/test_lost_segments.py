"""A file that is gone: a start says which one, and does not serve a log with a hole."""

from __future__ import annotations

import errno

import pytest

from faults.power_cut import SimulatedFiles
from log.building import (
    NOW_MS,
    PARTITION,
    TOPIC_ID,
    append,
    config,
    new_log,
    open_directory,
    read_all,
    regain_room,
    sync,
)
from log.cleaning import clean
from ottla.log import checkpoints, segment_checkpoint
from ottla.log.directory import LogDirectory
from ottla.log.inspection.repair import perform
from ottla.log.inspection.repair_directory import plan_repair
from ottla.log.inspection.repair_plan import Wish
from ottla.model.topics import TopicPartition

COMPACTED = config(cleanup_compact=True, cleanup_delete=False)
OTHER = TopicPartition("orders", 1)


def segment(base_offset: int, partition: TopicPartition = PARTITION, suffix: str = ".log") -> str:
    return f"/disk/{partition}/{base_offset:020}{suffix}"


def five_segments(files: SimulatedFiles, *, compacted: bool = False) -> LogDirectory:
    """Ten records, two in each segment; and another log beside it."""
    topic = COMPACTED if compacted else config()
    directory, log = new_log(files, "/disk", topic)
    other = directory.create(OTHER, TOPIC_ID, topic, NOW_MS)
    append(other, [b"beside"])
    for number in range(10):
        if number and number % 2 == 0:
            log.roll(NOW_MS)
        append(log, [b"%d" % number])
    sync(log, other)
    return directory


def stop(directory: LogDirectory, *, cleanly: bool) -> None:
    if cleanly:
        directory.close()
    else:
        directory.checkpoints.begin().run()
        directory.abandon()


def lose(files: SimulatedFiles, base_offset: int) -> None:
    for suffix in (".log", ".index", ".timeindex", ".snapshot"):
        if files.exists(path := segment(base_offset, suffix=suffix)):
            files.remove(path)


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("cleanly", [False, True])
@pytest.mark.parametrize("lost", [0, 2, 4, 6, 8])
def test_a_log_without_one_of_its_segments_stays_offline(lost: int, cleanly: bool, compacted: bool) -> None:
    files = SimulatedFiles()
    stop(five_segments(files, compacted=compacted), cleanly=cleanly)
    lose(files, lost)
    directory = open_directory(files, "/disk", COMPACTED if compacted else config())
    problem = str(directory.failed[PARTITION])
    if lost == 8:  # the last one is on no list, but the recovery point knows of its end
        assert "ends at offset 8, but the log was synced up to 10" in problem
    else:
        assert f"{segment(lost)} is gone; it held offsets {lost} to {lost + 1}" in problem
    assert "restore the file, or give the records up with `ottla log repair" in problem
    assert [record.value for record in read_all(directory.logs[OTHER])] == [b"beside"]


def test_a_closed_segment_that_was_cut_between_batches_is_noticed() -> None:
    files = SimulatedFiles()
    stop(five_segments(files), cleanly=True)
    files.open(segment(4)).truncate(70)
    [problem] = map(str, open_directory(files, "/disk").failed.values())
    assert f"{segment(4)} has 70 bytes instead of" in problem


def test_the_log_is_back_with_its_file_however_often_it_was_started_without() -> None:
    files = SimulatedFiles()
    stop(five_segments(files), cleanly=True)
    content = files.read_all(segment(2))
    files.remove(segment(2))
    for cleanly in (True, False):
        directory = open_directory(files, "/disk")
        assert list(directory.failed) == [PARTITION]
        stop(directory, cleanly=cleanly)
    files.create(segment(2)).append([content])
    directory = open_directory(files, "/disk")
    assert [record.value for record in read_all(directory.logs[PARTITION])] == [
        b"%d" % at for at in range(10)
    ]


def test_the_rest_is_served_when_the_loss_was_accepted() -> None:
    files = SimulatedFiles()
    stop(five_segments(files), cleanly=True)
    lose(files, 2)
    for step in plan_repair(files, "/disk", PARTITION, Wish(drop_corrupt=True)).steps:
        perform(files, step)
    directory = open_directory(files, "/disk")
    assert [record.offset for record in read_all(directory.logs[PARTITION])] == [0, 1, 4, 5, 6, 7, 8, 9]


def test_nothing_is_missed_when_somebody_else_has_written_checkpoints_since() -> None:
    """Kafka may have compacted the log in the meantime, and does not know of the list."""
    files = SimulatedFiles()
    stop(five_segments(files, compacted=True), cleanly=True)
    files.now_ms += 1
    path = f"/disk/{checkpoints.RECOVERY_POINTS}"
    files.write_atomically(path, files.read_all(path))
    lose(files, 2)
    directory = open_directory(files, "/disk", COMPACTED)
    assert directory.logs[PARTITION].log_end_offset == 10


def test_a_damaged_list_is_ignored() -> None:
    files = SimulatedFiles()
    stop(five_segments(files), cleanly=True)
    files.write_atomically(f"/disk/{segment_checkpoint.FILE_NAME}", b"0\n1\n" + b"\0" * 100)
    assert not open_directory(files, "/disk").failed


def test_segments_before_the_log_start_are_not_missed() -> None:
    files = SimulatedFiles()
    directory = five_segments(files)
    directory.checkpoints.begin().run()
    directory.logs[PARTITION].delete_records(5)
    directory.checkpoints.begin_log_starts().run()
    directory.drop_expired(NOW_MS)
    directory.abandon()
    assert not files.exists(segment(2))
    directory = open_directory(files, "/disk")
    assert directory.logs[PARTITION].log_start_offset == 5


def test_segments_that_were_compacted_away_are_not_missed() -> None:
    files = SimulatedFiles()
    directory = five_segments(files, compacted=True)
    log = directory.logs[PARTITION]
    directory.checkpoints.begin().run()
    clean(files, directory, log)
    directory.abandon()
    assert not files.exists(segment(2))
    directory = open_directory(files, "/disk", COMPACTED)
    assert not directory.failed
    stop(directory, cleanly=True)
    files.remove(segment(0))
    assert f"{segment(0)} is gone" in str(open_directory(files, "/disk", COMPACTED).failed[PARTITION])


def test_a_truncated_log_does_not_miss_what_was_cut_off() -> None:
    files = SimulatedFiles()
    directory = five_segments(files)
    directory.checkpoints.begin().run()
    directory.truncate(directory.logs[PARTITION], 3, NOW_MS)
    directory.abandon()
    assert open_directory(files, "/disk").logs[PARTITION].log_end_offset == 3


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex"])
def test_a_segment_that_could_not_be_begun_leaves_no_files(suffix: str) -> None:
    """Left behind, it would end the one before it, which goes on growing, at the next start."""
    files = SimulatedFiles()
    directory, log = new_log(files, "/disk", config(segment_bytes=200))
    append(log, [b"x" * 100])
    files.fail("create", errno.ENOSPC, name_ends=f"{1:020}{suffix}")
    with pytest.raises(OSError, match="No space"):
        append(log, [b"x" * 100])
    regain_room(log)
    append(log, [b"small"])
    append(log, [b"x" * 100])
    sync(log)
    directory.abandon()
    directory = open_directory(files, "/disk")
    assert len(read_all(directory.logs[PARTITION])) == 3
