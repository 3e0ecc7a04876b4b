"""Fetches and builds the drivers in other languages, once per change of their sources, below `.interop/`.

Versions are pinned beside the sources (pom.xml, go.sum, package-lock.json); nothing is written outside of
`.interop/`, which `make clean` removes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

_SOURCES = Path(__file__).parent
_OUTPUT = _SOURCES.parents[1] / ".interop"
_TIMEOUT_S = 900


def java_command() -> list[str]:
    """What starts one of our Java drivers or of Kafka's tools, up to the name of its class."""
    output = _OUTPUT / "java"
    lint = ["-Xlint:all,-path", "-Werror"]
    _build("java", ["mvn", "javac", "java"], lambda: _build_java("java", output, lint))
    classpath = os.pathsep.join([str(output / "classes"), str(output / "lib" / "*")])
    return _java(classpath)


def zookeeper_mode_command() -> list[str]:
    """What starts a program of Kafka 3.9, the last one on ZooKeeper, up to the name of its class."""
    output = _OUTPUT / "kafka39"
    _build("kafka39", ["mvn", "java"], lambda: _copy_jars("kafka39", output))
    return _java(str(output / "lib" / "*"))


def _java(classpath: str) -> list[str]:
    # Programs that live for seconds: neither the second compiler nor threads for the garbage are worth it.
    return ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", classpath]


def zookeeper_command() -> list[str]:
    """What starts Apache ZooKeeper's server, shell or one of our drivers, up to the name of its class."""
    output = _OUTPUT / "zookeeper"
    # Its classes carry annotations that its jars do not, and its close() may be interrupted.
    lint = ["-Xlint:all,-path,-classfile,-try"]
    _build("zookeeper", ["mvn", "javac", "java"], lambda: _build_java("zookeeper", output, lint))
    return _java(os.pathsep.join([str(output / "classes"), str(output / "lib" / "*")]))


def spark_connector_jars() -> list[Path]:
    """Spark's own Kafka connector and what it needs."""
    output = _OUTPUT / "spark"
    _build("spark", ["mvn", "java"], lambda: _copy_jars("spark", output))
    return sorted((output / "lib").glob("*.jar"))


def registry_command(port: int) -> list[str]:
    """What starts a schema registry; its interface for Confluent's clients is at /apis/ccompat/v7."""
    output = _OUTPUT / "registry"
    _build("registry", ["mvn", "java"], lambda: _unpack("registry", output))
    (program,) = output.glob("*-runner.jar")
    options = [f"-Dquarkus.http.port={port}", "-Dquarkus.http.host=127.0.0.1", "-Xmx400m"]
    return ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *options, "-jar", str(program)]


def confluent_avro_packages() -> Path:
    """A folder with Confluent's client and its serializers, for a process of their own."""
    output = _OUTPUT / "confluent_avro"
    _build("confluent_avro", [], lambda: _install_packages("confluent_avro", output))
    return output / "packages"


def go_driver() -> Path:
    return _go_driver("go")


def zookeeper_go_driver() -> Path:
    return _go_driver("zookeeper_go")


def _go_driver(folder: str) -> Path:
    output = _OUTPUT / folder
    _build(folder, ["go"], lambda: _build_go(folder, output))
    return output / "driver"


def node_driver() -> Path:
    output = _OUTPUT / "node"
    _build("node", ["npm", "node"], lambda: _build_node(output))
    return output / "driver.js"


def _build(language: str, tools: Sequence[str], build: Callable[[], None]) -> None:
    """Skip where a tool is missing; build where the sources are not those of the last build."""
    absent = [tool for tool in tools if shutil.which(tool) is None]
    if absent:
        pytest.skip(f"{', '.join(absent)} is not installed")
    digest = hashlib.sha256()
    for source in sorted((_SOURCES / language).iterdir()):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    stamp = _OUTPUT / f"{language}.built"
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return
    shutil.rmtree(_OUTPUT / language, ignore_errors=True)
    (_OUTPUT / language).mkdir(parents=True)
    build()
    stamp.write_text(digest.hexdigest())


def _run(command: Sequence[str | Path], folder: Path, **environment: str) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"{command[0]} failed:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"


def _copy_jars(folder: str, output: Path) -> None:
    """The jars that the folder's pom.xml names, and what they need."""
    _run(
        [
            "mvn",
            *("--quiet", "--batch-mode", "--file", _SOURCES / folder / "pom.xml"),
            f"-Dmaven.repo.local={_OUTPUT / 'maven'}",
            "dependency:copy-dependencies",
            f"-DoutputDirectory={output / 'lib'}",
        ],
        output,
    )


def _unpack(folder: str, output: Path) -> None:
    """The archive that the folder's pom.xml names."""
    pom = shutil.copy(_SOURCES / folder / "pom.xml", output)  # marks what it has done beside it
    _run(
        [
            "mvn",
            *("--quiet", "--batch-mode", "--file", pom, f"-Dmaven.repo.local={_OUTPUT / 'maven'}"),
            *("dependency:unpack", f"-DoutputDirectory={output}"),
        ],
        output,
    )


def _install_packages(folder: str, output: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "--target", output / "packages", "-r", _SOURCES / folder / "requirements.txt"], output)


def _build_java(folder: str, output: Path, lint: Sequence[str]) -> None:
    sources = _SOURCES / folder
    _copy_jars(folder, output)
    classes = output / "classes"
    _run(
        [
            "javac",
            *lint,
            "-cp",
            str(output / "lib" / "*"),
            "-d",
            classes,
            *sources.glob("*.java"),
        ],
        output,
    )


def _build_go(folder: str, output: Path) -> None:
    cache = _OUTPUT / "go-cache"
    _run(
        ["go", "build", "-trimpath", "-modcacherw", "-o", output / "driver", "."],
        _SOURCES / folder,
        GOMODCACHE=str(cache / "modules"),
        GOCACHE=str(cache / "build"),
    )


def _build_node(output: Path) -> None:
    for source in (_SOURCES / "node").iterdir():
        shutil.copy(source, output)
    _run(
        ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--cache", _OUTPUT / "npm-cache"], output
    )
