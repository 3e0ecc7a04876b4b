"""`ottla pipeline run` on a terminal: one table that is drawn anew, until Ctrl-C ends it."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from cli.program import Program
from cli.terminal import Terminal
from ottla.client import Admin, Producer
from ottla.testing import BrokerProcess
from pipeline.programs import PATIENCE_SECONDS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

DEFINITION = """\
[pipeline]
name = "shop"

[pipeline.spark]
"spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1"

[source.events]
topic = "events"
schema = "id BIGINT"

[step.valid]
input = "events"
expect = [{ name = "small", check = "id < 1000", action = "drop" }]

[sink.every_number_that_was_ever_seen_by_anybody]
input = "valid"
sqlite = "rows.db"
table = "rows"

[sink.copied]
input = "valid"
topic = "copied"
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "pipeline.toml").write_text(DEFINITION)
    return folder


def produce(bootstrap: str, numbers: range) -> None:
    with Producer(bootstrap) as producer:
        for number in numbers:
            producer.send("events", json.dumps({"id": number}).encode())


def stored(folder: Path) -> list[int]:
    with closing(sqlite3.connect(folder / "rows.db")) as database:
        try:
            return [row[0] for row in database.execute("SELECT id FROM rows ORDER BY id")]
        except sqlite3.OperationalError:  # the table comes with the first batch
            return []


def wait_until_stored(folder: Path, terminal: Terminal, count: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(stored(folder)) < count:
        assert terminal.process.poll() is None, terminal.text
        assert time.monotonic() < deadline, terminal.text
        terminal.look()


def test_a_run_draws_one_table_and_ctrl_c_stops_it(shop: Path, tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "broker") as broker:
        with Admin(broker.bootstrap) as admin:
            for topic in ("events", "copied"):
                admin.create_topic(topic, partitions=2)
        produce(broker.bootstrap, range(100))
        program = Program(tmp_path, {"OTTLA_BOOTSTRAP": broker.bootstrap})
        with Terminal(program, "pipeline", "run", "shop", NO_COLOR="1") as terminal:
            terminal.wait_for("Spark starts …")
            wait_until_stored(shop, terminal, 100)
            produce(broker.bootstrap, range(100, 200))
            wait_until_stored(shop, terminal, 200)
            terminal.interrupt()
            assert terminal.end(PATIENCE_SECONDS) == 0, terminal.text
    heading, *rows, last = terminal.screen()
    assert heading.split()[:3] == ["SINK", "STATE", "BATCH"]
    assert [row.split()[:2] for row in rows] == [
        ["every_number_that_was_ever_seen_by_anybody", "stopped"],
        ["copied", "stopped"],
        ["dead_letters", "stopped"],
    ]
    assert last == "shop stopped"
    assert stored(shop) == list(range(200))


def test_ctrl_c_while_spark_starts_ends_all_of_it(shop: Path, tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "broker") as broker:
        with Admin(broker.bootstrap) as admin:
            admin.create_topic("events", partitions=2)
        program = Program(tmp_path, {"OTTLA_BOOTSTRAP": broker.bootstrap})
        with Terminal(program, "pipeline", "run", "shop") as terminal:
            terminal.wait_for("Spark starts …")
            terminal.interrupt()
            assert terminal.end(PATIENCE_SECONDS) in (0, 130), terminal.text
        assert "Traceback" not in terminal.text
        wait_until_gone(terminal.process.pid)


def wait_until_gone(group: int) -> None:
    """The JVM is in the group of the program that started it."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        assert time.monotonic() < deadline
        time.sleep(0.1)
