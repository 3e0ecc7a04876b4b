"""Bytes, durations and counts as people write and read them: 512MB, 1.5 GiB, 1h30m, 2d."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError

_BYTE_UNITS = {"": 1, "B": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_DURATION_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)


def parse_bytes(text: str) -> int:
    """For argparse. Units are powers of 1024, with or without the i."""
    found = _SIZE.fullmatch(text.strip())
    if not found:
        raise ArgumentTypeError(f"{text!r} is no size, expected something like 512, 64KB or 1GiB")
    return int(float(found[1]) * _BYTE_UNITS[found[2].upper()])


def format_bytes(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def format_duration(duration_ms: int) -> str:
    """The two largest units: 1d 3h, 5m 2s, 300ms."""
    if duration_ms < 1_000:
        return f"{duration_ms}ms"
    parts = []
    for unit in ("d", "h", "m", "s"):
        count, duration_ms = divmod(duration_ms, _DURATION_MS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2])


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
