"""Appends past the page cache: the same bytes in the file as by the usual way, durable with one call."""

from __future__ import annotations

import errno
import os
import socket
import threading
from pathlib import Path

import pytest

from ottla.log import direct_append
from ottla.log.direct_append import ROOM_BYTES
from ottla.log.disk_lane import DiskLane
from ottla.log.files import BLOCK_BYTES, DirectAppend
from ottla.log.system_files import SystemFile, SystemFiles

FILLED_END = 64 * BLOCK_BYTES


@pytest.fixture
def handle(tmp_path: Path) -> SystemFile:
    handle = SystemFiles().create(str(tmp_path / "log"))
    handle.append([b"header"])
    handle.fill(FILLED_END)
    handle.sync()
    return handle


@pytest.fixture
def direct(handle: SystemFile) -> DirectAppend:
    direct = handle.direct()
    if direct is None:
        pytest.skip("this file system has no direct writes")
    return direct


def content(handle: SystemFile) -> bytes:
    return Path(handle.name).read_bytes()


def test_each_append_follows_the_one_before_it(handle: SystemFile, direct: DirectAppend) -> None:
    expected = b"header"
    for size in (1, 100, BLOCK_BYTES - 107, 1, BLOCK_BYTES, 3 * BLOCK_BYTES - 1, 2, 5000):
        chunks = [os.urandom(size), b"", os.urandom(7)]
        assert direct.prepare(chunks, FILLED_END)
        assert direct.run()
        expected += b"".join(chunks)
        assert handle.size == len(expected)
    assert content(handle) == expected + bytes(FILLED_END - len(expected))


def test_usual_appends_may_come_between(handle: SystemFile, direct: DirectAppend) -> None:
    expected = b"header"
    for number in range(20):
        chunk = os.urandom(number * 311)
        if number % 3:
            assert direct.prepare([chunk], FILLED_END)
            assert direct.run()
        else:
            handle.append([chunk])
        expected += chunk
    assert handle.pread(handle.size, 0) == expected
    assert content(handle)[: len(expected)] == expected


def test_what_does_not_fit_is_none_of_its_business(handle: SystemFile, direct: DirectAppend) -> None:
    assert not direct.prepare([bytes(ROOM_BYTES)], 10 * ROOM_BYTES)
    assert not direct.prepare([b"x"], BLOCK_BYTES - 1)  # the block would reach behind what is filled
    assert direct.prepare([b"x"], BLOCK_BYTES)


def test_a_failed_write_is_final(handle: SystemFile, direct: DirectAppend) -> None:
    assert direct.prepare([b"x"], FILLED_END)
    with pytest.raises(OSError, match="Input/output error"):
        direct.settle(errno.EIO)
    assert handle.size == len(b"header")
    assert not direct.run()
    assert not direct.prepare([b"x"], FILLED_END)


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSPC])
def test_a_refused_write_is_left_to_the_usual_way(
    handle: SystemFile, direct: DirectAppend, number: int
) -> None:
    assert direct.prepare([b"x"], FILLED_END)
    assert not direct.settle(number)
    assert handle.size == len(b"header")
    assert not direct.run()
    assert not direct.prepare([b"x"], FILLED_END)


def test_a_file_that_cannot_be_written_so_says_why(tmp_path: Path) -> None:
    """A write to a descriptor that is gone gives its number and no exception, in the lane as elsewhere."""
    handle = SystemFiles().create(str(tmp_path / "log"))
    handle.fill(FILLED_END)
    direct = handle.direct()
    if direct is None:
        pytest.skip("this file system has no direct writes")
    assert direct.prepare([b"x"], FILLED_END)
    direct.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        direct.run()


def test_without_such_writes_there_is_none(handle: SystemFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_append, "_FLAGS", None)
    assert handle.direct() is None


def test_a_lane_writes_what_it_is_given_and_rings(handle: SystemFile, direct: DirectAppend) -> None:
    bell, ringer = socket.socketpair()
    with bell, ringer:
        bell.settimeout(30)
        lane = DiskLane(ringer.fileno())
        thread = threading.Thread(target=lane.serve)
        thread.start()
        try:
            expected = b"header"
            for number in range(50):
                chunk = b"%d," % number
                assert direct.prepare([chunk], FILLED_END)
                assert not lane.is_done
                lane.give(direct)
                assert bell.recv(1) == b"\0"
                assert lane.is_done
                assert direct.settle(lane.take())
                expected += chunk
        finally:
            lane.close()
            thread.join(30)
        assert not thread.is_alive()
        assert content(handle)[: handle.size] == expected


def test_a_lane_tells_of_a_failure(handle: SystemFile, direct: DirectAppend) -> None:
    bell, ringer = socket.socketpair()
    with bell, ringer:
        bell.settimeout(30)
        lane = DiskLane(ringer.fileno())
        thread = threading.Thread(target=lane.serve)
        thread.start()
        try:
            assert direct.prepare([b"x"], FILLED_END)
            direct.close()
            lane.give(direct)
            bell.recv(1)
            assert lane.take() == errno.EBADF
        finally:
            lane.close()
            thread.join(30)
