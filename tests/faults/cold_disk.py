"""Real files whose pages are never in memory, until somebody has waited for them."""

from __future__ import annotations

import os
import threading

from ottla.log.files import Buffer
from ottla.log.system_files import SystemFile, SystemFiles

PAGE_BYTES = 4096


class ColdFiles(SystemFiles):
    """What `pread` has read is warm from then on; `chill` makes everything cold again."""

    def __init__(self) -> None:
        self.warm: set[tuple[str, int]] = set()  # pages by file name and number
        self.waits: list[str] = []  # names of the files that were waited for, in order
        self.threads_that_waited: set[str] = set()

    def chill(self) -> None:
        self.warm.clear()
        self.waits.clear()
        self.threads_that_waited.clear()

    def create(self, path: str) -> SystemFile:
        return self._ours(super().create(path))

    def open(self, path: str, *, writable: bool = True) -> SystemFile:
        return self._ours(super().open(path, writable=writable))

    def _ours(self, file: SystemFile) -> SystemFile:
        ours = ColdFile(self, file.name, os.dup(file.fileno()))
        file.close()
        return ours


class ColdFile(SystemFile):
    __slots__ = ("disk",)

    def __init__(self, disk: ColdFiles, name: str, fd: int) -> None:
        super().__init__(name, fd)
        self.disk = disk

    def _pages(self, size: int, position: int) -> set[tuple[str, int]]:
        return {
            (self.name, page)
            for page in range(position // PAGE_BYTES, (position + size - 1) // PAGE_BYTES + 1)
        }

    def pread(self, size: int, position: int) -> bytes:
        self.disk.waits.append(os.path.basename(self.name))
        self.disk.threads_that_waited.add(threading.current_thread().name)
        self.disk.warm |= self._pages(size, position)
        return super().pread(size, position)

    def pread_now(self, size: int, position: int) -> Buffer | None:
        size = min(size, self.size - position)
        if not self._pages(size, position) <= self.disk.warm:
            return None
        return super().pread(size, position)
