"""Calls on sockets that never block, compiled or not: what came, what there was no room for, and ends."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.model.limits import KIB, RECEIVE_BYTES
from ottla.server.poller import READABLE, EpollPoller
from ottla.server.socket_calls import receive_into_now, receive_now, send_file_now

Pair = tuple[socket.socket, socket.socket]
POSITIONS = (0, 1, 4_096)


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    for each in (ours, theirs):
        each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1024 * KIB)
        each.setblocking(False)
    with ours, theirs:
        yield ours, theirs


def received(sock: socket.socket) -> list[bytes]:
    """Until there is nothing, or no more to come."""
    parts = []
    while part := receive_now(sock, sock.fileno()):
        parts.append(part)
    return parts


@pytest.mark.parametrize("size", [1, 100, 8 * KIB, 8 * KIB + 1, RECEIVE_BYTES - 1, RECEIVE_BYTES, 150 * KIB])
@pytest.mark.parametrize("length", [16 * KIB, RECEIVE_BYTES + 1, 2**31, 2**32 - 1])
def test_everything_comes_in_order(pair: Pair, size: int, length: int) -> None:
    ours, theirs = pair
    sent = (length.to_bytes(4, "big") + os.urandom(size))[:size]
    theirs.sendall(sent)
    assert b"".join(received(ours)) == sent
    theirs.sendall(b"more")
    assert received(ours) == [b"more"]


def test_what_was_received_stays_as_it_is(pair: Pair) -> None:
    ours, theirs = pair
    sent = [os.urandom(size) for size in (10, 20 * KIB, RECEIVE_BYTES, 20 * KIB, 10)]
    kept = []
    for part in sent:
        theirs.sendall(part)
        kept.append(b"".join(received(ours)))
    assert kept == sent


def test_nothing_yet_is_not_the_end(pair: Pair) -> None:
    ours, theirs = pair
    room = memoryview(bytearray(10))
    assert receive_now(ours, ours.fileno()) is None
    assert receive_into_now(ours, ours.fileno(), room) == -1
    theirs.sendall(b"last")
    theirs.close()
    assert receive_into_now(ours, ours.fileno(), room) == 4
    assert room[:4] == b"last"
    assert receive_into_now(ours, ours.fileno(), room) == 0
    assert receive_now(ours, ours.fileno()) == b""


def test_no_more_comes_than_there_is_room_for(pair: Pair) -> None:
    ours, theirs = pair
    theirs.sendall(b"0123456789")
    room = memoryview(bytearray(8))
    assert receive_into_now(ours, ours.fileno(), room[:6]) == 6
    assert bytes(room) == b"012345\0\0"


def test_a_socket_that_is_none_is_an_error() -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    fd = ours.fileno()
    ours.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        receive_now(ours, fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        receive_into_now(ours, fd, memoryview(bytearray(1)))


@pytest.mark.skipif(not hasattr(os, "sendfile"), reason="there is no sendfile")
def test_a_file_is_sent_from_where_it_was_asked_for(pair: Pair, tmp_path: Path) -> None:
    ours, theirs = pair
    data = os.urandom(10_000)
    path = tmp_path / "file"
    path.write_bytes(data)
    with path.open("rb") as file:
        for position in POSITIONS:
            assert send_file_now(ours.fileno(), file.fileno(), position, 500) == 500
            assert b"".join(received(theirs)) == data[position : position + 500]
        assert send_file_now(ours.fileno(), file.fileno(), 9_990, 500) == 10
        assert send_file_now(ours.fileno(), file.fileno(), 10_000, 500) == 0
        while send_file_now(ours.fileno(), file.fileno(), 0, 10_000) > 0:
            pass  # until nothing more fits
        assert send_file_now(ours.fileno(), file.fileno(), 0, 10_000) == -1


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals can be sent to threads")
def test_a_signal_is_handled_while_the_poller_waits(pair: Pair) -> None:
    ours, theirs = pair
    poller = EpollPoller()
    poller.register(ours.fileno(), READABLE)
    owner = threading.get_ident()
    before = signal.signal(signal.SIGUSR1, lambda *_: theirs.sendall(b"!"))
    waker = threading.Timer(0.05, lambda: signal.pthread_kill(owner, signal.SIGUSR1))
    waker.start()
    try:
        deadline = time.monotonic() + 30
        while not (ready := poller.poll(10_000)):
            assert time.monotonic() < deadline
        assert ready == [(ours.fileno(), READABLE)]
    finally:
        waker.join()
        signal.signal(signal.SIGUSR1, before)
        poller.close()


def test_a_very_long_wait_can_be_asked_for(pair: Pair) -> None:
    ours, theirs = pair
    poller = EpollPoller()
    poller.register(ours.fileno(), READABLE)
    theirs.sendall(b"!")
    assert poller.poll(2**40) == [(ours.fileno(), READABLE)]
    poller.close()
