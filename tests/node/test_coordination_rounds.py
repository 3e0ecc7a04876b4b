"""Which changes share a sync round: all that are there, and on a slow disk those who are about to come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from faults.power_cut import SimulatedFiles
from ottla.coordination.client import LocalCoordination
from ottla.coordination.operations import Create, Result
from ottla.model.clock import ManualClock
from ottla.model.metrics import Registry
from ottla.node.coordination_rounds import CoordinationRounds
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
