"""Locks on open files that a JVM honours too: Apache Kafka and Ottla keep out of each other's way."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import sys

_OFD_SETLK: int | None = getattr(fcntl, "F_OFD_SETLK", None)
_OFD_GETLK: int | None = getattr(fcntl, "F_OFD_GETLK", None)
_FLOCK = struct.Struct("hhqqi4x")  # Linux's struct flock: type, whence, start, length, process


def lock_exclusively(fd: int) -> None:
    """OSError (EAGAIN, EACCES) when somebody holds it."""
    if _OFD_SETLK is not None and sys.platform == "linux":
        # Conflicts with the POSIX lock that a JVM takes, and unlike one also within this process.
        fcntl.fcntl(fd, _OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    else:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_locked(fd: int) -> bool:
    """Asks without taking it."""
    if _OFD_GETLK is not None and sys.platform == "linux":
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind: int = _FLOCK.unpack(fcntl.fcntl(fd, _OFD_GETLK, asked))[0]
        return kind != fcntl.F_UNLCK
    try:
        fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)  # gone again when the file is closed
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            return True
        raise
    return False
