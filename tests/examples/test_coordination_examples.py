"""The examples of coordination do what they say, with processes that are killed on the way."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.testing import CoordinationProcess

EXAMPLES = Path(__file__).parents[2] / "examples" / "coordination"
PATIENCE_SECONDS = 60


class Example:
    """One process of an example, and what it has said so far."""

    def __init__(self, address: str, arguments: tuple[str, ...]) -> None:
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, str(EXAMPLES / arguments[0]), *arguments[1:]],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "ZOOKEEPER": address, "SESSION_SECONDS": "1"},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def wait_for(self, line: str) -> None:
        wait_until(lambda: line in self.lines, f"{line!r} among {self.lines}")

    def end(self) -> list[str]:
        assert self.process.wait(PATIENCE_SECONDS) == 0
        self._reader.join(PATIENCE_SECONDS)
        return self.lines

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_SECONDS)
        self._reader.join(PATIENCE_SECONDS)
        assert self.process.stdout is not None
        self.process.stdout.close()


def wait_until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


Run = Callable[..., Example]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Starts a process of an example; all of them are killed at the end."""
    started: list[Example] = []
    with CoordinationProcess(tmp_path, {"tickTime": "500"}) as service:

        def run(*arguments: str) -> Example:
            example = Example(service.zookeeper, arguments)
            started.append(example)
            return example

        yield run
        for example in started:
            example.kill()


def test_a_change_of_the_configuration_reaches_three_processes(run: Run) -> None:
    followers = {name: run("shared_configuration.py", "follow", name) for name in ("a", "b", "c")}
    for name, follower in followers.items():
        follower.wait_for(f"{name} sees {{}}")
    run("shared_configuration.py", "set", "limit", "100").end()
    for name, follower in followers.items():
        follower.wait_for(f'{name} sees {{"limit": "100"}}')
    changes = [run("shared_configuration.py", "set", f"key{number}", "x") for number in range(3)]
    for change in changes:
        change.end()
    wait_until(
        lambda: all(
            all(f"key{number}" in one.lines[-1] for number in range(3)) for one in followers.values()
        ),
        "a change was lost",
    )


def test_names_are_found_while_their_process_lives(run: Run) -> None:
    first = run("naming.py", "register", "orders", "10.0.0.1:80")
    first.wait_for("orders is at 10.0.0.1:80")
    run("naming.py", "register", "orders", "10.0.0.2:80").wait_for("orders is at 10.0.0.2:80")
    assert run("naming.py", "find", "orders").end() == ["10.0.0.1:80", "10.0.0.2:80"]
    first.kill()
    wait_until(
        lambda: run("naming.py", "find", "orders").end() == ["10.0.0.2:80"], "the dead one is found still"
    )
    numbers = [run("naming.py", "number").end()[0] for _ in range(3)]
    assert numbers == ["0", "1", "2"]


def test_a_release_of_the_lock_wakes_exactly_one_waiter(run: Run) -> None:
    holder = run("lock.py", "first", "600")
    holder.wait_for("first holds the lock")
    waiters = []
    for number, name in enumerate(("second", "third", "fourth")):
        waiters.append(run("lock.py", name, "600"))
        waiters[-1].wait_for(f"{name} waits for place-{number:010}")
    holder.kill()
    second, third, fourth = waiters
    second.wait_for("second holds the lock")
    assert second.lines == ["second waits for place-0000000000", "second is woken", "second holds the lock"]
    assert third.lines == ["third waits for place-0000000001"]
    assert fourth.lines == ["fourth waits for place-0000000002"]


def test_a_lock_that_is_given_back_goes_to_the_next(run: Run) -> None:
    first = run("lock.py", "first", "0.2")
    first.wait_for("first holds the lock")
    second = run("lock.py", "second", "0")
    assert first.end()[-1] == "first gives it back"
    assert second.end()[-2:] == ["second holds the lock", "second gives it back"]


def test_a_member_that_is_killed_is_missed_by_the_others(run: Run) -> None:
    members = {name: run("membership.py", name) for name in ("ada", "bob", "eve")}
    for name, member in members.items():
        member.wait_for(f"{name} sees ada, bob, eve")
    members["bob"].kill()
    for name in ("ada", "eve"):
        members[name].wait_for(f"{name} sees ada, eve")


def test_when_the_master_is_killed_the_next_in_line_takes_over(run: Run) -> None:
    first = run("election.py", "first")
    first.wait_for("first is the master")
    second = run("election.py", "second")
    second.wait_for("second follows")
    third = run("election.py", "third")
    third.wait_for("third follows")
    first.kill()
    second.wait_for("second is the master")
    assert third.lines == ["third follows"]
