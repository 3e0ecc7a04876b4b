"""Memory that the machine really has.

A virtual machine may get its own from the host page by page, when it is first touched, and give it back when
it was free for some seconds. Writing to a page that must be fetched takes several times as long, whoever
writes. So before megabytes go into new files, what they will lie in is touched here and let go.
"""

from __future__ import annotations

import mmap

from ottla.model.limits import MIB

_STEP = bytes(MIB)


def fetch_memory(mib: int) -> None:
    """As much as is free, at most; soon to be used, or it is given back."""
    mib = min(mib, _available_mib() // 2)
    with mmap.mmap(-1, max(1, mib) * MIB) as room:
        for at in range(0, mib * MIB, MIB):
            room[at : at + MIB] = _STEP


def _available_mib() -> int:
    with open("/proc/meminfo") as lines:
        found = dict(line.split(":", 1) for line in lines)
    return int(found["MemAvailable"].split()[0]) // 1024
