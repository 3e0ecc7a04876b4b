"""A round's bare syncs, made by a lane on real files: what becomes durable, and what failures mean."""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from log.building import NOW_MS, TOPIC_ID, append, config, open_directory, sync
from ottla.log.directory import LogDirectory
from ottla.log.disk_lane import DiskLane
from ottla.log.file_syncs import CAN_SYNC, FileSyncs
from ottla.log.flusher import Flusher, Round
from ottla.log.partition_log import PartitionLog
from ottla.log.system_files import SystemFile, SystemFiles
from ottla.model.topics import TopicPartition

pytestmark = pytest.mark.skipif(not CAN_SYNC, reason="not compiled, or not on Linux: workers sync then")

Perform = Callable[[FileSyncs], int]


@pytest.fixture
def perform() -> Iterator[Perform]:
    """What a broker's lane does with some work, waited for."""
    bell, ringer = socket.socketpair()
    with bell, ringer:
        bell.settimeout(30)
        lane = DiskLane(ringer.fileno())
        thread = threading.Thread(target=lane.serve)
        thread.start()

        def run(syncs: FileSyncs) -> int:
            lane.give(syncs)
            bell.recv(1)
            assert lane.is_done
            return lane.take()

        try:
            yield run
        finally:
            lane.close()
            thread.join(30)


class FileWithASickDescriptor(SystemFile):
    """Its syncs fail at the system: what is synced is a pipe."""

    __slots__ = ("pipe",)

    def sync_fd(self) -> int | None:
        return None if super().sync_fd() is None else self.pipe


class SickFiles(SystemFiles):
    def __init__(self, pipe: int) -> None:
        self.pipe = pipe
        self.sick = ""  # files with this in their path

    def create(self, path: str) -> SystemFile:
        return self._ours(super().create(path))

    def open(self, path: str, *, writable: bool = True) -> SystemFile:
        return self._ours(super().open(path, writable=writable))

    def _ours(self, file: SystemFile) -> SystemFile:
        if not self.sick or self.sick not in file.name:
            return file
        ours = FileWithASickDescriptor(file.name, os.dup(file.fileno()))
        ours.pipe = self.pipe
        file.close()
        return ours


@pytest.fixture
def files() -> Iterator[SickFiles]:
    ends = os.pipe()
    yield SickFiles(ends[0])
    for end in ends:
        os.close(end)


def logs_in(directory: LogDirectory, count: int) -> list[PartitionLog]:
    logs = [
        directory.create(TopicPartition("t", number), TOPIC_ID, config(), NOW_MS) for number in range(count)
    ]
    for log in logs:
        append(log, [b"first"])
    sync(*logs)
    return logs


def next_round(flusher: Flusher, logs: list[PartitionLog]) -> tuple[Round, FileSyncs]:
    for log in logs:
        append(log, [b"x"])
        flusher.mark_dirty(log)
    begun = flusher.next_round()
    assert begun is not None
    syncs = begun.for_lane()
    assert syncs is not None
    return begun, syncs


@pytest.mark.parametrize("count", [1, 2, 20])
def test_a_lane_syncs_few_files_and_whole_filesystems(
    tmp_path: Path, files: SickFiles, perform: Perform, count: int
) -> None:
    logs = logs_in(open_directory(files, str(tmp_path)), count)
    flusher = Flusher()
    for number in range(3):
        begun, syncs = next_round(flusher, logs)
        error = perform(syncs)
        assert error == 0
        assert begun.settle(syncs, error)
        assert flusher.finish(begun) == logs
        assert [log.synced_offset for log in logs] == [number + 2] * count


def test_a_round_in_which_names_changed_is_a_workers(tmp_path: Path, files: SickFiles) -> None:
    directory = open_directory(files, str(tmp_path))
    directory._storage = directory._storage._replace(filesystem_sync=None)  # file by file
    log = directory.create(TopicPartition("t", 0), TOPIC_ID, config(), NOW_MS)
    append(log, [b"x"])
    flusher = Flusher()
    flusher.mark_dirty(log)
    begun = flusher.next_round()
    assert begun is not None
    assert begun.for_lane() is None


def test_a_file_that_cannot_be_synced_fails_its_directory_and_never_succeeds_again(
    tmp_path: Path, files: SickFiles, perform: Perform
) -> None:
    (sound,) = logs_in(open_directory(files, str(tmp_path / "sound")), 1)
    files.sick = ".log"
    (sick,) = logs_in(open_directory(files, str(tmp_path / "sick")), 1)
    flusher = Flusher()
    begun, syncs = next_round(flusher, [sick, sound])
    error = perform(syncs)
    assert error
    assert begun.settle(syncs, error)
    assert set(begun.failures) == {str(tmp_path / "sick")}
    assert flusher.finish(begun) == [sound]
    assert (sick.synced_offset, sound.synced_offset) == (1, 2)
    handle = sick._segments.active.log.handle()
    with pytest.raises(OSError, match=os.strerror(error)):
        handle.sync()
    assert handle.sync_fd() is None, "a lane would ask the system again, which has forgotten"


def test_when_a_filesystem_cannot_be_synced_as_a_whole_each_file_tells_for_itself(
    tmp_path: Path, files: SickFiles, perform: Perform
) -> None:
    logs = logs_in(open_directory(files, str(tmp_path)), 5)
    flusher = Flusher()
    begun, _ = next_round(flusher, logs)
    with socket.socket() as gone:
        number = gone.fileno()
    syncs = FileSyncs([], number)
    error = perform(syncs)
    assert error == errno.EBADF
    assert not begun.settle(syncs, error)
    begun.run_one_by_one()
    assert not begun.failures
    assert flusher.finish(begun) == logs
