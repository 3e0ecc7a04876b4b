"""The embedded coordination answers in order, and only when what it says is durable."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from faults.power_cut import SimulatedFiles
from ottla.coordination.client import LOCAL_SESSION, LocalCoordination
from ottla.coordination.operations import Check, Code, Create, Delete, Multi, Result, SetData
from ottla.coordination.watches import EventType, WatchEvent
from ottla.log.system_files import SystemFiles
from ottla.model.clock import ManualClock

DIRECTORY = "/coordination"


@pytest.fixture
def files() -> SimulatedFiles:
    return SimulatedFiles()


@pytest.fixture
def coordination(files: SimulatedFiles) -> LocalCoordination:
    return LocalCoordination(files, DIRECTORY, ManualClock())


def test_an_answer_waits_until_its_change_is_durable(coordination: LocalCoordination) -> None:
    answers: list[Result] = []
    coordination.submit(Create("/a", b"1"), answers.append)
    found = coordination.read("/a")
    assert found is not None  # reads see what was applied
    assert found[0] == b"1"
    ticket = coordination.begin_sync()
    assert ticket is not None
    coordination.submit(Create("/b"), answers.append)
    assert coordination.begin_sync() is None
    ticket.run()
    assert answers == []
    coordination.finish_sync(ticket)
    assert [answer.steps[0].path for answer in answers] == ["/a"]
    coordination.sync()
    assert [answer.steps[0].path for answer in answers] == ["/a", "/b"]


def test_refusals_and_checks_are_answered_in_order_too(coordination: LocalCoordination) -> None:
    answers: list[tuple[str, Code]] = []

    def note(name: str) -> object:
        return lambda result: answers.append((name, result.code))

    coordination.submit(Create("/a"), note("create"))  # type: ignore[arg-type]
    coordination.submit(Create("/a"), note("again"))  # type: ignore[arg-type]
    coordination.submit(Check("/a", 0), note("check"))  # type: ignore[arg-type]
    coordination.submit(Delete("/a"), note("delete"))  # type: ignore[arg-type]
    assert answers == []
    coordination.sync()
    assert answers == [
        ("create", Code.OK),
        ("again", Code.NODE_EXISTS),
        ("check", Code.OK),
        ("delete", Code.OK),
    ]


def test_a_refusal_alone_needs_no_disk(coordination: LocalCoordination, files: SimulatedFiles) -> None:
    answers: list[Result] = []
    before = files.operations
    coordination.submit(Delete("/nothing"), answers.append)
    assert answers == []  # never called back from inside submit
    assert coordination.begin_sync() is None
    assert [answer.code for answer in answers] == [Code.NO_NODE]
    assert files.operations == before


def test_an_answer_may_submit_again(coordination: LocalCoordination) -> None:
    answers: list[Result] = []
    coordination.submit(Create("/a"), lambda _: coordination.submit(Create("/a/b"), answers.append))
    coordination.sync()
    assert [answer.steps[0].path for answer in answers] == ["/a/b"]


def test_a_watch_event_comes_before_the_answer_and_after_the_disk(coordination: LocalCoordination) -> None:
    seen: list[object] = []
    coordination.submit(Create("/a"), lambda _: None)
    coordination.sync()
    coordination.watch_data("/a", seen.append)
    coordination.watch_children("/", seen.append)
    coordination.submit(Multi([SetData("/a", b"x"), Create("/b")]), lambda result: seen.append(result.code))
    assert seen == []
    coordination.sync()
    assert seen == [
        WatchEvent(EventType.NODE_DATA_CHANGED, "/a", 2),
        WatchEvent(EventType.NODE_CHILDREN_CHANGED, "/", 2),
        Code.OK,
    ]


def test_times_come_from_the_clock(files: SimulatedFiles) -> None:
    clock = ManualClock(5_000)
    coordination = LocalCoordination(files, DIRECTORY, clock)
    coordination.submit(Create("/a"), lambda _: None)
    clock.advance(10)
    coordination.submit(SetData("/a", b""), lambda _: None)
    stat = coordination.exists("/a")
    assert stat is not None
    assert (stat.ctime_ms, stat.mtime_ms) == (5_000, 5_010)


def test_ephemeral_nodes_of_the_last_process_are_gone_those_of_clients_stay(files: SimulatedFiles) -> None:
    first = LocalCoordination(files, DIRECTORY, ManualClock())
    first.submit(Create("/mine", ephemeral=True), lambda _: None)
    first.submit(Create("/theirs", ephemeral=True), lambda _: None, session_id=0x1234)
    first.close()
    stat = first.exists("/mine")
    assert stat is not None
    assert stat.ephemeral_owner == LOCAL_SESSION
    second = LocalCoordination(files, DIRECTORY, ManualClock())
    assert second.children("/") == ["theirs", "zookeeper"]
    second.close()


def test_closing_answers_everything(coordination: LocalCoordination, files: SimulatedFiles) -> None:
    answers: list[Result] = []
    coordination.submit(Create("/a"), answers.append)
    coordination.submit(Delete("/nothing"), answers.append)
    coordination.close()
    assert [answer.code for answer in answers] == [Code.OK, Code.NO_NODE]
    assert files.open_count == 0


def test_on_real_files_with_rounds_in_another_thread(tmp_path: Path) -> None:
    directory = str(tmp_path / "coordination")
    answers: list[Result] = []
    coordination = LocalCoordination(SystemFiles(), directory, ManualClock(), snapshot_log_bytes=5_000)
    with ThreadPoolExecutor(1) as worker:
        for number in range(300):
            coordination.submit(Create(f"/{number}", b"x" * number), answers.append)
            if (ticket := coordination.begin_sync()) is not None:
                under_way = worker.submit(ticket.run)
                coordination.submit(SetData("/0", b"%d" % number), answers.append)
                under_way.result()
                coordination.finish_sync(ticket)
    coordination.close()
    assert len(answers) == 600
    assert all(answer.ok for answer in answers)
    assert 0 < len(list(tmp_path.glob("coordination/snapshot.*"))) < 5
    again = LocalCoordination(SystemFiles(), directory, ManualClock())
    assert {path: again.read(path) for path in map("/{}".format, range(300))} == {
        path: coordination.read(path) for path in map("/{}".format, range(300))
    }
    again.close()
