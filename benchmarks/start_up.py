"""How long a person waits for a command: median and best, beside kcat and Kafka's own tool where they are.

    .venv/bin/python -m benchmarks.start_up [--runs 10]

`up -d` is timed to its return, which is after the broker's first turn. Bytecode is compiled by a first run
that does not count, as on every machine after the first use.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_JARS = Path(__file__).parents[1] / ".interop" / "java" / "lib"
_PORTS = ("--set", "listeners=PLAINTEXT://127.0.0.1:0", "--set", "ottla.http.port=0")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=10)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory(prefix="ottla-start-up-") as home:
        environment = {**os.environ, "OTTLA_DATA": f"{home}/data", "PYTHONPYCACHEPREFIX": f"{home}/bytecode"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        _measure(runs, environment)


def _measure(runs: int, environment: Mapping[str, str]) -> None:
    ottla = [sys.executable, "-m", "ottla"]
    up, down = [*ottla, "up", "-d", *_PORTS], [*ottla, "down"]
    _run(up, environment)
    _run(down, environment)
    starts, stops = [], []
    for _ in range(runs):
        starts.append(_run(up, environment))
        stops.append(_run(down, environment))
    _show("ottla up -d", starts)
    _show("ottla down", stops)
    _run(up, environment)
    bootstrap = _bootstrap(ottla, environment)
    environment = {**environment, "OTTLA_BOOTSTRAP": bootstrap}
    try:
        _run([*ottla, "topic", "create", "greetings"], environment)
        commands = {
            "ottla --help": [*ottla, "--help"],
            "ottla topic ls": [*ottla, "topic", "ls"],
            "ottla topic show": [*ottla, "topic", "show", "greetings"],
            "ottla produce (one record)": [*ottla, "produce", "greetings", "--random", "100", "-n", "1"],
            "ottla consume": [*ottla, "consume", "greetings"],
            "ottla status": [*ottla, "status"],
            "completion of a topic": [*ottla, "__complete", "topic", "show", ""],
            **_others(bootstrap),
        }
        for name, command in commands.items():
            _run(command, environment)
            _show(name, [_run(command, environment) for _ in range(runs)])
    finally:
        _run(down, environment)


def _others(bootstrap: str) -> dict[str, list[str]]:
    """What a user would call instead of `ottla topic ls`."""
    commands = {}
    if shutil.which("kcat"):
        commands["kcat -L"] = ["kcat", "-b", bootstrap, "-L"]
    if _JARS.is_dir() and shutil.which("java"):
        tool = "org.apache.kafka.tools.TopicCommand"
        commands["kafka-topics --list"] = [
            *("java", "-cp", f"{_JARS}/*", tool, "--bootstrap-server", bootstrap, "--list")
        ]
    return commands


def _bootstrap(ottla: Sequence[str], environment: Mapping[str, str]) -> str:
    import json

    done = subprocess.run([*ottla, "status", "-o", "json"], env=environment, capture_output=True, check=True)
    listener: str = json.loads(done.stdout)["listens_on"][0]
    return listener.rpartition("/")[2]


class Run(NamedTuple):
    seconds: float
    cpu_seconds: float  # on a busy machine the one that tells


def _run(command: Sequence[str], environment: Mapping[str, str]) -> Run:
    began, cpu_before = time.perf_counter(), _children_cpu_seconds()
    subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return Run(time.perf_counter() - began, _children_cpu_seconds() - cpu_before)


def _children_cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _show(name: str, runs: Sequence[Run]) -> None:
    seconds = [run.seconds for run in runs]
    cpu_seconds = statistics.median(run.cpu_seconds for run in runs)
    print(f"{name:<28} {statistics.median(seconds):6.2f} s", end="  ")
    print(f"best {min(seconds):5.2f} s  cpu {cpu_seconds:5.2f} s", flush=True)


if __name__ == "__main__":
    main()
