"""How long to wait before trying again: longer each time, and never in step with others."""

from __future__ import annotations

import random

from ottla.model.config_types import TypedValues

_JITTER = 0.2


class Backoff:
    """Pauses that double from `first_ms` to `most_ms`, each a fifth shorter or longer by chance."""

    def __init__(self, first_ms: int, most_ms: int, chance: random.Random | None = None) -> None:
        self._first_ms = first_ms
        self._most_ms = max(first_ms, most_ms)
        self._chance = chance or random.Random()

    @classmethod
    def of(cls, settings: TypedValues) -> Backoff:
        return cls(settings.integer("retry.backoff.ms"), settings.integer("retry.backoff.max.ms"))

    def pause_ms(self, failures: int) -> int:
        """After that many failures in a row, one or more."""
        pause_ms = min(self._first_ms << min(failures - 1, 30), self._most_ms)
        return round(pause_ms * self._chance.uniform(1 - _JITTER, 1 + _JITTER))
