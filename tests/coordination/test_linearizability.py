"""Concurrent clients, kills and power cuts: all that they saw fits one order of writes, and is fresh."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest

from coordination import served
from coordination.histories import Call, problems
from coordination.served import Served, Visitor
from faults.power_cut import PowerCut, SimulatedFiles
from ottla.coordination.client import Answer, LocalCoordination
from ottla.coordination.operations import Code, Create, Multi, Result, SetData
from ottla.coordination.reads import GetData
from ottla.coordination.watches import WatchEvent

PATHS = ("/a", "/b", "/c")


class Hearing(Visitor):
    """Tells of events at once."""

    def __init__(self, served: Served, hear: Callable[[WatchEvent], None]) -> None:
        super().__init__(served)
        self.hear = hear

    def notify(self, event: WatchEvent) -> None:
        self.hear(event)


class Recorded:
    """A client that does one thing at a time and writes down what it sees."""

    def __init__(
        self, number: int, rng: random.Random, clock: itertools.count[int], calls: list[Call]
    ) -> None:
        self.number = number
        self.rng = rng
        self.clock = clock
        self.calls = calls
        self.values = (b"%d-%d" % (number, count) for count in itertools.count())
        self.under_way: Call | None = None
        self.versions: dict[str, int] = {}

    def connect(self, served: Served) -> None:
        self.under_way = None  # a write that was under way stays in the calls, without an end
        now = next(self.clock)
        self.calls.append(Call(self.number, "connect", "", now, now))
        self.visitor = Hearing(served, self.notified)
        served.service.open_session(self.visitor.client, 10_000, lambda _: None)

    def notified(self, event: WatchEvent) -> None:
        now = next(self.clock)
        self.calls.append(Call(self.number, "event", event.path, now, now, zxid=event.zxid))

    def act(self) -> None:
        if self.under_way is not None:
            return
        path = self.rng.choice(PATHS)
        service, client = self.visitor.served.service, self.visitor.client
        if self.rng.random() < 0.5:
            call = self.begin("write", path)
            call.value = next(self.values)
            if self.rng.random() < 0.3:
                call.expected_version = self.versions.get(path, 0)
            operation = SetData(path, call.value, call.expected_version)
            service.submit(client, operation, lambda result: self.written(call, result))
        else:
            call = self.begin("read", path)
            call.watch = self.rng.random() < 0.5
            service.read(client, GetData(path, call.watch), lambda answer: self.read(call, answer))

    def begin(self, kind: str, path: str) -> Call:
        self.under_way = Call(self.number, kind, path, next(self.clock), None)  # type: ignore[arg-type]
        if kind == "write":
            self.calls.append(self.under_way)
        return self.under_way

    def written(self, call: Call, result: Result) -> None:
        self.under_way = None
        if result.code is Code.BAD_VERSION:
            self.calls.remove(call)
            return
        stat = result.steps[0].stat
        assert stat is not None
        call.ended, call.zxid, call.version = next(self.clock), result.zxid, stat.version
        assert stat.mzxid == result.zxid
        self.versions[call.path] = stat.version

    def read(self, call: Call, answer: Answer) -> None:
        self.under_way = None
        call.value, stat = answer.value
        call.ended, call.zxid, call.version = next(self.clock), stat.mzxid, stat.version
        self.versions[call.path] = stat.version
        self.calls.append(call)


def history(seed: int, lives: int) -> list[Call]:
    rng = random.Random(seed)
    clock: itertools.count[int] = itertools.count()
    calls: list[Call] = []
    served = Served(SimulatedFiles(), snapshot_log_bytes=3_000)
    for path in PATHS:
        served.coordination.submit(Multi([Create(path, b"-")]), lambda _: None)
    served.coordination.sync()
    for path in PATHS:
        stat = served.coordination.exists(path)
        assert stat is not None
        began = next(clock)
        calls.append(Call(0, "write", path, began, next(clock), b"-", stat.mzxid, 0))
    clients = [Recorded(number, rng, clock, calls) for number in range(1, 6)]
    for _ in range(lives):
        for client in clients:
            client.connect(served)
        served.files.stop_at = served.files.operations + rng.randrange(10, 60)
        try:
            while True:
                live(served, clients, rng)
        except PowerCut:
            pass
        cut = rng.random() < 0.5  # else the process was killed
        served.files.stop_at = None
        served = Served(served.files.cut(seed) if cut else served.files, served.clock)
    return calls


def live(served: Served, clients: list[Recorded], rng: random.Random) -> None:
    def act() -> None:
        for _ in range(rng.randrange(8)):
            rng.choice(clients).act()

    act()
    ticket = served.coordination.begin_sync()
    act()
    if ticket is not None:
        ticket.run()
        act()
        served.coordination.finish_sync(ticket)


def check(seed: int) -> None:
    calls = history(seed, 3)
    assert sum(call.kind == "read" for call in calls) > 10
    assert problems(calls, linearizable_reads=True) == []


@pytest.mark.parametrize("seed", range(30))
def test_what_clients_saw_fits_one_order(seed: int) -> None:
    check(seed)


@pytest.mark.slow
def test_what_clients_saw_fits_one_order_many_times() -> None:
    for seed in range(1_000, 2_000):
        check(seed)


class Hasty(LocalCoordination):
    """Its reads do not wait for the disk."""

    def answer(self, *answer: Any) -> None:
        _, _, done, code, value, _ = answer
        done(Answer(code, 0, value))


def test_a_service_that_shows_what_is_not_durable_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "LocalCoordination", Hasty)
    assert any(problems(history(seed, 3), linearizable_reads=True) for seed in range(20))
