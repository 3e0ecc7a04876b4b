"""Which changes share a sync round: all that are there, and on a slow disk those who are about to come."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from faults.power_cut import SimulatedFiles
from ottla.coordination.client import LocalCoordination
from ottla.coordination.operations import Create, Result
from ottla.log import direct_append
from ottla.log.direct_append import open_direct
from ottla.log.system_files import SystemFiles
from ottla.model.clock import ManualClock, SystemClock
from ottla.model.metrics import Registry
from ottla.node.coordination_rounds import CoordinationRounds
from ottla.node.lane_thread import LaneThread
from ottla.node.workers import Workers
from ottla.server.accepting import SocketOptions
from ottla.server.reactor import Reactor


class Rounds:
    """Rounds whose work is done when the test says so."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.reactor = Reactor(self.clock, SocketOptions(), Registry())
        self.coordination = LocalCoordination(SimulatedFiles(), "/coordination", self.clock)
        self.coordination.sync()
        self.given: list[tuple[Callable[[], None], Callable[[BaseException | None], None]]] = []
        self.answered: list[Result] = []
        worker: Any = lambda work, done: self.given.append((work, done))  # noqa: E731
        self.rounds = CoordinationRounds(self.coordination, worker, self.reactor, self._fail)
        self._paths = 0

    def _fail(self, error: BaseException) -> None:
        raise error

    def change(self, count: int) -> None:
        """As many changes come, and the turn ends."""
        for _ in range(count):
            self._paths += 1
            self.coordination.submit(Create(f"/{self._paths}"), self.answered.append)
        self.rounds.start()

    def finish(self, after_ms: int) -> None:
        [(work, done)] = self.given
        self.given.clear()
        self.clock.advance(after_ms)
        work()
        done(None)


@pytest.fixture
def rounds() -> Any:
    made = Rounds()
    yield made
    made.reactor.close()


def test_a_round_begins_with_what_is_there(rounds: Rounds) -> None:
    rounds.change(3)
    rounds.change(1)
    rounds.finish(0)
    assert len(rounds.answered) == 3
    rounds.change(0)
    rounds.finish(0)
    assert len(rounds.answered) == 4


def test_after_a_long_round_the_next_one_waits_for_as_many(rounds: Rounds) -> None:
    rounds.change(3)
    rounds.finish(9)
    rounds.change(2)
    assert not rounds.given
    rounds.change(1)
    rounds.finish(9)
    assert len(rounds.answered) == 6


def test_it_does_not_wait_for_those_who_do_not_come(rounds: Rounds) -> None:
    rounds.change(3)
    rounds.finish(9)
    rounds.change(1)
    assert not rounds.given
    rounds.clock.advance(2)
    rounds.change(0)
    rounds.finish(0)
    assert len(rounds.answered) == 4


def test_after_a_short_round_nobody_waits(rounds: Rounds) -> None:
    rounds.change(3)
    rounds.finish(0)
    rounds.change(1)
    assert rounds.given


def test_one_alone_never_waits(rounds: Rounds) -> None:
    for _ in range(3):
        rounds.change(1)
        rounds.finish(9)
    assert len(rounds.answered) == 3


class LaneRounds:
    """Rounds on real files, with the lane's thread and the worker's."""

    def __init__(self, directory: Path) -> None:
        clock = SystemClock()
        self.reactor = Reactor(clock, SocketOptions(), Registry())
        self.lane = LaneThread("lane", self.reactor.ring_fd)
        self.coordination = LocalCoordination(SystemFiles(), str(directory), clock)
        self.coordination.sync()
        self.worker = Workers("rounds", 1, self._posted)
        self.by_worker = 0
        self.failures: list[BaseException] = []
        self.rounds = CoordinationRounds(
            self.coordination, self.worker, self.reactor, self.failures.append, self.lane.lane
        )
        self.reactor.turn_hooks.append(self.rounds.start)
        self.answered: list[Result] = []

    def _posted(self, action: Callable[[], None]) -> None:
        self.by_worker += 1
        self.reactor.post(action)

    def change(self, path: str) -> None:
        """One round for one change."""
        expected = len(self.answered) + 1
        self.coordination.submit(Create(path, bytes(1000)), self.answered.append)
        self.rounds.start()
        deadline = time.monotonic() + 60
        while len(self.answered) < expected and not self.failures:
            assert time.monotonic() < deadline
            self.reactor.turn(100)

    def close(self) -> None:
        self.worker.stop()
        self.lane.stop()
        if not self.failures:
            self.coordination.close()
        self.reactor.close()


@pytest.fixture
def lane_rounds(tmp_path: Path) -> Any:
    made = LaneRounds(tmp_path / "tree")
    yield made
    made.close()


def test_usual_rounds_go_through_the_lane(lane_rounds: LaneRounds, tmp_path: Path) -> None:
    if open_direct(SystemFiles().create(str(tmp_path / "probe"))) is None:
        pytest.skip("this file system has no direct writes")
    for number in range(80):  # more than the log is filled ahead for, at first
        lane_rounds.change(f"/{number}")
    assert lane_rounds.by_worker < 10
    again = LocalCoordination(SystemFiles(), str(tmp_path / "tree"), SystemClock())
    assert len(again.children("/") or ()) == 81  # and /zookeeper


def test_what_is_refused_in_the_lane_the_worker_writes(
    lane_rounds: LaneRounds, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(direct_append, "_FLAGS", os.O_RDONLY)
    monkeypatch.setattr(direct_append, "_REFUSALS", (errno.EBADF,))  # as others say that they cannot do it
    for number in range(20):
        lane_rounds.change(f"/{number}")
    assert lane_rounds.by_worker >= 20
    again = LocalCoordination(SystemFiles(), str(tmp_path / "tree"), SystemClock())
    assert len(again.children("/") or ()) == 21


def test_what_fails_in_the_lane_is_final(
    lane_rounds: LaneRounds, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(direct_append, "_FLAGS", os.O_RDONLY)
    lane_rounds.change("/begins-the-log")
    lane_rounds.change("/is-not-written")
    [failure] = lane_rounds.failures
    assert isinstance(failure, OSError)
    assert failure.errno == errno.EBADF
    assert len(lane_rounds.answered) == 1
    again = LocalCoordination(SystemFiles(), str(tmp_path / "tree"), SystemClock())
    assert again.children("/") == ["begins-the-log", "zookeeper"]
