"""What one log has to get onto the disk in a sync round. Runs in a worker thread; the owner goes on
appending.
"""

from __future__ import annotations

from ottla.log.files import Files
from ottla.log.filesystem_sync import FilesystemSync
from ottla.log.open_files import PooledFile


class SyncTicket:
    __slots__ = ("directories", "dirty", "end_offset", "files", "whole", "writes")

    def __init__(
        self,
        files: Files,
        end_offset: int,
        writes: list[tuple[str, bytes]],
        dirty: list[PooledFile],
        directories: list[str],
        whole: FilesystemSync | None = None,
    ) -> None:
        self.end_offset = end_offset  # durable when the ticket has run; only the owner looks at it
        self.writes = writes  # small files to replace last: the epochs of what was synced
        self.dirty = dirty  # in the order of offsets, so that a crash in between leaves no hole
        self.directories = directories  # whose names changed
        self.files = files
        self.whole = whole  # syncs all of it and more at once, where the filesystem can

    def write_aside(self) -> list[str]:
        """Write the small files under temporary names, unsynced; returns the paths they are to replace."""
        for path, data in self.writes:
            self.files.write_temporary(path, data).close()
        return [path for path, _ in self.writes]

    def run(self) -> None:
        """Raises OSError when the disk does not take it: the broker must stop, nothing may be tried again."""
        for file in self.dirty:
            file.sync()
        for directory in dict.fromkeys(self.directories):
            self.files.sync_directory(directory)
        for path, data in self.writes:
            self.files.write_atomically(path, data)
