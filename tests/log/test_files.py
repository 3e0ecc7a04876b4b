"""The system's files and the simulated ones keep the same promises; a power cut loses what was not synced."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from faults.power_cut import PowerCut, SimulatedFiles
from ottla.log import system_files
from ottla.log.file_range import FileRange
from ottla.log.files import DirectoryLocked, Files
from ottla.log.filesystem_sync import open_filesystem_sync
from ottla.log.system_files import SystemFiles


@pytest.fixture(params=["system", "simulated"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Files, str]:
    if request.param == "system":
        return SystemFiles(), str(tmp_path)
    files = SimulatedFiles()
    files.make_directory("/disk")
    return files, "/disk"


def test_append_returns_the_position_of_what_it_wrote(disk: tuple[Files, str]) -> None:
    files, root = disk
    handle = files.create(f"{root}/a")
    assert handle.append([b"one", memoryview(b"two")]) == 0
    assert handle.append([bytearray(b"three")]) == 6
    assert handle.size == 11
    assert handle.pread(100, 0) == b"onetwothree"
    assert handle.pread(3, 3) == b"two"
    assert handle.pread(3, 11) == b""


def test_one_append_may_have_more_chunks_than_one_system_call_takes(disk: tuple[Files, str]) -> None:
    files, root = disk
    handle = files.create(f"{root}/a")
    handle.append([b"head"])
    assert handle.append([bytes([i % 256]) for i in range(3000)]) == 4
    assert handle.pread(3000, 4) == bytes(i % 256 for i in range(3000))


def test_an_opened_file_goes_on_where_it_ended(disk: tuple[Files, str]) -> None:
    files, root = disk
    files.create(f"{root}/a").append([b"abc"])
    handle = files.open(f"{root}/a")
    assert handle.size == 3
    assert handle.append([b"d"]) == 3
    assert files.read_all(f"{root}/a") == b"abcd"
    assert files.size(f"{root}/a") == 4


def test_a_file_opened_for_reading_refuses_writes(disk: tuple[Files, str]) -> None:
    files, root = disk
    files.create(f"{root}/a")
    with pytest.raises(OSError, match="descriptor"):
        files.open(f"{root}/a", writable=False).append([b"x"])


def test_truncate_cuts_and_the_next_append_follows(disk: tuple[Files, str]) -> None:
    files, root = disk
    handle = files.create(f"{root}/a")
    handle.append([b"abcdef"])
    handle.truncate(2)
    assert handle.append([b"X"]) == 2
    assert files.read_all(f"{root}/a") == b"abX"


def test_reserved_space_reads_as_zeros_until_it_is_cut_off(disk: tuple[Files, str]) -> None:
    files, root = disk
    handle = files.create(f"{root}/a")
    handle.append([b"abc"])
    handle.reserve(10)
    assert handle.size == 3
    assert files.read_all(f"{root}/a") == b"abc" + bytes(7)
    assert handle.append([b"d"]) == 3
    handle.truncate(handle.size)
    assert files.read_all(f"{root}/a") == b"abcd"


def test_a_range_stays_readable_after_its_file_was_removed(disk: tuple[Files, str]) -> None:
    files, root = disk
    handle = files.create(f"{root}/a")
    handle.append([b"abcdef"])
    part = FileRange(handle, 1, 3)
    files.rename(f"{root}/a", f"{root}/a.deleted")
    files.remove(f"{root}/a.deleted")
    del handle
    assert part.read() == b"bcd"


def test_create_refuses_a_name_that_is_taken(disk: tuple[Files, str]) -> None:
    files, root = disk
    files.create(f"{root}/a")
    with pytest.raises(FileExistsError):
        files.create(f"{root}/a")
    files.make_directory(f"{root}/d")
    with pytest.raises(FileExistsError):
        files.make_directory(f"{root}/d")


def test_names_can_be_listed_renamed_and_removed(disk: tuple[Files, str]) -> None:
    files, root = disk
    files.create(f"{root}/b").append([b"new"])
    files.create(f"{root}/a").append([b"old"])
    files.make_directory(f"{root}/c")
    assert files.list_directory(root) == [("a", False), ("b", False), ("c", True)]
    files.rename(f"{root}/b", f"{root}/a")
    assert files.read_all(f"{root}/a") == b"new"
    assert not files.exists(f"{root}/b")
    files.remove_tree(f"{root}/c")
    files.remove(f"{root}/a")
    files.sync_directory(root)
    assert files.list_directory(root) == []


def test_missing_files_are_said_to_be_missing(disk: tuple[Files, str]) -> None:
    files, root = disk
    for ask in (files.open, files.size, files.remove, files.list_directory, files.read_all):
        with pytest.raises(FileNotFoundError):
            ask(f"{root}/none")  # type: ignore[operator]


def test_atomic_write_replaces_and_leaves_no_temporary_file(disk: tuple[Files, str]) -> None:
    files, root = disk
    files.create(f"{root}/a.tmp").append([b"left by a crash"])
    files.write_atomically(f"{root}/a", b"1")
    files.write_atomically(f"{root}/a", b"2")
    assert files.read_all(f"{root}/a") == b"2"
    assert files.list_directory(root) == [("a", False)]


def test_directories_are_made_down_to_the_last(disk: tuple[Files, str]) -> None:
    files, root = disk
    files.make_directories(f"{root}/x/y/z")
    files.make_directories(f"{root}/x/y/z")
    assert files.list_directory(f"{root}/x/y") == [("z", True)]


def test_a_directory_is_locked_once(disk: tuple[Files, str]) -> None:
    files, root = disk
    lock = files.lock(f"{root}/.lock")
    with pytest.raises(DirectoryLocked, match="another broker"):
        files.lock(f"{root}/.lock")
    lock.release()
    files.lock(f"{root}/.lock").release()


def test_a_lock_holds_against_another_process_with_a_posix_lock(tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")
    script = (
        "import fcntl, os, sys\n"
        "fd = os.open(sys.argv[1], os.O_RDWR)\n"
        "try: fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "except OSError: sys.exit(3)\n"
    )
    lock = SystemFiles().lock(path)
    assert subprocess.run([sys.executable, "-c", script, path], check=False).returncode == 3
    lock.release()
    assert subprocess.run([sys.executable, "-c", script, path], check=False).returncode == 0


@pytest.fixture
def without_pwritev(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_files, "_HAS_PWRITEV", False)


@pytest.mark.usefixtures("without_pwritev")
def test_systems_without_pwritev_append_the_same(tmp_path: Path) -> None:
    test_an_opened_file_goes_on_where_it_ended((SystemFiles(), str(tmp_path)))


def test_short_writes_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwritev
    monkeypatch.setattr(os, "pwritev", lambda fd, chunks, at: real(fd, [bytes(chunks[0])[:2]], at))
    handle = SystemFiles().create(str(tmp_path / "a"))
    handle.append([b"abcde", b"", b"fg", b"h"])
    assert handle.pread(100, 0) == b"abcdefgh"


def test_a_failed_append_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwritev

    def fill_up(fd: int, chunks: list[bytes], position: int) -> int:
        if position > 3:
            raise OSError(errno.ENOSPC, "no space")
        return real(fd, [bytes(chunks[0])[:2]], position)

    handle = SystemFiles().create(str(tmp_path / "a"))
    handle.append([b"abc"])
    with monkeypatch.context() as full:
        full.setattr(os, "pwritev", fill_up)
        with pytest.raises(OSError, match="no space"):
            handle.append([b"defg"])
    assert handle.size == 3
    assert os.path.getsize(tmp_path / "a") == 3
    assert handle.append([b"D"]) == 3
    assert (tmp_path / "a").read_bytes() == b"abcD"


def test_a_torn_tail_that_could_not_be_cut_is_cut_before_the_next_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.pwritev

    def tear(fd: int, chunks: list[bytes], position: int) -> int:
        real(fd, chunks, position)
        raise OSError(errno.EIO, "broken")

    def refuse(fd: int, size: int) -> None:
        raise OSError(errno.EIO, "broken")

    handle = SystemFiles().create(str(tmp_path / "a"))
    with monkeypatch.context() as broken:
        broken.setattr(os, "pwritev", tear)
        broken.setattr(os, "ftruncate", refuse)
        with pytest.raises(OSError, match="broken"):
            handle.append([b"torn bytes"])
        with pytest.raises(OSError, match="broken"):
            handle.append([b"again"])
    handle.append([b"ok"])
    assert (tmp_path / "a").read_bytes() == b"ok"


def test_a_failed_sync_is_never_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = SystemFiles().create(str(tmp_path / "a"))
    handle.append([b"abc"])

    def fail(fd: int) -> None:
        raise OSError(errno.EIO, "lost pages")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", fail)
        with pytest.raises(OSError, match="lost pages"):
            handle.sync()
    with pytest.raises(OSError, match="lost pages"):
        handle.sync()


def test_a_handle_closes_with_its_last_reference(tmp_path: Path) -> None:
    handle = SystemFiles().create(str(tmp_path / "a"))
    fd = handle.fileno()
    os.fstat(fd)
    del handle
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(fd)


@pytest.mark.skipif(sys.platform != "linux", reason="syncfs is Linux's")
def test_filesystem_sync_is_offered_only_by_kernels_that_report_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncer = open_filesystem_sync(str(tmp_path))
    if syncer is not None:
        assert syncer.device == os.stat(tmp_path).st_dev
        syncer.sync()
    old = os.uname_result(("Linux", "n", "5.7.19-generic", "v", "m"))
    monkeypatch.setattr(os, "uname", lambda: old)
    assert open_filesystem_sync(str(tmp_path)) is None


def simulated() -> SimulatedFiles:
    files = SimulatedFiles()
    files.make_directory("/disk")
    files.sync_directory("/")
    return files


def test_a_cut_keeps_what_was_synced() -> None:
    files = simulated()
    handle = files.create("/disk/a")
    handle.append([b"x" * 5000])
    handle.sync()
    files.sync_directory("/disk")
    handle.append([b"y" * 5000])
    for seed in range(50):
        after = files.cut(seed)
        assert after.read_all("/disk/a").startswith(b"x" * 5000)


def test_a_cut_may_lose_tear_and_reorder_what_was_not_synced() -> None:
    files = simulated()
    handle = files.create("/disk/a")
    files.sync_directory("/disk")
    for letter in b"abcdefgh":
        handle.append([bytes([letter]) * 512])
    outcomes = {files.cut(seed).read_all("/disk/a") for seed in range(200)}
    assert b"" in outcomes
    assert any(content.startswith(bytes(512)) for content in outcomes), (
        "a later write survives an earlier one"
    )
    assert any(0 < len(content) < 4096 for content in outcomes)
    assert files.read_all("/disk/a") in outcomes


def test_a_cut_may_lose_names_that_were_not_synced() -> None:
    files = simulated()
    files.create("/disk/kept").sync()
    files.sync_directory("/disk")
    files.rename("/disk/kept", "/disk/renamed")
    files.create("/disk/new").sync()
    outcomes = {tuple(name for name, _ in files.cut(seed).list_directory("/disk")) for seed in range(100)}
    assert outcomes == {("kept",), ("renamed",), ("kept", "new"), ("new", "renamed")}


def test_an_atomic_write_survives_a_cut_at_every_step() -> None:
    for stop_at in range(1, 30):
        files = simulated()
        files.write_atomically("/disk/a", b"old")
        files.stop_at = files.operations + stop_at
        finished = False
        try:
            files.write_atomically("/disk/a", b"new")
            finished = True
        except PowerCut:
            pass
        for seed in range(20):
            content = files.cut(seed).read_all("/disk/a")
            assert content == b"new" if finished else content in (b"old", b"new")
        if finished:
            return
    pytest.fail("the write never finished")


def test_a_full_disk_refuses_and_takes_writes_again_when_there_is_space() -> None:
    files = simulated()
    handle = files.create("/disk/a")
    files.capacity_bytes = 4
    with pytest.raises(OSError, match="No space"):
        handle.append([b"abcdef"])
    assert (handle.size, files.read_all("/disk/a")) == (0, b"")
    files.capacity_bytes += 10
    handle.append([b"abcdef"])


def test_a_simulated_failure_happens_once_and_where_it_was_asked_for() -> None:
    files = simulated()
    first, second = files.create("/disk/a"), files.create("/disk/b")
    files.fail("sync", errno.EIO, name_ends="/b")
    first.sync()
    with pytest.raises(OSError, match="Input/output"):
        second.sync()
    files.open("/disk/b").sync()


def test_directories_are_durable_although_their_maker_was_stopped_before_the_sync() -> None:
    files = SimulatedFiles()
    files.make_directory("/a")
    files.make_directories("/a")
    assert all(files.cut(seed).exists("/a") for seed in range(20))
