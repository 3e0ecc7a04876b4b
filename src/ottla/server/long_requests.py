"""Requests whose work grows with what they ask for: done in slices, so that none of them makes a turn long.

A handler gives its work as a generator. Where that yields None it may be interrupted; where it yields a file
range it goes on when a worker has read that, because the owner waits for no disk (a failed read is raised
there). What it returns is the answer. All slices of a turn together have as much time as a turn has.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator
from typing import Any, Protocol

from ottla.log.file_range import FileRange
from ottla.model.clock import Clock
from ottla.model.limits import TURN_HANDLING_US_MAX
from ottla.protocol.fields import Message
from ottla.server.warming import Offload, warm

log = logging.getLogger(__name__)

Steps = Generator[FileRange | None, None, Message]
Work = Generator[FileRange | None, None, Any]


class Asker(Protocol):
    """Whoever the work is done for: an exchange, or a part of the broker."""

    @property
    def abandoned(self) -> bool:
        """Nobody wants the answer any more."""
        ...

    def answer(self, response: Any) -> None: ...

    def fail(self, error: Exception) -> None: ...


class PartOf:
    """Work for an exchange that is not its answer; it is done even when the peer leaves."""

    def __init__(self, whole: Asker) -> None:
        self.fail = whole.fail

    @property
    def abandoned(self) -> bool:
        return False

    def answer(self, response: None) -> None:
        pass


class Chore:
    """Work that nobody has asked for, or whose results go another way."""

    def __init__(self, what: str) -> None:
        self._what = what

    @property
    def abandoned(self) -> bool:
        return False

    def answer(self, response: None) -> None:
        pass

    def fail(self, error: Exception) -> None:
        log.error("%s failed", self._what, exc_info=error)


class LongRequests:
    def __init__(self, clock: Clock, post: Callable[[Callable[[], None]], None], offload: Offload) -> None:
        self._clock = clock
        self._post = post  # runs a callable in the next turn
        self._offload = offload
        self._interrupted: deque[tuple[Asker, Work]] = deque()

    def __len__(self) -> int:
        return len(self._interrupted)

    def begin(self, asker: Asker, steps: Work) -> None:
        """The first slice now; the answer follows by itself."""
        self._go_on(asker, steps, self._clock.monotonic_us() + TURN_HANDLING_US_MAX)

    def _go_on(self, asker: Asker, steps: Work, late_us: int, error: BaseException | None = None) -> None:
        try:
            wanted = next(steps) if error is None else steps.throw(error)
            while wanted is None:
                if asker.abandoned:
                    steps.close()
                    return
                if self._clock.monotonic_us() > late_us:
                    self._interrupt(asker, steps)
                    return
                wanted = next(steps)
        except StopIteration as end:
            asker.answer(end.value)
        except Exception as bug:
            asker.fail(bug)
        else:
            self._read_first(asker, steps, wanted)

    def _interrupt(self, asker: Asker, steps: Work) -> None:
        if not self._interrupted:
            self._post(self._slice)
        self._interrupted.append((asker, steps))

    def _slice(self) -> None:
        interrupted, self._interrupted = self._interrupted, deque()
        late_us = self._clock.monotonic_us() + TURN_HANDLING_US_MAX
        while interrupted and self._clock.monotonic_us() <= late_us:
            self._go_on(*interrupted.popleft(), late_us)
        if interrupted:
            if not self._interrupted:
                self._post(self._slice)
            self._interrupted.extendleft(reversed(interrupted))  # who had no slice comes first

    def _read_first(self, asker: Asker, steps: Work, wanted: FileRange) -> None:
        def read(error: BaseException | None) -> None:
            if asker.abandoned:
                steps.close()
            else:
                self._go_on(asker, steps, self._clock.monotonic_us() + TURN_HANDLING_US_MAX, error)

        self._offload(lambda: warm([wanted]), read)
