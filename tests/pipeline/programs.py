"""`ottla pipeline run` as a program of its own, with its JVM and its workers, and what it tells of itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PATIENCE_SECONDS = 300


@contextmanager
def pipeline_program(folder: Path, bootstrap: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """All of it in one session; whatever is left of it in the end is killed."""
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
        with suppress(ProcessLookupError):
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
