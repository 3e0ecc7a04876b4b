"""Each input is in every sink exactly once, though Spark and the broker are killed with -9 on the way."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet
import pytest

from ottla.client import Admin, Producer, read
from ottla.testing import BrokerProcess

RECORDS = 3_000
PARTITIONS = 3
PATIENCE_SECONDS = 200

DEFINITION = """\
[pipeline]
name = "everywhere"

[pipeline.spark]
"spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1"

[source.events]
topic = "events"
schema = "id BIGINT, text STRING"
batch_records_max = 300

[step.rows]
sql = "SELECT id, upper(text) AS text FROM events"

[sink.topic]
input = "rows"
topic = "copied"

[sink.files]
input = "rows"
parquet = "files"

[sink.database]
input = "rows"
sqlite = "rows.db"
table = "rows"

[sink.delta]
input = "rows"
delta = "delta"

[sink.iceberg]
input = "rows"
iceberg = "lake.rows"
catalog = {{ type = "sql", uri = "sqlite:///{folder}/catalog.db", warehouse = "file://{folder}/lake" }}
"""


@contextmanager
def running(folder: Path, bootstrap: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """The program, with its JVM and its workers in one session; whatever is left of it is killed."""
    with (folder / "out.txt").open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "ottla", "pipeline", "run", str(folder), "-b", bootstrap, *options],
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def batches_done(folder: Path) -> int:
    try:
        told = json.loads((folder / ".state" / "status.json").read_text())
    except FileNotFoundError:
        return 0
    return sum(0 if sink["batch"] is None else sink["batch"] + 1 for sink in told["sinks"])


def wait_for_batches(folder: Path, process: subprocess.Popen[bytes], count: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while batches_done(folder) < count:
        assert process.poll() is None, (folder / "out.txt").read_text()
        assert time.monotonic() < deadline, (folder / "out.txt").read_text()
        time.sleep(0.05)


def produce(bootstrap: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic("events", partitions=PARTITIONS)
        admin.create_topic("copied", partitions=PARTITIONS)
    with Producer(bootstrap) as producer:
        for number in range(RECORDS):
            producer.send("events", json.dumps({"id": number, "text": f"t{number}"}).encode())


def ids_in_sinks(folder: Path, bootstrap: str) -> dict[str, list[int]]:
    from deltalake import DeltaTable
    from pyiceberg.catalog import load_catalog

    catalog = load_catalog("default", type="sql", uri=f"sqlite:///{folder}/catalog.db")
    copied = read(bootstrap, "copied", isolation_level="read_committed")
    with sqlite3.connect(folder / "rows.db") as database:
        rows = database.execute("SELECT id FROM rows").fetchall()
    return {
        "topic": [json.loads(record.value or b"")["id"] for record in copied],
        "files": pyarrow.parquet.read_table(folder / "files")["id"].to_pylist(),
        "database": [row[0] for row in rows],
        "delta": DeltaTable(str(folder / "delta")).to_pyarrow_table()["id"].to_pylist(),
        "iceberg": catalog.load_table("lake.rows").scan().to_arrow()["id"].to_pylist(),
    }


def run_with_kills(tmp_path: Path, seed: int, rounds: int) -> None:
    rng = random.Random(seed)
    (tmp_path / "pipeline.toml").write_text(DEFINITION.format(folder=tmp_path))
    with BrokerProcess(tmp_path / "broker") as broker:
        produce(broker.bootstrap)
        for number in range(rounds):
            with running(tmp_path, broker.bootstrap) as process:
                wait_for_batches(tmp_path, process, batches_done(tmp_path) + rng.randrange(1, 8))
                if number % 2:
                    broker.kill()
                    broker.start()
                time.sleep(rng.random())
        with running(tmp_path, broker.bootstrap, "--once") as process:
            assert process.wait(PATIENCE_SECONDS) == 0, (tmp_path / "out.txt").read_text()
        for sink, ids in ids_in_sinks(tmp_path, broker.bootstrap).items():
            assert sorted(ids) == list(range(RECORDS)), f"seed {seed}, {sink}"


@pytest.mark.timeout(600)
def test_kills_lose_and_double_nothing_in_any_sink(tmp_path: Path) -> None:
    run_with_kills(tmp_path, seed=1, rounds=2)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(6))
def test_many_kills_lose_and_double_nothing_in_any_sink(tmp_path: Path, seed: int) -> None:
    run_with_kills(tmp_path, seed, rounds=6)
