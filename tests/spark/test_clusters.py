"""The same job, unchanged, on a standalone cluster (a master and two workers) and through Spark Connect."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

from compat.broker import unique_name
from ottla.client import read
from ottla.client.admin import Admin
from ottla.client.producer import Producer
from ottla.testing import BrokerProcess

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

_SPARK_HOME = Path(pyspark.__file__).parent
_JOB = Path(__file__).parent / "faults" / "copy_job.py"
_START_SECONDS_MAX = 120
_COUNT = 500


@pytest.fixture
def topics(broker: BrokerProcess, admin: Admin) -> tuple[str, str]:
    source, sink = unique_name("source"), unique_name("sink")
    for topic in (source, sink):
        admin.create_topic(topic, partitions=3, replication_factor=1)
    with Producer(broker.bootstrap) as producer:
        for number in range(_COUNT):
            producer.send(source, b"%d" % number, key=b"%d" % number)
    return source, sink


def test_a_standalone_cluster_copies_a_topic_exactly_once(
    broker: BrokerProcess, topics: tuple[str, str], tmp_path: Path
) -> None:
    with ExitStack() as cluster:
        port = _free_port()
        master = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port)]
        cluster.enter_context(_running([*master, "--webui-port", "0"], tmp_path / "master"))
        _await_port(port)
        for number in (1, 2):
            worker = ["org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0"]
            resources = ["--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / f"work-{number}")]
            address = f"spark://127.0.0.1:{port}"
            cluster.enter_context(_running([*worker, *resources, address], tmp_path / f"worker-{number}"))
        _copy(broker, topics, tmp_path, f"spark://127.0.0.1:{port}")
        executors = list(tmp_path.glob("work-*/app-*/*/stderr"))
        assert len({path.parts[-4] for path in executors}) == 2  # both of them had an executor


def test_spark_connect_copies_a_topic_exactly_once(
    broker: BrokerProcess, topics: tuple[str, str], tmp_path: Path
) -> None:
    port = _free_port()
    server = [
        "org.apache.spark.deploy.SparkSubmit",
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *("--master", "local[2]", "--conf", f"spark.connect.grpc.binding.port={port}"),
        *("--conf", "spark.ui.enabled=false", "--conf", "spark.driver.host=127.0.0.1"),
        "spark-internal",
    ]
    with _running(server, tmp_path / "server"):
        _await_port(port)
        _copy(broker, topics, tmp_path, f"sc://127.0.0.1:{port}")


def _copy(broker: BrokerProcess, topics: tuple[str, str], place: Path, master: str) -> None:
    command = [sys.executable, str(_JOB), broker.bootstrap, *topics, str(place / "checkpoint"), master]
    done = subprocess.run(
        command, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=500
    )
    assert done.returncode == 0, done.stdout[-4000:]
    committed = read(broker.bootstrap, topics[1], **{"isolation.level": "read_committed"})
    assert Counter(each.value for each in committed) == Counter(b"%d" % number for number in range(_COUNT))


@contextmanager
def _running(arguments: list[str], log: Path) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(_SPARK_HOME / "bin" / "spark-class"), *arguments],
            env=_environment(),
            stdout=output,
            stderr=output,
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


def _environment() -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(_JOB.parents[2]), *sys.path]),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _await_port(port: int) -> None:
    deadline = time.monotonic() + _START_SECONDS_MAX
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.2)
