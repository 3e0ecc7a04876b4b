"""A pipeline, unchanged, on a standalone cluster that loses a worker, and through Spark Connect."""

from __future__ import annotations

import json
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pyarrow.parquet
import pytest

from ottla.client import Admin, Producer, read
from ottla.testing import BrokerProcess
from pipeline.programs import batches_done, pipeline_program, wait_for_batches
from spark.clusters import Cluster, connect_server, standalone_cluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

RECORDS = 2_000
PATIENCE_SECONDS = 900  # for the rest of a run, on the one core that is left
DEFINITION = """\
[pipeline]
name = "away"

[source.events]
topic = "events"
schema = "id BIGINT, kind STRING"
batch_records_max = 200

[step.valid]
input = "events"
expect = [{ name = "a known kind", check = "kind <> 'odd'", action = "quarantine" }]

[step.named]
sql = "SELECT id, upper(kind) AS kind FROM valid"

[sink.copied]
input = "named"
topic = "copied"

[sink.rows]
input = "named"
sqlite = "rows.db"
table = "rows"

[sink.files]
input = "named"
parquet = "files"
"""
ODD = set(range(0, RECORDS, 200))
PLAIN = [number for number in range(RECORDS) if number not in ODD]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Named as a person does who stands beside it; workers and servers stand elsewhere."""
    home = tmp_path / "home"
    (home / "away").mkdir(parents=True)
    (home / "away" / "pipeline.toml").write_text(DEFINITION)
    monkeypatch.chdir(home)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    return Path("away")


def produce(bootstrap: str) -> None:
    with Admin(bootstrap) as admin:
        for topic in ("events", "copied", "away.dead-letters"):
            admin.create_topic(topic, partitions=3)
    with Producer(bootstrap) as producer:
        for number in range(RECORDS):
            event = {"id": number, "kind": "odd" if number in ODD else "plain"}
            producer.send("events", json.dumps(event).encode())


def check_sinks(folder: Path, bootstrap: str) -> None:
    copied = read(bootstrap, "copied", isolation_level="read_committed")
    assert sorted(json.loads(each.value or b"")["id"] for each in copied) == PLAIN
    with closing(sqlite3.connect(folder / "rows.db")) as database:
        assert [row[0] for row in database.execute("SELECT id FROM rows ORDER BY id")] == PLAIN
    assert sorted(pyarrow.parquet.read_table(folder / "files")["id"].to_pylist()) == PLAIN
    letters = read(bootstrap, "away.dead-letters", isolation_level="read_committed")
    assert sorted(json.loads(each.value or b"")["id"] for each in letters) == sorted(ODD)


def test_a_killed_worker_loses_and_doubles_nothing(folder: Path, tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "broker") as broker, standalone_cluster(tmp_path) as cluster:
        produce(broker.bootstrap)
        with pipeline_program(folder, broker.bootstrap, "--master", cluster.address) as process:
            wait_for_batches(folder, process, 8)
            wait_for_executors(cluster)
            cluster.kill_worker(1)
            wait_for_batches(folder, process, batches_done(folder) + 8)
            process.send_signal(signal.SIGINT)  # the run has survived it, and stops as it is asked to
            assert process.wait(PATIENCE_SECONDS) == 0, (folder / "out.txt").read_text()
        with pipeline_program(folder, broker.bootstrap, "--once", "--master", cluster.address) as process:
            assert process.wait(PATIENCE_SECONDS) == 0, (folder / "out.txt").read_text()
        check_sinks(folder, broker.bootstrap)


def wait_for_executors(cluster: Cluster) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while cluster.executors() != {1, 2}:
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_a_pipeline_runs_through_connect(folder: Path, tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "broker") as broker, connect_server(tmp_path) as address:
        produce(broker.bootstrap)
        with pipeline_program(folder, broker.bootstrap, "--master", address) as process:
            wait_for_batches(folder, process, 8)
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_SECONDS) == 0, (folder / "out.txt").read_text()
        assert "records read, " in (folder / "out.txt").read_text()
        with pipeline_program(folder, broker.bootstrap, "--once", "--master", address) as process:
            assert process.wait(PATIENCE_SECONDS) == 0, (folder / "out.txt").read_text()
        check_sinks(folder, broker.bootstrap)
