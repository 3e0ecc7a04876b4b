"""Files and directories that were renamed out of sight and are removed a while later
(`file.delete.delay.ms`), so that whoever is reading them can finish.

Removing large files takes the filesystem a while: the due paths are handed out, and a worker removes them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

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


class Renaming:
    """Directories that go out of sight. `run` may be taken to a worker thread."""

    __slots__ = ("_files", "_renames", "problems", "renamed")

    def __init__(self, files: Files, renames: Sequence[tuple[str, str, int]]) -> None:
        self._files = files
        self._renames = renames  # (from, to, how long it is kept in ms)
        self.renamed: list[tuple[str, int]] = []  # (under its new name, how long it is kept in ms)
        self.problems: list[tuple[str, OSError]] = []  # what stays under its old name, and why

    def run(self) -> None:
        for source, target, delay_ms in self._renames:
            try:
                self._files.rename(source, target)
            except OSError as error:
                self.problems.append((source, error))
            else:
                self.renamed.append((target, delay_ms))


class Deletions:
    def __init__(self, files: Files) -> None:
        self._files = files
        # By the directory that they are in, as (when, what). Delays differ by topic: in no order of time.
        self._due: dict[str, list[tuple[int, list[str]]]] = {}

    def schedule(self, paths: list[str], due_ms: int) -> None:
        """All of them in one directory."""
        if paths:
            self._due.setdefault(os.path.dirname(paths[0]), []).append((due_ms, paths))

    def take_due(self, now_ms: int) -> Removal | None:
        due: list[str] = []
        later: dict[str, list[tuple[int, list[str]]]] = {}
        for directory, entries in self._due.items():
            due += [path for due_ms, paths in entries if due_ms <= now_ms for path in paths]
            if kept := [entry for entry in entries if entry[0] > now_ms]:
                later[directory] = kept
        self._due = later
        return Removal(self._files, due) if due else None

    def forget_below(self, directory: str) -> None:
        """The directory itself goes: what waits inside goes with it."""
        self._due.pop(directory.rstrip("/"), None)
