"""What is told to whoever waits: that something goes on, in a line on the terminal, or why nothing does."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

_QUIET_SECONDS = 1.0
_REFRESH_SECONDS = 0.1
_STUCK_SECONDS = 2.0  # what passes by itself, as a leader that moves, takes less
_LOOK_SECONDS = 0.2
_CLEAR_LINE = "\r\x1b[K"


class Waiting:
    """`with Waiting("…") as waiting:` and `waiting.tick()` in the loop; the line is gone at the end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._began = time.monotonic()
        self._shown = 0.0  # when the line was drawn last
        self._stuck_since: float | None = None
        self._told: set[str] = set()  # reasons
        self._terminal = sys.stderr.isatty()

    def tick(self, text: Callable[[], str] | None = None) -> None:
        """From the first second on, on terminals. `text` is called only when the line is drawn."""
        now = time.monotonic()
        if not self._terminal or now - self._began < _QUIET_SECONDS or now - self._shown < _REFRESH_SECONDS:
            return
        self._shown = now
        elapsed = f"{now - self._began:.0f} s"
        shown = text() if text else self._text
        print(f"{_CLEAR_LINE}{shown} ({elapsed})", end="", file=sys.stderr, flush=True)

    def explain(self, problem: Exception | None) -> None:
        """To be called as often as `tick`; None: things go on.

        What has held them up for two seconds is said once, also where no terminal is.
        """
        now = time.monotonic()
        if problem is None:
            self._stuck_since = None
        elif self._stuck_since is None:
            self._stuck_since = now
        elif now - self._stuck_since >= _STUCK_SECONDS:
            reason = str(problem)
            if reason not in self._told:
                self._told.add(reason)
                self.clear()
                print(f"ottla: still waiting: {reason}", file=sys.stderr, flush=True)

    def show(self) -> None:
        """At once, for what takes its time and cannot tick."""
        if self._terminal:
            self._shown = time.monotonic()
            print(f"{_CLEAR_LINE}{self._text} …", end="", file=sys.stderr, flush=True)

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


@contextmanager
def watched(look: Callable[[], None]) -> Iterator[None]:
    """Calls `look` now and then, from a thread of its own: the block may wait where it can call nothing."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_LOOK_SECONDS):
            look()

    thread = threading.Thread(target=watch, name="ottla-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
