"""Keeps the turn from waiting for a disk: finds file ranges that are not in the page cache, and reads them.

`preadv2(RWF_NOWAIT)` answers from memory or not at all. Probing a page at each read-ahead step costs about a
microsecond; it can miss a hole between two probes, which then costs that one answer a short wait.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from ottla.log.files import FileRange

_PROBE_STEP_BYTES = 128 * 1024  # Linux reads ahead in steps of this size
_WARM_STEP_BYTES = 1024 * 1024
_NOWAIT: int | None = getattr(os, "RWF_NOWAIT", None) if hasattr(os, "preadv") else None
_probe = bytearray(1)


def cold_ranges(ranges: Iterable[FileRange]) -> list[FileRange]:
    """Those that a send would have to wait for. Where the system cannot tell, none."""
    if _NOWAIT is None:
        return []
    return [each for each in ranges if not _is_resident(each, _NOWAIT)]


def _is_resident(file_range: FileRange, nowait: int) -> bool:
    fd = file_range.handle.fileno()
    end = file_range.position + file_range.size
    buffers = [_probe]
    try:
        for position in range(file_range.position, end, _PROBE_STEP_BYTES):
            os.preadv(fd, buffers, position, nowait)
        os.preadv(fd, buffers, end - 1, nowait)
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
