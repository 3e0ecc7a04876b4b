"""Files of segments that open on demand and close when others are used more.

So thousands of partitions fit into the limit of open files. Closing means dropping the reference: whoever
still sends a range of the file keeps its handle. Which file goes is decided by second chance: using a file
costs one assignment, not a move in a list.
"""

from __future__ import annotations

import contextlib
from collections import deque

from ottla.log.files import FileHandle, Files

OPEN_FILES_MAX = 4_000
"""Handles the pool keeps; with 10,000 connections this leaves 6,000 of the usual 20,000 for what is pinned.
"""


class PooledFile:
    """A file by its path, with or without a handle at the moment."""

    __slots__ = ("_handle", "_pool", "path", "recently_used")

    def __init__(self, pool: OpenFiles, path: str, handle: FileHandle | None = None) -> None:
        self.path = path
        self.recently_used = False
        self._pool = pool
        self._handle: FileHandle | None = None
        if handle is not None:
            self._adopt(handle)

    def handle(self) -> FileHandle:
        self.recently_used = True
        if self._handle is not None:
            return self._handle
        return self._adopt(self._pool.files.open(self.path))

    def _adopt(self, handle: FileHandle) -> FileHandle:
        self._handle = handle
        self._pool.opened(self)
        return handle

    def sync(self) -> None:
        """Make the content durable; also from a worker thread, and without taking a place in the pool.

        A file that is gone was dropped from its log in the meantime; nobody asks for its content any more.
        """
        handle = self._handle
        if handle is not None:
            handle.sync()
            return
        with contextlib.suppress(FileNotFoundError):
            handle = self._pool.files.open(self.path)
            try:
                handle.sync()
            finally:
                handle.close()

    def is_open(self) -> bool:
        return self._handle is not None

    def release(self) -> None:
        self._handle = None


class OpenFiles:
    def __init__(self, files: Files, count_max: int = OPEN_FILES_MAX) -> None:
        self.files = files
        self._count_max = count_max
        self._open: deque[PooledFile] = deque()

    def create(self, path: str) -> PooledFile:
        return PooledFile(self, path, self.files.create_anew(path))

    def existing(self, path: str) -> PooledFile:
        return PooledFile(self, path)

    def opened(self, file: PooledFile) -> None:
        """`file` has got a handle; others may have to go."""
        self._open.append(file)
        while len(self._open) > self._count_max:
            oldest = self._open.popleft()
            if not oldest.is_open():
                continue
            if oldest.recently_used and oldest is not file:
                oldest.recently_used = False
                self._open.append(oldest)
            else:
                oldest.release()
