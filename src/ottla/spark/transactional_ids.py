"""Transactional ids for tasks, such that no two tasks can have the same one open.

A task may sleep between its look at the ledger and InitProducerId, be given up by Spark, and wake up when the
transaction of another attempt has been decided: under the same id it would abort that one, and its records
would be lost. So ids belong to a process, which works on one task at a time: it holds the lock of a file with
a name of its own. Within a batch each task of the process takes the next number; the next batch begins at 0
again, since the batch before is ended by then. The file outlives its process, and whoever gets the lock goes
on with the numbers: ids stay few, though Spark ends workers that have nothing to do.

The lock must be held before the ledger is asked. What was opened under these ids was then opened earlier,
and is decided and ended, or never will be decided.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import tempfile
import uuid
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import IO

from ottla.spark.errors import JobError, Superseded

_TASK_ID = re.compile(r"ottla-spark-task-[0-9a-f]{12}-[0-9]+-(.*)", re.DOTALL)
_QUERIES_MAX = 256  # that one name serves; then the process takes a new one
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass
class _Used:
    run: str
    batch: int
    count: int  # of ids in that batch


@dataclass
class IdHolder:
    """A name with its lock."""

    name: str
    _file: IO[str]
    _pid: int
    _used: dict[str, _Used] = field(default_factory=dict)  # by query, its last batch

    @property
    def is_ours(self) -> bool:
        """A forked process inherits the lock, and must not use it."""
        return self._pid == os.getpid()

    def take(self, query: str, run: str, batch: int) -> str:
        """An id that nobody has used in this batch. Raises Superseded for a batch that is over."""
        used = self._used.get(query)
        if used is None or used.run != run or used.batch < batch:
            if used is None and len(self._used) >= _QUERIES_MAX:
                self.name, self._used = _new_name(), {}
            used = self._used[query] = _Used(run, batch, 0)
        elif used.batch > batch:
            raise Superseded(f"a task of batch {batch} of query {query} comes after batch {used.batch} began")
        number = used.count
        used.count += 1
        self._save()
        return f"ottla-spark-task-{self.name}-{number}-{query}"

    def close(self) -> None:
        """Others may take the name, as when the process ends."""
        self._file.close()

    def _save(self) -> None:
        written = {query: [used.run, used.batch, used.count] for query, used in self._used.items()}
        self._file.seek(0)
        self._file.truncate()
        json.dump({"boot": _boot_id(), "name": self.name, "used": written}, self._file)
        self._file.flush()


_held: IdHolder | None = None


def decision_id(query: str) -> str:
    """Under which claims and decisions of the query are written."""
    return f"ottla-spark-decision-{query}"


def is_of_a_task(transactional_id: str, query: str) -> bool:
    match = _TASK_ID.fullmatch(transactional_id)
    return match is not None and match[1] == query


def held_ids() -> IdHolder:
    """Those of this process, locked until it ends."""
    global _held
    if _held is None or not _held.is_ours:
        _held = hold_ids(Path(tempfile.gettempdir()) / f"ottla-spark-ids-{os.getuid()}")
    return _held


def hold_ids(folder: Path) -> IdHolder:
    """The first name in the folder that nobody holds, or a new one."""
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise JobError(f"{folder} belongs to somebody else: remove it, or set TMPDIR to another place")
    for number in count():
        file = (folder / f"{number}.json").open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            continue
        return _restored(file)
    raise AssertionError("numbers do not end")


def _restored(file: IO[str]) -> IdHolder:
    """What was written before a crash of the machine may be older than what was done: a new name then."""
    file.seek(0)
    try:
        written = json.load(file)
        used = {query: _Used(*each) for query, each in written["used"].items()}
        if written["boot"] == _boot_id():
            return IdHolder(written["name"], file, os.getpid(), used)
    except (ValueError, KeyError, TypeError):
        pass  # new, or cut short with its process
    return IdHolder(_new_name(), file, os.getpid())


def _new_name() -> str:
    return uuid.uuid4().hex[:12]


def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""
