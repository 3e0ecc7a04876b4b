# mypy: disable-error-code="attr-defined,no-any-return"
"""Syncs of a few files, or of a whole filesystem, as a lane makes them: bare system calls.

Only where modules are compiled, and on Linux; everywhere else a worker calls the files' own `sync`.
"""

from __future__ import annotations

import errno

from ottla.log.disk_lane import DiskWork

try:
    import cython
except ModuleNotFoundError:  # uncompiled, and Cython is not there: its names are only decoration then
    from ottla.model import cython_shim as cython

if cython.compiled:
    from cython.cimports.ottla.log import _system_calls as system

FILES_MAX = 2
"""As many as are synced one by one; see `flusher`."""

CAN_SYNC: bool = bool(system.HAS_SYNCFS) if cython.compiled else False


class FileSyncs(DiskWork):
    """The caller keeps the descriptors open until it is done."""

    def __init__(self, fds: list[int], filesystem_fd: int = -1) -> None:
        """`filesystem_fd`, when there is one, stands for all files of its filesystem."""
        assert len(fds) <= FILES_MAX
        if not cython.compiled:
            self._fds, self._errors = [-1] * FILES_MAX, [0] * FILES_MAX
        self._count = len(fds)
        for at, fd in enumerate(fds):
            self._fds[at] = fd
            self._errors[at] = 0
        self._filesystem_fd = filesystem_fd

    def perform(self) -> int:
        if cython.compiled:
            if self._filesystem_fd >= 0:
                return system.sync_filesystem(self._filesystem_fd)
            found = at = 0
            while at < self._count:  # one that fails says nothing about the other
                self._errors[at] = system.sync_data(self._fds[at])
                found = found or self._errors[at]
                at += 1
            return found
        return errno.ENOSYS

    def error_of(self, at: int) -> int:
        """Of one of the files, when it is done: 0, or the number of an error."""
        return self._errors[at]
