"""Work in slices: interrupted when its time is up, resumed in turn, and never while a disk is waited for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.log.file_range import FileRange
from ottla.log.system_files import SystemFiles
from ottla.model.clock import ManualClock
from ottla.protocol.fields import Message
from ottla.protocol.messages.api_versions import ApiVersionsResponse
from ottla.server.long_requests import LongRequests, Steps

ANSWER = ApiVersionsResponse()


class Asked:
    """As much of an exchange as its work sees."""

    def __init__(self) -> None:
        self.abandoned = False
        self.answers: list[Message] = []
        self.failures: list[Exception] = []
        self.answer = self.answers.append
        self.fail = self.failures.append


class Bench:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.posted: list[Callable[[], None]] = []
        self.offloaded: list[tuple[Callable[[], None], Callable[[BaseException | None], None]]] = []
        self.long_requests = LongRequests(
            self.clock, self.posted.append, lambda work, done: self.offloaded.append((work, done))
        )

    def begin(self, steps: Steps) -> Asked:
        asked = Asked()
        self.long_requests.begin(asked, steps)
        return asked

    def turn(self) -> None:
        posted, self.posted[:] = self.posted[:], []
        for action in posted:
            action()


@pytest.fixture
def bench() -> Bench:
    return Bench()


def steps(bench: Bench, trace: list[str], name: str, count: int, ms_each: int = 1) -> Steps:
    for number in range(count):
        yield None
        trace.append(f"{name}{number}")
        bench.clock.advance(ms_each)
    return ANSWER


def test_short_work_is_done_at_once(bench: Bench) -> None:
    asked = bench.begin(steps(bench, [], "a", 3, ms_each=0))
    assert asked.answers == [ANSWER]
    assert not bench.posted


def test_long_work_is_interrupted_and_goes_on_in_later_turns(bench: Bench) -> None:
    trace: list[str] = []
    asked = bench.begin(steps(bench, trace, "a", 10))
    assert len(trace) == 3  # the third of them took it over the limit
    turns = 0
    while not asked.answers:
        bench.turn()
        turns += 1
    assert trace == [f"a{number}" for number in range(10)]
    assert turns == 3
    assert not bench.posted


def test_long_works_take_turns(bench: Bench) -> None:
    trace: list[str] = []
    first = bench.begin(steps(bench, trace, "a", 9))
    second = bench.begin(steps(bench, trace, "b", 9))
    while not (first.answers and second.answers):
        assert len(bench.posted) == 1
        bench.turn()
    order = [name[0] for name in trace]
    assert order == ["a"] * 3 + ["b"] * 3 + ["a"] * 3 + ["b"] * 3 + ["a"] * 3 + ["b"] * 3


def test_work_of_a_peer_that_left_ends(bench: Bench) -> None:
    trace: list[str] = []
    asked = bench.begin(steps(bench, trace, "a", 100))
    asked.abandoned = True
    done = len(trace)
    for _ in range(5):
        bench.turn()
    assert len(trace) <= done + 1
    assert not bench.posted
    assert not asked.answers


def test_a_bug_fails_only_its_own_request(bench: Bench) -> None:
    def broken() -> Steps:
        yield None
        raise KeyError("oops")

    asked = bench.begin(broken())
    assert isinstance(asked.failures[0], KeyError)
    assert not asked.answers


@pytest.fixture
def piece(tmp_path: Path) -> FileRange:
    handle = SystemFiles().create(str(tmp_path / "data"))
    handle.append([b"abc"])
    return FileRange(handle, 0, 3)


def test_what_is_cold_is_read_by_a_worker_first(bench: Bench, piece: FileRange) -> None:
    def reads() -> Steps:
        yield piece
        return ANSWER

    asked = bench.begin(reads())
    assert not asked.answers
    ((work, done),) = bench.offloaded
    work()
    done(None)
    assert asked.answers == [ANSWER]


def test_a_failed_read_is_raised_where_it_was_asked_for(bench: Bench, piece: FileRange) -> None:
    caught: list[OSError] = []

    def reads() -> Steps:
        try:
            yield piece
        except OSError as error:
            caught.append(error)
        return ANSWER

    asked = bench.begin(reads())
    ((_, done),) = bench.offloaded
    done(OSError(5, "sick"))
    assert [error.errno for error in caught] == [5]
    assert asked.answers == [ANSWER]
