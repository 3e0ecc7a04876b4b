"""What one log has to get onto the disk in a round; run by a worker while the owner goes on appending."""

from __future__ import annotations

import contextlib
import os

from ottla.log.files import Files
from ottla.log.filesystem_sync import FilesystemSync
from ottla.log.unsynced import Unsynced


class SyncTicket:
    __slots__ = ("_files", "end_offset", "unsynced", "whole")

    def __init__(
        self, files: Files, end_offset: int, unsynced: Unsynced, whole: FilesystemSync | None = None
    ) -> None:
        self.end_offset = end_offset  # durable when the ticket has run; only the owner looks at it
        self.unsynced = unsynced
        self.whole = whole  # syncs all of it and more at once, where the filesystem can
        self._files = files

    @property
    def file_count(self) -> int:
        return len(self.unsynced.files) + len(self.unsynced.directories) + len(self.unsynced.renames)

    def run(self) -> None:
        """Raises OSError when the disk does not take it: the broker must stop, nothing may be tried again."""
        for file in self.unsynced.files:
            file.sync()
        for directory in sorted(self.unsynced.directories):
            self._sync_names(directory)
        self.rename()
        for _, target in self.unsynced.renames:
            self._sync_names(os.path.dirname(target))

    def rename(self) -> None:
        """The files are durable: the new ones take the place of the old."""
        for source, target in self.unsynced.renames:
            with contextlib.suppress(
                FileNotFoundError
            ):  # done by a try that failed later, or the log is gone
                self._files.rename(source, target)

    def _sync_names(self, directory: str) -> None:
        with contextlib.suppress(FileNotFoundError):  # the log was deleted in the meantime
            self._files.sync_directory(directory)
