"""The offset grammar: every form, its edges, and what is refused with a hint."""

from __future__ import annotations

import time

import pytest

from ottla.client.errors import InvalidOffsetSpec
from ottla.client.offset_spec import (
    Ago,
    AtTime,
    End,
    Exact,
    FromEnd,
    OffsetSpec,
    Start,
    is_reset,
    parse_offset,
    parse_reset,
)

NOW_MS = 1_790_000_000_000
HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("start", Start()),
        ("Earliest", Start()),
        ("end", End()),
        ("latest", End()),
        ("0", Exact(0)),
        (" 100 ", Exact(100)),
        (str(2**63 - 1), Exact(2**63 - 1)),
        ("-5", FromEnd(5)),
        ("-0", FromEnd(0)),
        (7, Exact(7)),
        (-7, FromEnd(7)),
        ("@-1h", AtTime(NOW_MS - HOUR_MS)),
        ("@-1h30m", AtTime(NOW_MS - HOUR_MS - HOUR_MS // 2)),
        ("@-2d", AtTime(NOW_MS - 48 * HOUR_MS)),
        ("@-1w", AtTime(NOW_MS - 7 * 24 * HOUR_MS)),
        ("@-90s", AtTime(NOW_MS - 90_000)),
        ("@now", AtTime(NOW_MS)),
        ("@1700000000123", AtTime(1_700_000_000_123)),
        ("@2026-11-01T10:00Z", AtTime(1_793_527_200_000)),
        ("@2026-11-01T11:00+01:00", AtTime(1_793_527_200_000)),
        ("@2026-11-01T10:00:00.250Z", AtTime(1_793_527_200_250)),
    ],
)
def test_each_form_means_its_place(text: str | int, spec: OffsetSpec) -> None:
    assert parse_offset(text, NOW_MS) == spec


def test_a_spec_passes_through() -> None:
    assert parse_offset(FromEnd(3), NOW_MS) == FromEnd(3)


def test_times_without_a_zone_are_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC-2")  # two hours ahead of UTC
    time.tzset()
    try:
        assert parse_offset("@2026-11-01T10:00", NOW_MS) == AtTime(1_793_527_200_000 - 2 * HOUR_MS)
        assert parse_offset("@2026-11-01", NOW_MS) == AtTime(1_793_527_200_000 - 12 * HOUR_MS)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "begin",
        "5-",
        "--5",
        "1.5",
        "1_000",
        "@",
        "@-",
        "@-5",
        "@-1y",
        "@1h",
        "@2026-13-01",
        "@25:00",
        str(2**63),
    ],
)
def test_anything_else_is_refused_with_the_forms_there_are(text: str) -> None:
    with pytest.raises(InvalidOffsetSpec, match=r"no place in a partition; (expected|no offset)"):
        parse_offset(text, NOW_MS)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("earliest", Start()),
        ("none", None),
        ("by_duration:PT0S", Ago(0)),
        ("by_duration:P1DT2H3M4.5S", Ago(26 * HOUR_MS + 3 * 60_000 + 4_500)),
        ("by_duration:pt15m", Ago(15 * 60_000)),
    ],
)
def test_what_auto_offset_reset_may_say(text: str, spec: OffsetSpec | None) -> None:
    assert is_reset(text)
    assert parse_reset(text) == spec


@pytest.mark.parametrize(
    "text",
    ["", "Earliest", "by_duration", "by_duration:", "by_duration:P", "by_duration:PT", "by_duration:-PT1S"],
)
def test_what_auto_offset_reset_may_not_say(text: str) -> None:
    assert not is_reset(text)
