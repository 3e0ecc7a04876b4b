# mypy: disable-error-code="attr-defined,no-any-return"
"""Appends past the page cache: one call that returns when the bytes are durable, and no sync behind it.

Only for places that were filled with zeros before, so that nothing about the file changes but these bytes. A
write is whole blocks: the last one is written again when more is appended to it, with the same bytes in
front, as a sync of the page cache does. It is made ready in memory of its own, so another thread can take it.
"""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.log.disk_lane import DiskWork
from ottla.log.files import BLOCK_BYTES

if TYPE_CHECKING:
    from ottla.log.files import Buffer, FileHandle

try:
    import cython
except ModuleNotFoundError:  # uncompiled, and Cython is not there: its names are only decoration then
    from ottla.model import cython_shim as cython

if cython.compiled:
    from cython.cimports.cpython.memoryview import PyMemoryView_GET_BUFFER
    from cython.cimports.ottla.log import _write_calls as system

ROOM_BYTES = 256 * 1024  # of one write; more is appended and synced as everywhere else

_FLAGS: int | None = os.O_RDWR | os.O_DIRECT | os.O_DSYNC | os.O_CLOEXEC if hasattr(os, "O_DIRECT") else None
# Not the disk's failure: this file system has no such writes, or needs room for every one.
_REFUSALS = (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSPC, errno.EDQUOT)


class BlockAppend(DiskWork):
    """Of one open file; see `files.DirectAppend`."""

    def __init__(self, handle: FileHandle, fd: int) -> None:
        self._handle = handle
        self._fd = fd
        self._room = memoryview(mmap.mmap(-1, ROOM_BYTES))  # is aligned to a page
        self._known_end = -1  # up to here the file's last, unfinished block stands at the start of the room
        self._position = 0  # of the write that is ready
        self._count = 0
        self._end = 0  # of the content, when that is written
        self._is_refused = False
        if cython.compiled:
            self._address = cython.cast(cython.p_char, PyMemoryView_GET_BUFFER(self._room).buf)

    def prepare(self, chunks: Sequence[Buffer], filled_end: int) -> bool:
        if self._is_refused:
            return False
        position = self._handle.size
        at = position % BLOCK_BYTES
        end = at + sum(map(len, chunks))
        count = -(-end // BLOCK_BYTES) * BLOCK_BYTES
        if count > ROOM_BYTES or position - at + count > filled_end:
            return False
        content = b"".join(chunks)
        room = self._room
        if self._known_end != position:
            room[:at] = self._handle.pread(at, position - at)
        room[at:end] = content
        room[end:count] = bytes(count - end)
        self._position = position - position % BLOCK_BYTES
        self._count = count
        self._end = self._position + end
        return True

    def run(self) -> bool:
        return not self._is_refused and self.settle(self.perform())

    def perform(self) -> int:
        """The write that is ready: 0, or the number of an error. Touches no object of Python's."""
        if cython.compiled:
            done = 0
            while done < self._count:
                written = system.pwrite(
                    self._fd, self._address + done, self._count - done, self._position + done
                )
                if written > 0:
                    done += written
                elif written == 0:
                    return system.EIO
                elif system.errno != system.EINTR:
                    return system.errno
            return 0
        return self._write_plainly()

    def _write_plainly(self) -> int:
        done = 0
        try:
            while done < self._count:
                written = os.pwrite(self._fd, self._room[done : self._count], self._position + done)
                if written == 0:
                    return errno.EIO
                done += written
        except OSError as error:
            return error.errno or errno.EIO
        return 0

    def settle(self, error: int) -> bool:
        """What the write has come to."""
        if error in _REFUSALS:
            self._is_refused = True
            return False
        if error:
            self._is_refused = True
            raise OSError(error, os.strerror(error), self._handle.name)
        kept = self._end % BLOCK_BYTES
        self._room[:kept] = self._room[self._count - BLOCK_BYTES : self._count - BLOCK_BYTES + kept]
        self._handle.size = self._known_end = self._end
        return True

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()


def open_direct(handle: FileHandle) -> BlockAppend | None:
    """None where there is no such thing."""
    if _FLAGS is None:
        return None
    try:
        fd = os.open(handle.name, _FLAGS)
    except OSError:
        return None  # the file system says no; what is wrong with the file itself, the usual way will tell
    return BlockAppend(handle, fd)
