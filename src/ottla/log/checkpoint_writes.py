"""Replacing checkpoint files from a worker thread, with the newest content winning.

The owner may have to replace one itself while a worker is about to (a truncation cannot wait). That is what
the one lock of this room is for: both write the same file.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial

from ottla.log.ballast import Ballast
from ottla.log.files import Files

Write = tuple[str, bytes | Callable[[], bytes]]
"""A path and its content, or what makes it when the ones before are written."""


class CheckpointWrites:
    """Files to replace; `run` may be taken to a worker thread. Content that is not the newest is skipped."""

    __slots__ = ("_number", "_writer", "is_done", "writes")

    def __init__(self, writer: CheckpointWriter, number: int, writes: Sequence[Write]) -> None:
        self.writes = writes
        self.is_done = False  # these or newer ones are on disk
        self._writer = writer
        self._number = number

    def run(self) -> None:
        self._writer.write(self._number, self.writes)
        self.is_done = True


class CheckpointWriter:
    def __init__(self, files: Files, ballast: Ballast) -> None:
        self._files = files
        self._ballast = ballast  # retention frees space only after a checkpoint
        self._lock = threading.Lock()
        self._begun = 0  # numbers the contents in the order they were made
        self._written: dict[str, int] = {}  # by path: which content it holds

    def begin(self, writes: Sequence[Write]) -> CheckpointWrites:
        self._begun += 1
        return CheckpointWrites(self, self._begun, writes)

    def write(self, number: int, writes: Sequence[Write]) -> None:
        with self._lock:
            for path, data in writes:
                if self._written.get(path, 0) < number:
                    content = data() if callable(data) else data
                    self._ballast.help(partial(self._files.write_atomically, path, content))
                    self._written[path] = number
