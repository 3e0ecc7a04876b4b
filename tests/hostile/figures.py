"""What the tests of this directory measured, shown at the end of a run."""

from __future__ import annotations

_noted: list[str] = []


def note(text: str) -> None:
    _noted.append(text)


def noted() -> list[str]:
    return list(_noted)
