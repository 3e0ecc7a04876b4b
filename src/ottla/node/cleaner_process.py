"""The cleaner's process as the broker sees it: jobs go in, reports come out (`cleaner_child` is its inside).

Compaction looks at every record and compresses anew; in the broker's process it would take the interpreter
from those who serve clients. In its own it can be ended at any moment, by a kill, and costs no memory when
nothing is to be cleaned. `submit` and `next_report` block and are for a worker thread.
"""

from __future__ import annotations

import json
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import ottla
from ottla.log.cleaning_job import Cleaned, CleanedGroup, CleaningJob

if TYPE_CHECKING:
    import subprocess


class Trouble(StrEnum):
    """Why a pass ended early."""

    RECORDS = "records"  # a batch with a right checksum holds records that cannot be read
    DAMAGE = "damage"  # a file is not what was written
    GONE = "gone"  # a file was renamed or removed in the meantime
    DISK = "disk"  # the disk did not give or take something
    DEATH = "death"  # the process ended
    SWAP = "swap"  # a new segment could not be put in its place


class CleanerFailed(Exception):
    def __init__(self, trouble: Trouble, text: str) -> None:
        super().__init__(text)
        self.trouble = trouble


class CleanerProcess:
    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def submit(self, job: CleaningJob) -> None:
        """Starts the process if there is none."""
        if self._process is not None and self._process.poll() is not None:
            self.end()  # it died: nothing of it stays open
        process = self._process = self._process or _start()
        try:
            assert process.stdin is not None
            process.stdin.write(job.encode() + "\n")
            process.stdin.flush()
        except OSError as error:
            raise CleanerFailed(Trouble.DEATH, f"the cleaner's process takes no job: {error}") from error

    def next_report(self) -> CleanedGroup | Cleaned:
        """Waits for it. Raises CleanerFailed."""
        process = self._process
        if process is None:
            raise CleanerFailed(Trouble.DEATH, "the cleaner's process is not there")
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            code = process.wait()
            raise CleanerFailed(Trouble.DEATH, f"the cleaner's process ended with {code}")
        kind, fields = json.loads(line)
        if kind == "group":
            return CleanedGroup(*fields)
        if kind == "cleaned":
            return Cleaned(*fields)
        trouble, text = fields
        raise CleanerFailed(Trouble(trouble), text)

    def kill(self) -> None:
        """From the owner's thread: whoever waits for a report gets CleanerFailed."""
        process = self._process
        if process is not None:
            process.kill()

    def end(self) -> None:
        """From the worker's thread; the next job starts another process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                pipe.close()


def _start() -> subprocess.Popen[str]:
    import subprocess  # nothing is cleaned at a start

    package_root = str(Path(ottla.__file__).parent.parent)
    path = os.pathsep.join(filter(None, (package_root, os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        [sys.executable, "-m", "ottla.node.cleaner_child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,  # a Ctrl-C is for the broker, which ends this one
    )
