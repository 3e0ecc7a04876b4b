# mypy: disable-error-code="no-any-return"
"""Keeps the turn from waiting for a disk: finds out what is not in the page cache, and has a worker read it.

`preadv2(RWF_NOWAIT)` answers from memory or not at all. Probing a page at each read-ahead step costs about a
microsecond; it can miss a hole between two probes, which then costs that one answer a short wait.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Protocol

from ottla.log.file_range import FileRange
from ottla.log.files import FileHandle

try:
    import cython
except ModuleNotFoundError:  # uncompiled, and Cython is not there: its names are only decoration then
    from ottla.model import cython_shim as cython

if cython.compiled:
    from cython.cimports.ottla.server import _system_calls as system

_PROBE_STEP_BYTES = 128 * 1024  # Linux reads ahead in steps of this size
_WARM_STEP_BYTES = 1024 * 1024
_NOWAIT: int | None = getattr(os, "RWF_NOWAIT", None) if hasattr(os, "preadv") else None
_probe = bytearray(1)


class Offload(Protocol):
    def __call__(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        """Runs `work` in a worker thread and `done`, with its error if any, back on the owner's."""
        ...


def run_at_once(work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
    """An Offload for who has no workers: it waits."""
    try:
        work()
    except Exception as error:
        done(error)
    else:
        done(None)


def is_resident(handle: FileHandle, position: int, size: int) -> bool:
    """Whether a send of these bytes needs no disk. Where the system cannot tell, yes."""
    if _NOWAIT is None:
        return True
    fd = handle.fileno()
    end = position + size
    if cython.compiled and system.HAS_PREADV2:
        return system.is_cached(fd, position, end, 131072)  # _PROBE_STEP_BYTES, which is no C number
    buffers = [_probe]
    try:
        for probed in range(position, end, _PROBE_STEP_BYTES):
            os.preadv(fd, buffers, probed, _NOWAIT)
        os.preadv(fd, buffers, end - 1, _NOWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a filesystem without the call (tmpfs before Linux 6): send, and let that be the judge
    return True


def warm(ranges: Iterable[FileRange]) -> None:
    """Brings the ranges into the page cache. Runs in a worker thread."""
    for each in ranges:
        end = each.position + each.size
        for position in range(each.position, end, _WARM_STEP_BYTES):
            each.handle.pread(min(_WARM_STEP_BYTES, end - position), position)
