"""Keeps to a rate of so many records a second."""

from __future__ import annotations

import time


class Pace:
    """Sleeps when records come too early, and never catches up more than a second."""

    def __init__(self, per_second: float | None) -> None:
        self._gap = 1 / per_second if per_second else 0.0
        self._due = 0.0  # when the next one may go

    def wait(self) -> None:
        if not self._gap:
            return
        now = time.monotonic()
        self._due = max(self._due or now, now - 1)
        if self._due > now:
            time.sleep(self._due - now)
        self._due += self._gap
