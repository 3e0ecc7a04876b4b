"""Files of segments that open on demand and close when others are used more.

So thousands of partitions fit into the limit of open files. Closing means dropping the reference: whoever
still sends a range of the file keeps its handle. Which file goes is decided by second chance: using a file
costs one assignment, not a move in a list.
"""

from __future__ import annotations

import contextlib
from collections import deque

from ottla.log.file_range import FileRange
from ottla.log.files import Buffer, FileHandle, Files, NotResident

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

    def pread(self, size: int, position: int) -> Buffer:
        """As the handle's. NotResident when the pool may not wait and the disk would have to be asked."""
        handle = self.handle()
        if self._pool.waits:
            return handle.pread(size, position)
        data = handle.pread_now(size, position)
        if data is None:
            raise NotResident(FileRange(handle, position, size))
        return data

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

    def open_handle(self) -> FileHandle | None:
        """None for one that is not open at the moment."""
        return self._handle

    def modified_ms(self) -> int:
        return self._pool.files.modified_ms(self.path)

    def release(self) -> None:
        self._handle = None


class WithoutWaiting:
    """While its `with` block lasts, reads of the pool's files raise NotResident instead of waiting."""

    __slots__ = ("_pool",)

    def __init__(self, pool: OpenFiles) -> None:
        self._pool = pool

    def __enter__(self) -> None:
        self._pool.waits = False

    def __exit__(self, *_: object) -> None:
        self._pool.waits = True


class OpenFiles:
    def __init__(self, files: Files, count_max: int = OPEN_FILES_MAX) -> None:
        self.files = files
        self.waits = True  # whether reads may wait for the disk
        self.without_waiting = WithoutWaiting(self)
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
            if oldest.open_handle() is None:
                continue
            if oldest.recently_used and oldest is not file:
                oldest.recently_used = False
                self._open.append(oldest)
            else:
                oldest.release()
