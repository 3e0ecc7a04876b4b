"""The operating system's files: the only code that opens, writes, syncs, renames or removes one."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Sequence

from ottla.log import file_locks
from ottla.log.file_syncs import CAN_SYNC
from ottla.log.files import Buffer, DirectAppend, DirectoryLocked, Files
from ottla.log.filesystem_sync import FilesystemSync, open_filesystem_sync

_IOV_MAX = os.sysconf("SC_IOV_MAX") if "SC_IOV_MAX" in os.sysconf_names else 1024
_HAS_PWRITEV = hasattr(os, "pwritev")
_NOWAIT: int | None = getattr(os, "RWF_NOWAIT", None) if hasattr(os, "preadv") else None
_FILL_BYTES = 64 * 1024  # written at a time
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync alone stops at the drive's cache


class SystemFile:
    """A file of the operating system. See `FileHandle`."""

    __slots__ = ("_fd", "_sync_error", "_tail_is_torn", "name", "size")

    def __init__(self, name: str, fd: int) -> None:
        self.name = name
        self.size = os.fstat(fd).st_size
        self._fd = fd
        self._tail_is_torn = False  # a failed append left bytes behind `size` that could not be cut off yet
        self._sync_error: OSError | None = None

    def append(self, chunks: Sequence[Buffer]) -> int:
        position = self.size
        if self._tail_is_torn:
            self._drop_torn_tail()
        size = sum(map(len, chunks))
        try:
            written = _write(self._fd, chunks, position) if len(chunks) <= _IOV_MAX else 0
            while written < size:
                written += _write(self._fd, _rest(chunks, written), position + written)
        except OSError:
            self._tail_is_torn = True
            with contextlib.suppress(OSError):
                self._drop_torn_tail()
            raise
        self.size = position + size
        return position

    def _drop_torn_tail(self) -> None:
        os.ftruncate(self._fd, self.size)
        self._tail_is_torn = False

    def pread(self, size: int, position: int) -> bytes:
        data = os.pread(self._fd, size, position)
        if len(data) == size or not data:
            return data
        # A single pread gives at most 2 GiB, and a signal or a slow filesystem may cut it short.
        parts = [data]
        got = len(data)
        while got < size and data:
            data = os.pread(self._fd, size - got, position + got)
            parts.append(data)
            got += len(data)
        return b"".join(parts)

    def pread_now(self, size: int, position: int) -> Buffer | None:
        if _NOWAIT is None:
            return self.pread(size, position)
        data = bytearray(size)
        try:
            count = os.preadv(self._fd, [data], position, _NOWAIT)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
            return self.pread(size, position)  # this filesystem cannot tell
        if count < size and position + count < self.size:
            return None  # what follows is not there yet
        del data[count:]
        return data

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)
        self.size = size
        self._tail_is_torn = False

    def reserve(self, size: int) -> None:
        if size <= self.size:
            return
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(self._fd, self.size, size - self.size)
        else:
            os.ftruncate(self._fd, size)

    def fill(self, size: int) -> None:
        position = max(self.size, os.fstat(self._fd).st_size)
        while position < size:
            position += _write(self._fd, [bytes(min(size - position, _FILL_BYTES))], position)

    def sync(self) -> None:
        if self._sync_error is not None:
            raise self._sync_error
        try:
            _sync(self._fd)
        except OSError as error:
            self._sync_error = error
            raise

    def sync_fd(self) -> int | None:
        return None if self._sync_error is not None or not CAN_SYNC else self._fd

    def sync_failed(self, error: OSError) -> None:
        self._sync_error = error

    def direct(self) -> DirectAppend | None:
        from ottla.log.direct_append import open_direct  # only the log of znodes has such files

        return open_direct(self)

    def fileno(self) -> int:
        return self._fd

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            os.close(self._fd)


def _write(fd: int, chunks: Sequence[Buffer], position: int) -> int:
    if _HAS_PWRITEV:
        return os.pwritev(fd, chunks, position)
    os.lseek(fd, position, os.SEEK_SET)
    return os.writev(fd, chunks)


def _rest(chunks: Sequence[Buffer], written: int) -> list[Buffer]:
    """What is left of `chunks` behind `written` bytes, as much as one call takes."""
    rest: list[Buffer] = []
    for chunk in chunks:
        if written >= len(chunk):
            written -= len(chunk)
            continue
        rest.append(memoryview(chunk)[written:] if written else chunk)
        written = 0
        if len(rest) == _IOV_MAX:
            break
    return rest


def _sync(fd: int) -> None:
    if _FULL_SYNC is not None:
        try:
            fcntl.fcntl(fd, _FULL_SYNC)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY):
                raise  # a real failure; the others say that this filesystem has no such call
    if hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:
        os.fsync(fd)


class SystemLock:
    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def release(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.release()


class SystemFiles(Files):
    """The operating system's files."""

    def create(self, path: str) -> SystemFile:
        return SystemFile(path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))

    def open(self, path: str, *, writable: bool = True) -> SystemFile:
        return SystemFile(path, os.open(path, (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC))

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def device(self, path: str) -> int:
        return os.stat(path).st_dev

    def list_directory(self, path: str) -> list[tuple[str, bool]]:
        with os.scandir(path) as entries:
            return sorted((entry.name, entry.is_dir()) for entry in entries)

    def make_directory(self, path: str) -> None:
        os.mkdir(path, 0o755)

    def remove_directory(self, path: str) -> None:
        os.rmdir(path)

    def rename(self, source: str, target: str) -> None:
        os.rename(source, target)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def sync_directory(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def filesystem_sync(self, path: str) -> FilesystemSync | None:
        return open_filesystem_sync(path)

    def lock(self, path: str) -> SystemLock:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            file_locks.lock_exclusively(fd)
        except OSError as error:
            os.close(fd)
            if error.errno in (errno.EACCES, errno.EAGAIN):
                raise DirectoryLocked(
                    errno.EAGAIN,
                    "another broker uses this directory; stop it or choose another log.dirs",
                    path,
                ) from None
            raise
        return SystemLock(fd)

    def is_locked(self, path: str) -> bool:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            return file_locks.is_locked(fd)
        finally:
            os.close(fd)

    def space(self, path: str) -> tuple[int, int]:
        status = os.statvfs(path)
        return status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize
