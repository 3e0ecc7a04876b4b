"""Waiting for sockets: a lone peer that asks quickly is looked for without sleep, and nobody else is."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from ottla.server.poller import READABLE, EpollPoller, Poller, PortablePoller

POLLERS = [PortablePoller, *([EpollPoller] if hasattr(select, "epoll") else [])]


@pytest.fixture(params=POLLERS)
def poller(request: pytest.FixtureRequest) -> Iterator[Poller]:
    made: Poller = request.param()
    yield made
    made.close()


@pytest.fixture
def peers(poller: Poller) -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        poller.register(ours.fileno(), READABLE)
        yield ours, theirs
        poller.unregister(ours.fileno())


def talk(poller: Poller, ours: socket.socket, theirs: socket.socket, rounds: int) -> None:
    """A lone peer asks again as soon as it was answered."""

    def ask() -> None:
        for _ in range(rounds):
            theirs.sendall(b"?")
            theirs.recv(1)

    peer = threading.Thread(target=ask)
    peer.start()
    for _ in range(rounds):
        while not (ready := poller.poll(10_000)):
            pass
        ((fd, bits),) = ready
        assert fd == ours.fileno()
        assert bits & READABLE
        ours.recv(1)
        ours.sendall(b"!")
    peer.join(10)


def test_a_lone_peer_is_heard_every_time(poller: Poller, peers: tuple[socket.socket, socket.socket]) -> None:
    talk(poller, *peers, 2_000)


def test_a_wait_ends_when_its_time_is_up_and_costs_nothing_meanwhile(
    poller: Poller, peers: tuple[socket.socket, socket.socket]
) -> None:
    talk(poller, *peers, 500)
    for _ in range(3):
        began, used = time.monotonic(), time.thread_time()
        assert poller.poll(100) == []
        assert time.monotonic() - began >= 0.099
        assert time.thread_time() - used < 0.05


def test_what_is_ready_is_told_at_once(poller: Poller, peers: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = peers
    theirs.sendall(b"?")
    for timeout_ms in (0, 10_000, None):
        assert [fd for fd, _ in poller.poll(timeout_ms)] == [ours.fileno()]
    with contextlib.suppress(BlockingIOError):
        ours.recv(1)
    assert poller.poll(0) == []
