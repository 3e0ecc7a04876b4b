# mypy: disable-error-code="no-any-return"
"""One sync for a whole filesystem (Linux `syncfs`), offered only where it tells the truth.

Since Linux 5.8 `syncfs` reports write errors of any file of the filesystem since the descriptor was opened,
so the descriptor is opened once, before anything is written. Only filesystems known to wait for data,
metadata and the drive's cache are trusted; on others the caller syncs file by file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Protocol

from ottla.log.file_syncs import CAN_SYNC

try:
    import cython
except ModuleNotFoundError:  # uncompiled, and Cython is not there: its names are only decoration then
    from ottla.model import cython_shim as cython

if cython.compiled:
    from cython.cimports.ottla.log import _system_calls as system

_TRUSTED = frozenset({"ext4", "xfs"})
_KERNEL_MIN = (5, 8)


class FilesystemSync(Protocol):
    device: int  # st_dev of the files it covers

    def sync(self) -> None:
        """Return when every file and name of the filesystem is durable; OSError when any write failed."""
        ...

    def sync_fd(self) -> int | None:
        """A descriptor for `syncfs`, which is all that `sync` does; None: call `sync`."""
        ...


class SyncFs:
    __slots__ = ("_fd", "_path", "_syncfs", "device")

    def __init__(self, path: str) -> None:
        self._path = path
        self._syncfs = _system_call()
        self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.device = os.fstat(self._fd).st_dev

    def sync(self) -> None:
        number = self._syncfs(self._fd)
        if number:
            raise OSError(number, f"syncfs: {os.strerror(number)}", self._path)

    def sync_fd(self) -> int | None:
        return self._fd if CAN_SYNC else None

    def __del__(self) -> None:
        fd = getattr(self, "_fd", -1)
        if fd >= 0:
            os.close(fd)


def _system_call() -> Callable[[int], int]:
    """`syncfs` without the interpreter's lock: 0, or the number of its error."""
    if cython.compiled and system.HAS_SYNCFS:
        return _call_directly
    import ctypes  # late: it takes a while

    call = ctypes.CDLL(None, use_errno=True).syncfs
    return lambda fd: ctypes.get_errno() if call(fd) else 0


def _call_directly(fd: int) -> int:
    with cython.nogil:
        return system.sync_filesystem(fd)


def open_filesystem_sync(path: str) -> SyncFs | None:
    if sys.platform != "linux" or _kernel_version(os.uname().release) < _KERNEL_MIN:
        return None
    if _filesystem_type(os.stat(path).st_dev) not in _TRUSTED:
        return None
    try:
        return SyncFs(path)
    except (ImportError, AttributeError):  # a Python without ctypes, a C library without syncfs
        return None


def _kernel_version(release: str) -> tuple[int, int]:
    major, _, rest = release.partition(".")
    minor = "".join(character for character in rest.partition(".")[0] if character.isdigit())
    try:
        return int(major), int(minor)
    except ValueError:
        return 0, 0


def _filesystem_type(device: int) -> str | None:
    """The type of the mounted filesystem with this device number, from the kernel's table of mounts."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
            for line in mounts:
                fields = line.split()
                if fields[2] == wanted:
                    return fields[fields.index("-") + 1]
    except (OSError, ValueError, IndexError):
        return None
    return None
