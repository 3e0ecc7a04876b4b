"""Real files of which chosen operations fail, for tests of what a broker does when its disk fails."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Sequence
from fnmatch import fnmatch

from ottla.log.files import Buffer
from ottla.log.filesystem_sync import FilesystemSync
from ottla.log.system_files import SystemFile, SystemFiles


class SickFiles(SystemFiles):
    def __init__(self) -> None:
        self.failing: dict[str, str] = {}  # operation ("sync", "append", "rename", …) to a pattern of paths
        self.error = errno.EIO  # what they fail with
        self.failed: list[tuple[str, str]] = []  # what failed, in order
        self.held = threading.Event()  # syncs of `held_paths` wait while it is cleared
        self.held.set()
        self.held_paths = "*"
        self.reads_held = threading.Event()  # reads of logs in worker threads wait while it is cleared
        self.reads_held.set()
        self.directories_held = threading.Event()  # making and renaming one waits while it is cleared
        self.directories_held.set()
        self.bytes_read: dict[str, int] = {}  # by path

    def check(self, operation: str, path: str) -> None:
        pattern = self.failing.get(operation)
        if pattern is not None and fnmatch(path, pattern):
            self.failed.append((operation, path))
            raise OSError(self.error, "the disk is sick", path)

    def create(self, path: str) -> SystemFile:
        self.check("create", path)
        return self._ours(super().create(path))

    def open(self, path: str, *, writable: bool = True) -> SystemFile:
        return self._ours(super().open(path, writable=writable))

    def _ours(self, file: SystemFile) -> SystemFile:
        ours = SickFile(self, file.name, os.dup(file.fileno()))
        file.close()
        return ours

    def make_directory(self, path: str) -> None:
        self.directories_held.wait(20)
        self.check("make_directory", path)
        super().make_directory(path)

    def rename(self, source: str, target: str) -> None:
        if os.path.isdir(source):
            self.directories_held.wait(20)
        self.check("rename", source)
        super().rename(source, target)

    def filesystem_sync(self, path: str) -> FilesystemSync | None:
        return None  # file by file, so that one of them can fail


class SickFile(SystemFile):
    __slots__ = ("disk",)

    def __init__(self, disk: SickFiles, name: str, fd: int) -> None:
        super().__init__(name, fd)
        self.disk = disk

    def append(self, chunks: Sequence[Buffer]) -> int:
        self.disk.check("append", self.name)
        return super().append(chunks)

    def pread(self, size: int, position: int) -> bytes:
        if threading.current_thread().name.startswith("ottla-read"):
            self.disk.reads_held.wait(20)
            self.disk.check("pread", self.name)
        self.disk.bytes_read[self.name] = self.disk.bytes_read.get(self.name, 0) + size
        return super().pread(size, position)

    def direct(self) -> None:
        return None  # writes and syncs, which can fail and be held

    def sync_fd(self) -> None:
        return None  # its syncs are held and fail here

    def sync(self) -> None:
        if fnmatch(self.name, self.disk.held_paths):
            self.disk.held.wait(20)
        self.disk.check("sync", self.name)
        super().sync()
