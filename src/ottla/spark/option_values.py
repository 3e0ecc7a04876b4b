"""Values of options as Spark users write them: flags, counts, durations, moments. Pure."""

from __future__ import annotations

import re

from ottla.spark.errors import InvalidOption

_UNITS_MS = {
    "ms": 1,
    "millisecond": 1,
    "s": 1_000,
    "sec": 1_000,
    "second": 1_000,
    "m": 60_000,
    "min": 60_000,
    "minute": 60_000,
    "h": 3_600_000,
    "hour": 3_600_000,
    "d": 86_400_000,
    "day": 86_400_000,
}


def flag(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise InvalidOption(f"{name} is {text!r}: write true or false")
    return text.lower() == "true"


def positive(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not text.strip().isdecimal() or int(text) == 0:
        raise InvalidOption(f"{name} is {text!r}: write a whole number above 0")
    return int(text)


def timestamp_ms(name: str, text: str) -> int:
    if not text.strip().isdecimal():
        raise InvalidOption(f"{name} is {text!r}: write milliseconds since 1970, for example 1793527200000")
    return int(text)


def duration_ms(name: str, text: str) -> int:
    """`15m`, `90s`, `500ms`, `2 minutes`; a number alone is milliseconds, as in Spark's time strings."""
    word = text.strip().lower()
    match = re.fullmatch(r"([0-9]+)\s*([a-z]*)", word)
    unit = None if match is None else (match[2] or "ms")
    if unit is not None and unit not in _UNITS_MS:
        unit = unit.removesuffix("s")
    if match is None or unit not in _UNITS_MS:
        raise InvalidOption(f"{name} is {text!r}: write a time such as 15m, 90s or 500ms")
    return int(match[1]) * _UNITS_MS[unit]
