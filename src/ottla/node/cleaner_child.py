"""The process in which compaction happens: `python -m ottla.node.cleaner_child`, as `cleaner_process` starts
it.

Reads jobs from its standard input, a line each, and writes what it reports to its standard output. When the
input ends, the broker is gone or needs it no more: it ends at once, whatever it is doing.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from pathlib import Path
from queue import SimpleQueue
from typing import TextIO

from ottla.log.cleaner import Cleaner
from ottla.log.cleaning_job import CleaningJob
from ottla.log.system_files import SystemFiles
from ottla.model.errors import CorruptData
from ottla.node.cleaner_process import Trouble
from ottla.records.findings import CorruptRecords

_NICENESS = 10  # a tenth of what others get; on a machine that is never idle it must not starve either
_SLEEP_SECONDS_MIN = 0.01


class Throttle:
    """Sleeps whenever more was read and written than the rate allows."""

    def __init__(self, bytes_per_second: float) -> None:
        self._bytes_per_second = max(bytes_per_second, 1)
        self._due = time.monotonic()  # when the bytes so far would be through

    def __call__(self, size: int) -> None:
        now = time.monotonic()
        self._due = max(self._due, now - 1) + size / self._bytes_per_second
        if self._due - now > _SLEEP_SECONDS_MIN:
            time.sleep(self._due - now)


def _step_back() -> None:
    """Clients come first. Where Linux shares the processors between sessions before it looks at single
    processes, a nice value counts within a session only, and the session has one of its own.
    """
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)
        if os.getsid(0) == os.getpid():
            Path("/proc/self/autogroup").write_text(str(_NICENESS), encoding="ascii")


def main() -> None:
    _step_back()
    jobs: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_receive, args=(sys.stdin, jobs), daemon=True).start()
    while True:
        _clean(CleaningJob.decode(jobs.get()))


def _receive(source: TextIO, jobs: SimpleQueue[str]) -> None:
    for line in source:
        jobs.put(line)
    os._exit(0)


def _clean(job: CleaningJob) -> None:
    cleaner = Cleaner(
        SystemFiles(),
        job,
        Throttle(job.bytes_per_second),
        lambda group: _report("group", (group.base_offset, list(group.replaced))),
    )
    try:
        _report("cleaned", cleaner.run())
    except CorruptRecords as error:
        _report("failed", (Trouble.RECORDS, str(error)))
    except CorruptData as error:
        _report("failed", (Trouble.DAMAGE, str(error)))
    except FileNotFoundError as error:
        _report("failed", (Trouble.GONE, str(error)))
    except OSError as error:
        _report("failed", (Trouble.DISK, str(error)))


def _report(kind: str, fields: object) -> None:
    sys.stdout.write(json.dumps([kind, fields]) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
