"""A machine so busy that Spark gives a Python worker up does not end a run."""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ottla.client import Admin, Producer
from ottla.testing import BrokerProcess
from pipeline.programs import PATIENCE_SECONDS, pipeline_program

DEFINITION = """\
[pipeline]
name = "patient"

[pipeline.spark]
"spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1"

[source.events]
topic = "events"
schema = "id BIGINT"

[sink.rows]
input = "events"
sqlite = "rows.db"
table = "rows"
"""
# Twice it starts a worker of a streaming source later than the ten seconds that Spark waits.
SLOW_PYTHON = """\
#!/bin/sh
case "$*" in *python_streaming_source_runner*)
    if mkdir {folder}/first || mkdir {folder}/second; then sleep 12; fi 2>/dev/null ;;
esac
exec {python} "$@"
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_worker_that_spark_gives_up_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pipeline.toml").write_text(DEFINITION)
    slow_python = tmp_path / "python"
    slow_python.write_text(SLOW_PYTHON.format(folder=tmp_path, python=sys.executable))
    slow_python.chmod(0o755)
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):  # whatever other tests of this process have set
        monkeypatch.setenv(name, str(slow_python))
    with BrokerProcess(tmp_path / "broker") as broker:
        with Admin(broker.bootstrap) as admin:
            admin.create_topic("events", partitions=2)
        with Producer(broker.bootstrap) as producer:
            for number in range(100):
                producer.send("events", json.dumps({"id": number}).encode())
        with pipeline_program(tmp_path, broker.bootstrap, "--once") as process:
            assert process.wait(PATIENCE_SECONDS) == 0, (tmp_path / "out.txt").read_text()
    assert (tmp_path / "second").exists()
    with closing(sqlite3.connect(tmp_path / "rows.db")) as database:
        assert sorted(row[0] for row in database.execute("SELECT id FROM rows")) == list(range(100))
