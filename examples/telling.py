"""How the stories of the examples are told: steps, commands as a person types them, and what came of it.

A story has a broker and a folder of its own below `.demo/`, and leaves only its pictures there.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ottla.testing import BrokerProcess

HOME = Path(".demo")
PATIENCE_SECONDS = 120


@contextmanager
def stage(example: str) -> Iterator[tuple[BrokerProcess, Path]]:
    """A broker, and a copy of an example's pipeline, for as long as its story is told."""
    home = HOME / example
    shutil.rmtree(home, ignore_errors=True)
    folder = home / "pipeline"
    shutil.copytree(
        Path(__file__).parent / example, folder, ignore=shutil.ignore_patterns("story.py", "__pycache__")
    )
    with BrokerProcess(home / "broker", fresh=True) as broker:
        os.environ["OTTLA_BOOTSTRAP"] = broker.bootstrap  # for the commands
        yield broker, folder
    shutil.rmtree(home)


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "ottla", *map(str, arguments)]


def type_in(*arguments: str | Path, succeeds: bool = True) -> None:
    """A command and what it prints."""
    print(f"   $ ottla {' '.join(map(str, arguments))}", flush=True)
    done = subprocess.run(command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    show(done.stdout)
    if (done.returncode == 0) != succeeds:
        sys.exit(f"this ended with {done.returncode}")


@contextmanager
def running(folder: Path, output: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`ottla pipeline run` in processes of its own, all of which are killed at the end."""
    with output.open("wb") as file:
        process = subprocess.Popen(
            command("pipeline", "run", folder), stdout=file, stderr=file, start_new_session=True
        )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait(condition: Callable[[], bool], what: str, process: subprocess.Popen[bytes], output: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"{what} did not come:\n{output.read_text()}")
        time.sleep(0.05)


def step(text: str) -> None:
    print(f"-> {text}", flush=True)


def show(text: str) -> None:
    print("".join(f"   {line}".rstrip() + "\n" for line in text.splitlines()), flush=True)


def verdict(text: str, holds: bool) -> None:
    print(f"   {'ok  ' if holds else 'FAIL'} {text}", flush=True)
    if not holds:
        sys.exit(1)


def since(began: float) -> str:
    return f"{time.monotonic() - began:.1f} s"
