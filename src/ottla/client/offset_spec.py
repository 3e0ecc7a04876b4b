"""Places in a partition, as users write them; one grammar for commands and clients. Pure.

    start               the first record there is
    end                 behind the last one
    100                 offset 100
    -5                  the fifth before the end
    @-1h                the first record of the last hour (s, m, h, d, w; also @-1h30m)
    @2026-11-01T10:00   the first since then (local time, or with Z or +01:00; a date alone is its midnight)
    @1793527200000      the same in milliseconds since 1970

Where a reader stops, a place is exclusive: up to 100 is up to and with 99.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from ottla.client.errors import InvalidOffsetSpec


@dataclass(frozen=True, slots=True)
class Start:
    pass


@dataclass(frozen=True, slots=True)
class End:
    pass


@dataclass(frozen=True, slots=True)
class Exact:
    offset: int


@dataclass(frozen=True, slots=True)
class FromEnd:
    count: int


@dataclass(frozen=True, slots=True)
class AtTime:
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Ago:
    """Of the moment when it is looked up."""

    duration_ms: int


OffsetSpec = Start | End | Exact | FromEnd | AtTime | Ago

_WORDS: dict[str, OffsetSpec] = {
    "start": Start(),
    "earliest": Start(),
    "beginning": Start(),
    "end": End(),
    "latest": End(),
}
_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_AGO = re.compile(r"-((?:[0-9]+[smhdw])+)\Z")
_PART = re.compile(r"([0-9]+)([smhdw])")
_MILLISECONDS = re.compile(r"[0-9]{10,15}\Z")
_NUMBER = re.compile(r"-?[0-9]{1,19}\Z")
_CURE = (
    "expected start, end, an offset (100), a count before the end (-5), or a time (@-1h, @2026-11-01T10:00)"
)
_OFFSET_MAX = 2**63 - 1
_DURATION = re.compile(
    r"P(?=.)(?:([0-9]{1,6})D)?(?:T(?=.)(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,9}(?:\.[0-9]{1,9})?)S)?)?\Z",
    re.IGNORECASE,
)
_RESETS: dict[str, OffsetSpec | None] = {"earliest": Start(), "latest": End(), "none": None}
_BY_DURATION = "by_duration:"


def parse_offset(text: str | int | OffsetSpec, now_ms: int) -> OffsetSpec:
    """The place that `text` means. Raises InvalidOffsetSpec."""
    if isinstance(text, int):
        return Exact(text) if text >= 0 else FromEnd(-text)
    if not isinstance(text, str):
        return text
    word = text.strip()
    if word.lower() in _WORDS:
        return _WORDS[word.lower()]
    if word.startswith("@"):
        return AtTime(_time_ms(word[1:], now_ms))
    if _NUMBER.match(word):
        number = int(word)
        if number > _OFFSET_MAX:
            raise _refusal(text, "no offset is that large")
        return FromEnd(-number) if word.startswith("-") else Exact(number)
    raise _refusal(text, _CURE)


def is_reset(text: object) -> bool:
    """Whether auto.offset.reset may say so: earliest, latest, none, by_duration:P1DT2H (KIP-1106)."""
    if not isinstance(text, str):
        return False
    if text.startswith(_BY_DURATION):
        return _DURATION.match(text[len(_BY_DURATION) :]) is not None
    return text in _RESETS


def parse_reset(text: str) -> OffsetSpec | None:
    if text in _RESETS:
        return _RESETS[text]
    found = _DURATION.match(text[len(_BY_DURATION) :])
    assert found is not None, text
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return Ago(round(((days * 24 + hours) * 60 + minutes) * 60_000 + seconds * 1_000))


def _time_ms(text: str, now_ms: int) -> int:
    ago = _AGO.match(text)
    if ago is not None:
        return now_ms - sum(int(count) * _UNITS_MS[unit] for count, unit in _PART.findall(ago[1]))
    if text == "now":
        return now_ms
    if _MILLISECONDS.match(text):
        return int(text)
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise _refusal("@" + text, _CURE) from None


def _refusal(text: str, cure: str) -> InvalidOffsetSpec:
    return InvalidOffsetSpec(f"{text!r} is no place in a partition", cure)
