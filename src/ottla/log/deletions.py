"""Files and directories that were renamed out of sight and are removed a while later
(`file.delete.delay.ms`), so that whoever is reading them can finish.

Removing large files takes the filesystem a while: the due paths are handed out, and a worker removes them.
"""

from __future__ import annotations

import contextlib
from collections import deque

from ottla.log.files import Files


class Removal:
    """Paths whose time has come. `run` may be taken to a worker thread; nobody else looks at them now."""

    __slots__ = ("_files", "paths")

    def __init__(self, files: Files, paths: list[str]) -> None:
        self._files = files
        self.paths = paths

    def run(self) -> None:
        for path in self.paths:
            with contextlib.suppress(FileNotFoundError):
                try:
                    self._files.remove(path)
                except (
                    IsADirectoryError,
                    PermissionError,
                ):  # Linux says the one of a directory, macOS the other
                    self._files.remove_tree(path)


class Deletions:
    def __init__(self, files: Files) -> None:
        self._files = files
        self._due: deque[tuple[int, list[str]]] = deque()  # delays differ by topic, so not strictly sorted

    def schedule(self, paths: list[str], due_ms: int) -> None:
        if paths:
            self._due.append((due_ms, paths))

    def take_due(self, now_ms: int) -> Removal | None:
        due = [entry for entry in self._due if entry[0] <= now_ms]
        if not due:
            return None
        self._due = deque(entry for entry in self._due if entry[0] > now_ms)
        return Removal(self._files, [path for _, paths in due for path in paths])

    def forget_below(self, directory: str) -> None:
        """The directory itself goes: what waits inside goes with it."""
        prefix = directory.rstrip("/") + "/"
        self._due = deque(
            (due_ms, kept)
            for due_ms, paths in self._due
            if (kept := [path for path in paths if not path.startswith(prefix)])
        )
