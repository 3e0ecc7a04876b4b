"""Where a process runs and what it costs: cores, processor time, memory. Linux only, as read from /proc."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SERVER_CORE = 0
CLIENT_CORE = (os.cpu_count() or 1) - 1
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def pin(pid: int, core: int) -> None:
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(thread), {core})


@contextmanager
def on_core(core: int) -> Iterator[None]:
    """Processes that are started meanwhile have this core alone, from their first instruction on."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def cpu_seconds(pid: int) -> float:
    """What it has used so far, with its children, living and ended."""
    return sum(_cpu_ticks(each) for each in family(pid)) / _TICKS_PER_SECOND


def own_and_kernel_seconds(pid: int) -> tuple[float, float]:
    """What the process itself has used so far: in its own code, and in system calls."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) / _TICKS_PER_SECOND, int(fields[12]) / _TICKS_PER_SECOND


def _cpu_ticks(pid: int) -> int:
    """0 for one that has ended since it was listed: its parent has its time now, or will."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    fields = told.rpartition(")")[2].split()
    return sum(map(int, fields[11:15]))  # its own user and system time, and those of children that ended


def resident_mib(pid: int) -> float:
    """With its children."""
    return sum(_resident_kib(each) for each in family(pid)) / 1024


def own_resident_mib(pid: int) -> float:
    """Without its children."""
    return _resident_kib(pid) / 1024


def _resident_kib(pid: int) -> int:
    """0 for one that has ended, waited for or not."""
    try:
        told = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return 0
    lines = [line for line in told.splitlines() if line.startswith("VmRSS:")]
    return int(lines[0].split()[1]) if lines else 0


def family(pid: int) -> list[int]:
    """The process and all that descends from it."""
    found = [pid]
    for each in found:
        for children in Path(f"/proc/{each}/task").glob("*/children"):
            with suppress(FileNotFoundError, ProcessLookupError):  # it ended meanwhile
                found += map(int, children.read_text().split())
    return found
