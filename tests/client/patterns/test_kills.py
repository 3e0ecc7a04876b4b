"""Outbox and half messages under kill -9 of real processes: a change and its message, both or neither."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import pytest

from client.conftest import NewTopicName
from ottla.client import Admin, Producer, read
from ottla.client.patterns import HalfMessages, Outbox

pytestmark = pytest.mark.timeout(600)


class Scene:
    """A topic, a database, and workers on them that may be killed."""

    def __init__(self, bootstrap: str, topic: str, folder: Path) -> None:
        self.bootstrap, self.topic, self.path = bootstrap, topic, folder / f"{topic}.db"
        self.halves = HalfMessages(f"{topic}.half")
        with closing(sqlite3.connect(self.path)) as connection:
            connection.execute("CREATE TABLE orders (id TEXT PRIMARY KEY)")
            Outbox().create(connection)
            connection.commit()
        with Admin(bootstrap) as admin:
            self.halves.create(admin)

    def run(self, role: str, moment: str = "") -> list[str]:
        """The moments that the worker has passed; where `moment` is among them, it was killed there."""
        command = [sys.executable, "-m", "client.patterns.mortal_worker"]
        worker = subprocess.run(
            [*command, role, self.bootstrap, self.topic, self.path, moment],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            timeout=120,
            text=True,
        )
        passed = worker.stdout.splitlines()
        assert worker.returncode == (-signal.SIGKILL if moment in passed else 0), moment
        return passed

    def add(self, values: Iterable[int]) -> None:
        with closing(sqlite3.connect(self.path)) as connection:
            for value in values:
                Outbox().add(connection, self.topic, b"%d" % value)
            connection.commit()

    def orders(self) -> int:
        with closing(sqlite3.connect(self.path)) as connection:
            return int(connection.execute("SELECT COUNT(*) FROM orders").fetchone()[0])

    def delivered(self) -> list[int]:
        with read(self.bootstrap, self.topic, isolation_level="read_committed") as reading:
            return [int(record.value) for record in reading]

    def relay_halves(self, moment: str = "") -> list[str]:
        """Until everything that was prepared before is settled."""
        with Producer(self.bootstrap) as producer:
            self.halves.prepare(producer, self.topic, b"last")
        return self.run("half_relay", moment)


@pytest.fixture
def new_scene(bootstrap: str, new_topic: NewTopicName, tmp_path: Path) -> Callable[[], Scene]:
    return lambda: Scene(bootstrap, new_topic(1), tmp_path)


WORST_FOR_RELAYS = (
    "before send_offsets_to_transaction 1",
    "before commit_transaction 1",
    "after commit_transaction 1",
)


def kill_outbox_relays(scene: Scene, moments: Iterable[str]) -> None:
    values = 0
    for moment in moments:
        scene.add(range(values, values + 3))
        values += 3
        assert moment in scene.run("relay", moment)
    scene.run("relay")
    assert scene.delivered() == list(range(values))


def test_a_killed_relay_of_an_outbox_loses_and_doubles_nothing(new_scene: Callable[[], Scene]) -> None:
    kill_outbox_relays(new_scene(), WORST_FOR_RELAYS)


@pytest.mark.slow
def test_a_relay_of_an_outbox_may_be_killed_at_every_moment(new_scene: Callable[[], Scene]) -> None:
    scene = new_scene()
    scene.add(range(3))
    moments = scene.run("relay")
    assert len(moments) > 15
    kill_outbox_relays(new_scene(), moments)


def test_an_application_killed_around_its_commit_leaves_both_or_neither(
    new_scene: Callable[[], Scene],
) -> None:
    for moment, count in (("before database-commit 1", 0), ("after database-commit 1", 1)):
        scene = new_scene()
        assert moment in scene.run("order", moment)
        scene.run("relay")
        assert (scene.orders(), len(scene.delivered())) == (count, count)


@pytest.mark.parametrize(
    ("moment", "count"),
    [
        # perhaps: nobody has waited for it
        pytest.param("after send 1", 0, id="prepared", marks=pytest.mark.slow),
        pytest.param("before database-commit 1", 0, id="before the change"),
        pytest.param("after database-commit 1", 1, id="after the change"),
        pytest.param("after send 2", 1, id="decided", marks=pytest.mark.slow),
        pytest.param("", 1, id="never", marks=pytest.mark.slow),
    ],
)
def test_an_application_killed_around_a_half_message_leaves_both_or_neither(
    new_scene: Callable[[], Scene], moment: str, count: int
) -> None:
    scene = new_scene()
    passed = scene.run("half_order", moment)
    assert not moment or moment in passed
    scene.relay_halves()
    assert (scene.orders(), len(scene.delivered())) == (count, count)


def kill_half_relays(scene: Scene, moments: Iterable[str]) -> int:
    """How often one was killed: whether there is a second transaction is up to how fast things go."""
    expected, kills = [], 0
    with Producer(scene.bootstrap) as producer:
        for number, moment in enumerate(moments):
            half = scene.halves.prepare(producer, scene.topic, b"%d" % number, key=b"k")
            if number % 3 == 1:
                half.roll_back()
            else:
                half.commit()
                expected.append(number)
            kills += moment in scene.relay_halves(moment)
    scene.relay_halves()
    assert scene.delivered() == expected
    return kills


def test_a_killed_relay_of_half_messages_loses_and_doubles_nothing(new_scene: Callable[[], Scene]) -> None:
    assert kill_half_relays(new_scene(), WORST_FOR_RELAYS) == len(WORST_FOR_RELAYS)


@pytest.mark.slow
def test_a_relay_of_half_messages_may_be_killed_at_every_moment(new_scene: Callable[[], Scene]) -> None:
    scene = new_scene()
    with Producer(scene.bootstrap) as producer:
        scene.halves.prepare(producer, scene.topic, b"0").commit()
    assert kill_half_relays(new_scene(), scene.relay_halves()) >= 10
