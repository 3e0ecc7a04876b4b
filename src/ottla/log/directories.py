"""The directories of `log.dirs`: those that work, and those that failed, with the reason.

A directory that fails, at the start or later, takes only its own partitions offline, unless it is the last.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator

from ottla.log.directory import LogDirectory
from ottla.log.files import DirectoryLocked
from ottla.model.errors import CorruptData

_log = logging.getLogger(__name__)


class LogDirectories:
    """Iterating gives those that work."""

    def __init__(self) -> None:
        self.failed: dict[str, str] = {}  # by path: what it failed with; a restart tries it again
        self._working: list[LogDirectory] = []

    def __iter__(self) -> Iterator[LogDirectory]:
        return iter(tuple(self._working))

    def __len__(self) -> int:
        return len(self._working)

    def open_all(self, paths: Iterable[str], open_one: Callable[[str], LogDirectory]) -> None:
        """Raises what the last one failed with when none can be opened; at once for one that another broker
        uses, or that belongs to another: those are no trouble of the disk.
        """
        problem: Exception | None = None
        for path in paths:
            try:
                self._working.append(open_one(path))
            except DirectoryLocked:
                raise
            except (OSError, CorruptData) as error:
                problem = error
                self._note_failure(os.path.abspath(path), error)
        if not self._working and problem is not None:
            raise problem

    def by_emptiness(self) -> list[LogDirectory]:
        """Where a new partition goes: the one with the fewest first, one on a full disk last."""
        return sorted(
            self._working, key=lambda directory: (directory.ballast.is_spent, directory.partition_count)
        )

    def fail(self, directory: LogDirectory, error: BaseException) -> None:
        """It is not touched any more."""
        self._working.remove(directory)
        self._note_failure(directory.path, error)
        directory.abandon()

    def _note_failure(self, path: str, error: BaseException) -> None:
        self.failed[path] = str(error)
        _log.critical("the log directory %s failed, its partitions are offline: %s", path, error)
