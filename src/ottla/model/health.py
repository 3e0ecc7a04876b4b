"""What is wrong with a broker that still runs. Rooms add a check for what they look after; nobody is called
until somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.model.values import NamedTuple

Check = Callable[[], str | None]
"""What is wrong, with its cure, or None. Runs on the owner's thread and waits for nothing."""


class Problem(NamedTuple):
    check: str  # a short, stable name, as `disk`
    text: str


class Health:
    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}

    def add(self, name: str, check: Check) -> None:
        self._checks[name] = check

    @property
    def checks(self) -> tuple[str, ...]:
        return tuple(self._checks)

    def problems(self) -> list[Problem]:
        found = ((name, check()) for name, check in self._checks.items())
        return [Problem(name, text) for name, text in found if text is not None]
