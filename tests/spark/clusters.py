"""A standalone cluster and a Connect server of Spark, as processes of their own on this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

_SPARK_HOME = Path(pyspark.__file__).parent
_TESTS = Path(__file__).parents[1]
_START_SECONDS_MAX = 120

Process = subprocess.Popen[bytes]


@dataclass(frozen=True)
class Cluster:
    address: str
    folder: Path
    workers: tuple[Process, ...]

    def kill_worker(self, number: int) -> None:
        """With its executors, as a machine that is switched off."""
        os.killpg(self.workers[number - 1].pid, signal.SIGKILL)

    def executors(self) -> set[int]:
        """The numbers of the workers that have had one."""
        logs = self.folder.glob("work-*/app-*/*/stderr")
        return {int(path.parts[-4].removeprefix("work-")) for path in logs}


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[Cluster]:
    """A master and two workers of one core."""
    with ExitStack() as stack:
        port = _free_port()
        address = f"spark://127.0.0.1:{port}"
        master = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port)]
        stack.enter_context(_running([*master, "--webui-port", "0"], folder / "master"))
        _await_port(port)
        workers = []
        for number in (1, 2):
            worker = ["org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0"]
            resources = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work-{number}")]
            command = [*worker, *resources, address]
            workers.append(stack.enter_context(_running(command, folder / f"worker-{number}")))
        yield Cluster(address, folder, tuple(workers))


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    port = _free_port()
    server = [
        "org.apache.spark.deploy.SparkSubmit",
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *("--master", "local[2]", "--conf", f"spark.connect.grpc.binding.port={port}"),
        *("--conf", "spark.ui.enabled=false", "--conf", "spark.driver.host=127.0.0.1"),
        "spark-internal",
    ]
    with _running(server, folder / "server"):
        _await_port(port)
        yield f"sc://127.0.0.1:{port}"


def environment() -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(_TESTS), *sys.path]),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
    }


@contextmanager
def _running(arguments: list[str], log: Path) -> Iterator[Process]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(_SPARK_HOME / "bin" / "spark-class"), *arguments],
            env=environment(),
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


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
