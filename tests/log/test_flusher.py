"""Group commit: what a round makes durable, in which order and way, and what a failed one means."""

from __future__ import annotations

import errno
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from faults.power_cut import SimulatedFiles
from log.building import NOW_MS, PARTITION, TOPIC_ID, append, config, new_log, open_directory, read_all, sync
from ottla.log.flusher import Flusher
from ottla.log.partition_log import PartitionLog
from ottla.log.system_files import SystemFiles
from ottla.model.topics import TopicPartition


class RecordingFiles(SimulatedFiles):
    """Remembers which files were synced, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.synced: list[str] = []

    def step(self, operation: str, name: str, *, counts: bool = True) -> None:
        super().step(operation, name, counts=counts)
        if operation in ("sync", "sync_directory", "syncfs"):
            self.synced.append(name.removeprefix("/disk/"))


def logs_in(files: SimulatedFiles, count: int) -> list[PartitionLog]:
    directory = open_directory(files, "/disk")
    return [
        directory.create(TopicPartition("t", number), TOPIC_ID, config(), NOW_MS) for number in range(count)
    ]


def test_a_round_moves_the_synced_offset_to_where_the_log_ended_when_it_began() -> None:
    files = SimulatedFiles()
    _, log = new_log(files, "/disk")
    flusher = Flusher()
    append(log, [b"a", b"b"])
    flusher.mark_dirty(log)
    begun = flusher.next_round()
    assert begun is not None
    append(log, [b"c"])
    flusher.mark_dirty(log)
    assert flusher.next_round() is None, "one at a time"
    begun.run()
    assert log.synced_offset == 0
    assert flusher.finish(begun) == [log]
    assert log.synced_offset == 2
    second = flusher.next_round()
    assert second is not None
    second.run()
    flusher.finish(second)
    assert log.synced_offset == 3
    flusher.mark_dirty(log)
    assert flusher.next_round() is None, "nothing is dirty"


def test_a_sealed_segment_is_synced_before_the_one_that_follows() -> None:
    files = RecordingFiles()
    _, log = new_log(files, "/disk", config(segment_bytes=100))
    append(log, [b"x"])
    sync(log)
    files.synced.clear()
    append(log, [b"y" * 40])
    append(log, [b"z" * 40])
    sync(log)
    logs = [name for name in files.synced if name.endswith(".log")]
    assert logs == [f"orders-0/{base:020d}.log" for base in (0, 1, 2)]
    assert f"orders-0/{0:020d}.index" in files.synced
    assert f"orders-0/{1:020d}.snapshot" in files.synced
    assert files.synced.index("orders-0") > files.synced.index(logs[-1])


def test_few_files_are_synced_one_by_one_and_many_at_once() -> None:
    files = RecordingFiles()
    files.has_filesystem_sync = True
    logs = logs_in(files, 20)
    sync(*logs)
    for count, way in ((1, ["t-0/00000000000000000000.log"]), (20, ["/"])):
        for log in logs[:count]:
            append(log, [b"x"], epoch=0)
        sync(*logs[:count])
        for log in logs[:count]:
            append(log, [b"x"], epoch=0)
        files.synced.clear()
        sync(*logs[:count])
        assert files.synced == way


def test_epochs_are_written_in_the_round_of_their_first_records() -> None:
    for has_filesystem_sync in (False, True):
        files = SimulatedFiles()
        files.has_filesystem_sync = has_filesystem_sync
        logs = logs_in(files, 5)
        for log in logs:
            append(log, [b"x"], epoch=3)
        sync(*logs)
        for seed in range(10):
            after = open_directory(files.cut(seed), "/disk")
            for log in after.logs.values():
                assert log.epochs.entries() == ((3, 0),)
                assert len(read_all(log)) == 1


def test_a_failed_sync_is_raised_and_not_tried_again() -> None:
    files = SimulatedFiles()
    _, log = new_log(files, "/disk")
    append(log, [b"x"])
    flusher = Flusher()
    flusher.mark_dirty(log)
    begun = flusher.next_round()
    assert begun is not None
    files.fail("sync", errno.EIO, name_ends=".log")
    begun.run()
    with pytest.raises(OSError, match="Input/output"):
        begun.raise_failure()
    begun.run()
    with pytest.raises(OSError, match="Input/output"):
        begun.raise_failure()
    assert log.synced_offset == 0


def test_when_syncing_all_at_once_fails_each_file_tells_for_itself() -> None:
    files = RecordingFiles()
    files.has_filesystem_sync = True
    logs = logs_in(files, 10)
    sync(*logs)
    for log in logs:
        append(log, [b"x"])
    files.fail("syncfs", errno.EIO)
    sync(*logs)
    assert all(log.synced_offset == 1 for log in logs)
    assert len([name for name in files.synced if name.endswith(".log")]) >= 10


def test_a_new_partition_is_durable_after_its_first_round() -> None:
    files = SimulatedFiles()
    _, log = new_log(files, "/disk")
    append(log, [b"x"])
    sync(log)
    for seed in range(30):
        directory = open_directory(files.cut(seed), "/disk")
        assert directory.topic_ids == {PARTITION: TOPIC_ID}
        assert [record.value for record in read_all(directory.logs[PARTITION])] == [b"x"]


def test_rounds_run_in_a_worker_while_the_owner_appends(tmp_path: Path) -> None:
    directory = open_directory(SystemFiles(), str(tmp_path), config(segment_bytes=20_000))
    logs = [
        directory.create(TopicPartition("t", number), TOPIC_ID, config(segment_bytes=20_000), NOW_MS)
        for number in range(5)
    ]
    flusher = Flusher()
    with ThreadPoolExecutor(1) as worker:
        for number in range(100):
            begun = flusher.next_round()
            future = worker.submit(begun.run) if begun is not None else None
            for log in logs:
                for _ in range(5):
                    append(log, [b"%d" % number] * 3, epoch=number // 20)
                flusher.mark_dirty(log)
            if begun is not None and future is not None:
                future.result(10)
                flusher.finish(begun)
                assert all(log.synced_offset == number * 15 for log in logs)
    directory.abandon()
    directory = open_directory(SystemFiles(), str(tmp_path), config(segment_bytes=20_000))
    for log in directory.logs.values():
        assert len(log.segments) > 2
        assert [record.value for record in read_all(log)] == [b"%d" % (at // 15) for at in range(1_500)]
        assert [entry.start_offset for entry in log.epochs.entries()] == [0, 300, 600, 900, 1_200]
    directory.close()


def test_syncs_are_due_by_count_by_time_and_after_a_roll() -> None:
    files = SimulatedFiles()
    _, log = new_log(files, "/disk", config(flush_messages=3, flush_ms=1_000))
    append(log, [b"of a new epoch"])
    assert log.sync_is_due(0)
    sync(log)
    append(log, [b"a", b"b"])
    assert not log.sync_is_due(999)
    assert log.sync_is_due(1_000)
    append(log, [b"c"])
    assert log.sync_is_due(0)
    sync(log)
    assert not log.sync_is_due(10**9)
    log.roll(NOW_MS)
    assert log.sync_is_due(0)
