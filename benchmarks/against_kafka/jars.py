"""Apache Kafka's jars, which Maven brings once, below `.bench/`."""

from __future__ import annotations

import functools
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

POM = Path(__file__).parent / "pom.xml"
CACHE = Path(__file__).parents[2] / ".bench"


def kafka_version() -> str:
    found = re.search(r"<artifactId>kafka_2.13</artifactId>\s*<version>(.*)</version>", POM.read_text())
    assert found is not None, f"{POM} names no Kafka"
    return found[1]


@functools.cache
def kafka_classpath() -> str:
    """Fetches what pom.xml names, unless that was done for the pom.xml as it is."""
    folder = CACHE / f"kafka-{hashlib.sha256(POM.read_bytes()).hexdigest()[:12]}"
    if not folder.exists():
        _fetch(folder)
    return f"{folder}/*"


def _fetch(folder: Path) -> None:
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            raise SystemExit(f"{tool} is not installed; without Apache Kafka: --brokers ottla")
    partial = folder.with_suffix(".partial")
    command = ["mvn", "--quiet", "--batch-mode", "--file", str(POM), "dependency:copy-dependencies"]
    command += [f"-Dmaven.repo.local={CACHE / 'maven'}", f"-DoutputDirectory={partial}"]
    subprocess.run(command, check=True)
    partial.rename(folder)
