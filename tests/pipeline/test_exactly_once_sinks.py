"""Each input is in every sink exactly once, though Spark and the broker are killed with -9 on the way."""

from __future__ import annotations

import json
import random
import sqlite3
import time
from pathlib import Path

import pyarrow.parquet
import pytest

from client.patterns.databases import postgres_server
from ottla.client import Admin, Producer, read
from ottla.testing import BrokerProcess
from pipeline.programs import batches_done, pipeline_program, wait_for_batches

RECORDS = 3_000
PARTITIONS = 3
KEYS = 50
PATIENCE_SECONDS = 400

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


# What the long runs have beside it: PostgreSQL, and changes of 50 keys that end as the last one of each says.
MORE = """
[sink.server]
input = "rows"
postgresql = "{address}"
table = "rows"

[step.changes]
sql = "SELECT id % 50 AS key, id AS version, text FROM events"

[step.applied]
input = "changes"
cdc = {{ order_by = "version", delete_when = "version % 7 = 0" }}

[sink.delta_changes]
input = "applied"
delta = "changes"
keys = ["key"]

[sink.server_changes]
input = "applied"
postgresql = "{address}"
table = "changes"
keys = ["key"]
"""
LAST_CHANGES = {number % KEYS: number for number in range(RECORDS)}
CHANGED = sorted(number for number in LAST_CHANGES.values() if number % 7)


def produce(bootstrap: str, records: int) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic("events", partitions=PARTITIONS)
        admin.create_topic("copied", partitions=PARTITIONS)
    with Producer(bootstrap) as producer:
        for number in range(records):
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


def ids_on_the_server(folder: Path, address: str) -> dict[str, list[int]]:
    """And in the table of changes beside it."""
    import psycopg
    from deltalake import DeltaTable

    with psycopg.connect(address) as connection:
        rows = connection.execute("SELECT id FROM rows").fetchall()
        changes = connection.execute("SELECT version FROM changes").fetchall()
    return {
        "server": [row[0] for row in rows],
        "server_changes": [row[0] for row in changes],
        "delta_changes": DeltaTable(str(folder / "changes")).to_pyarrow_table()["version"].to_pylist(),
    }


def run_with_kills(
    tmp_path: Path, seed: int, rounds: int, address: str | None = None, records: int = RECORDS
) -> None:
    rng = random.Random(seed)
    more = "" if address is None else MORE.format(address=address)
    (tmp_path / "pipeline.toml").write_text(DEFINITION.format(folder=tmp_path) + more)
    with BrokerProcess(tmp_path / "broker") as broker:
        produce(broker.bootstrap, records)
        for number in range(rounds):
            with pipeline_program(tmp_path, broker.bootstrap) as process:
                wait_for_batches(tmp_path, process, batches_done(tmp_path) + rng.randrange(1, 8))
                if number % 2:
                    broker.kill()
                    broker.start()
                time.sleep(rng.random())
        with pipeline_program(tmp_path, broker.bootstrap, "--once") as process:
            assert process.wait(PATIENCE_SECONDS) == 0, (tmp_path / "out.txt").read_text()
        found = ids_in_sinks(tmp_path, broker.bootstrap)
        if address is not None:
            found |= ids_on_the_server(tmp_path, address)
        for sink, ids in found.items():
            wanted = CHANGED if sink.endswith("changes") else list(range(records))
            assert sorted(ids) == wanted, f"seed {seed}, {sink}"


@pytest.mark.timeout(600)
def test_kills_lose_and_double_nothing_in_any_sink(tmp_path: Path) -> None:
    run_with_kills(tmp_path, seed=1, rounds=2, records=RECORDS // 2)  # the kills come within these


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(6))
def test_many_kills_lose_and_double_nothing_in_any_sink(tmp_path: Path, seed: int) -> None:
    with postgres_server() as address:
        run_with_kills(tmp_path, seed, rounds=6, address=address)
