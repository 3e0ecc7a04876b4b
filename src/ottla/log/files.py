"""The file layer, as its users see it; `system_files` keeps its promises on a real disk.

Everything durable goes through a `Files`, so that tests can put a disk of their own below it and pull the
plug. What it promises:

- `append` is all or nothing for the running process: when it raises, the file is as long as it was before.
- Only `sync` makes bytes survive a power cut, and only `sync_directory` makes a created, renamed or removed
  name survive one. `write_atomically` does both.
- A failed `sync` is final for its file: the kernel has dropped the dirty pages and forgets the error, so a
  second try would succeed and lie. It raises again instead.
- A handle closes when nobody refers to it any more. A range that is being sent therefore stays readable
  after its segment was dropped, renamed or removed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Protocol

from ottla.log.file_range import FileRange
from ottla.log.filesystem_sync import FilesystemSync

Buffer = bytes | bytearray | memoryview
TEMPORARY_SUFFIX = ".tmp"
BLOCK_BYTES = 4096
"""What a `DirectAppend` writes as one: what the disks we know do, or a multiple of that."""


class DirectoryLocked(OSError):
    """Another process (a broker of ours, or Apache Kafka) uses the directory."""


class DirectAppend(Protocol):
    """Appends over zeros that `fill` has written and `sync` has made durable; each is durable at once.

    `prepare` and `settle` are the owner's; between them the write may run in another thread.
    """

    def prepare(self, chunks: Sequence[Buffer], filled_end: int) -> bool:
        """Make the append of `chunks` ready; False: it is none for this way (too large, or not filled)."""
        ...

    def run(self) -> bool:
        """Write what is ready. False: the file system refuses such writes, so `append` and `sync`. An OSError
        is final, as `sync`'s is.
        """
        ...

    def perform(self) -> int:
        """The same without anything of Python's: 0, or the number of the error, for `settle`."""
        ...

    def settle(self, error: int) -> bool:
        """What `run` gives or raises, once `perform` has given `error`."""
        ...

    def close(self) -> None: ...


class FileHandle(Protocol):
    """An open file that grows at its end. Used by one owner; only `sync` may run in another thread."""

    name: str  # path at the time of opening, for messages
    size: int  # bytes that belong to the file's content; reserved space behind them does not count

    def append(self, chunks: Sequence[Buffer]) -> int:
        """Write `chunks` at the end and return the position of the first byte. On OSError nothing was
        appended.
        """
        ...

    def pread(self, size: int, position: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file."""
        ...

    def pread_now(self, size: int, position: int) -> Buffer | None:
        """The same, or None instead of waiting for the disk."""
        ...

    def truncate(self, size: int) -> None:
        """Cut content (and reserved space) so that the file has exactly `size` bytes."""
        ...

    def reserve(self, size: int) -> None:
        """Take disk space for content up to `size` bytes now. The file shows zeros there until it is
        truncated.
        """
        ...

    def fill(self, size: int) -> None:
        """As `reserve`, with zeros that are really written: what is appended over them changes nothing that
        the file system has to write down, so that its sync waits for the bytes alone.
        """
        ...

    def sync(self) -> None:
        """Return when every byte appended or cut before is durable. Raises for good once it has failed."""
        ...

    def sync_fd(self) -> int | None:
        """The descriptor of a file that may be synced without asking it (`FileSyncs`): only bare system calls
        stand between it and the disk, and no sync of it has failed. None: call `sync`.
        """
        ...

    def sync_failed(self, error: OSError) -> None:
        """Who synced the descriptor was told `error`, which is final as if `sync` had met it."""
        ...

    def direct(self) -> DirectAppend | None:
        """A way to append without the page cache, to be closed before the file; None where there is none."""
        ...

    def fileno(self) -> int: ...

    def close(self) -> None:
        """Close now. Only for files that were never given out as a `FileRange`; others just drop the
        handle.
        """
        ...


class NotResident(Exception):
    """A read that must not wait for the disk would have to. Who meets it has `file_range` read by a worker
    thread, and tries again.
    """

    def __init__(self, file_range: FileRange) -> None:
        super().__init__(f"{file_range} is not in memory")
        self.file_range = file_range


class Lock(Protocol):
    def release(self) -> None: ...


class Files(Protocol):
    """The operations a disk offers. Paths are absolute text; errors are OSError."""

    def create(self, path: str) -> FileHandle:
        """A new, empty file; FileExistsError when the name is taken."""
        ...

    def open(self, path: str, *, writable: bool = True) -> FileHandle: ...

    def exists(self, path: str) -> bool: ...

    def size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """A file that takes the place of another one is as old as that."""
        ...

    def device(self, path: str) -> int:
        """Which filesystem `path` is on (`st_dev`)."""
        ...

    def list_directory(self, path: str) -> list[tuple[str, bool]]:
        """(name, is a directory) of every entry, sorted by name."""
        ...

    def make_directory(self, path: str) -> None:
        """A new directory in an existing one; FileExistsError when the name is taken."""
        ...

    def remove_directory(self, path: str) -> None:
        """An empty directory goes."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Replaces a file of the target's name."""
        ...

    def remove(self, path: str) -> None: ...

    def sync_directory(self, path: str) -> None:
        """Return when the names in `path` are durable (their files' content is not)."""
        ...

    def filesystem_sync(self, path: str) -> FilesystemSync | None:
        """A way to sync everything on the filesystem of `path` at once, where that is reliable."""
        ...

    def lock(self, path: str) -> Lock:
        """Hold the lock file at `path` until released or the process ends; DirectoryLocked when it is
        taken.
        """
        ...

    def is_locked(self, path: str) -> bool:
        """Whether somebody holds the lock file at `path`; asks without taking it."""
        ...

    def space(self, path: str) -> tuple[int, int]:
        """Bytes (in all, usable) of the filesystem of `path`."""
        ...

    def create_anew(self, path: str) -> FileHandle:
        """A new, empty file in place of one that an attempt which failed half way may have left."""
        try:
            return self.create(path)
        except FileExistsError:
            self.remove(path)
            return self.create(path)

    def read_all(self, path: str) -> bytes:
        handle = self.open(path, writable=False)
        try:
            return handle.pread(handle.size, 0)
        finally:
            handle.close()

    def write_atomically(self, path: str, data: Buffer) -> None:
        """Replace `path` by `data`: after a power cut it holds either all of the old or all of the new."""
        temporary = path + TEMPORARY_SUFFIX
        handle = self.write_new(temporary, data)
        try:
            handle.sync()
        finally:
            handle.close()
        self.rename(temporary, path)
        self.sync_directory(os.path.dirname(path))

    def write_new(self, path: str, data: Buffer) -> FileHandle:
        """A new file with this content, not synced; on OSError there is none of that name."""
        handle = self.create_anew(path)
        try:
            handle.append([data])
        except OSError:
            handle.close()
            with contextlib.suppress(OSError):
                self.remove(path)
            raise
        return handle

    def make_directories(self, path: str) -> None:
        """`path` and every directory above it exist and are durable."""
        above = os.path.dirname(path)
        if self.exists(path):
            with contextlib.suppress(PermissionError):  # then it is no directory that we have made
                self.sync_directory(above)  # who made it may have been stopped before that
            return
        self.make_directories(above)
        with contextlib.suppress(FileExistsError):
            self.make_directory(path)
        self.sync_directory(above)

    def remove_tree(self, path: str) -> None:
        for name, is_directory in self.list_directory(path):
            entry = os.path.join(path, name)
            if is_directory:
                self.remove_tree(entry)
            else:
                self.remove(entry)
        self.remove_directory(path)
