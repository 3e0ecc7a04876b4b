"""One line on the terminal that shows that something goes on, from the first second on; none elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType

_QUIET_SECONDS = 1.0
_REFRESH_SECONDS = 0.1
_CLEAR_LINE = "\r\x1b[K"


class Waiting:
    """`with Waiting("…") as waiting:` and `waiting.tick()` in the loop; the line is gone at the end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._began = time.monotonic()
        self._shown = 0.0  # when the line was drawn last
        self._terminal = sys.stderr.isatty()

    def tick(self, text: Callable[[], str] | None = None) -> None:
        """`text` is called only when the line is drawn."""
        now = time.monotonic()
        if not self._terminal or now - self._began < _QUIET_SECONDS or now - self._shown < _REFRESH_SECONDS:
            return
        self._shown = now
        elapsed = f"{now - self._began:.0f} s"
        shown = text() if text else self._text
        print(f"{_CLEAR_LINE}{shown} ({elapsed})", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Before something else is printed; the next tick draws the line again."""
        if self._shown:
            print(_CLEAR_LINE, end="", file=sys.stderr, flush=True)
            self._shown = 0.0

    def __enter__(self) -> Waiting:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.clear()
