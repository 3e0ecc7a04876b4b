"""Requests whose work grows with what they ask for: done in slices, so that none of them makes a turn long.

A handler gives its work as a generator. Where that yields None it may be interrupted; where it yields a file
range it goes on when a worker has read that, because the owner waits for no disk (a failed read is raised
there). What it returns is the answer. All slices of a turn together have as much time as a turn has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from typing import Any

from ottla.log.files import FileRange
from ottla.model.clock import Clock
from ottla.model.limits import TURN_HANDLING_US_MAX
from ottla.protocol.fields import Message
from ottla.server.exchange import Exchange
from ottla.server.warming import Offload, warm

Steps = Generator[FileRange | None, None, Message]


class LongRequests:
    def __init__(self, clock: Clock, post: Callable[[Callable[[], None]], None], offload: Offload) -> None:
        self._clock = clock
        self._post = post  # runs a callable in the next turn
        self._offload = offload
        self._interrupted: deque[tuple[Exchange[Any], Steps]] = deque()

    def __len__(self) -> int:
        return len(self._interrupted)

    def begin(self, exchange: Exchange[Any], steps: Steps) -> None:
        """The first slice now; the answer follows by itself."""
        self._go_on(exchange, steps, self._clock.monotonic_us() + TURN_HANDLING_US_MAX)

    def _go_on(
        self, exchange: Exchange[Any], steps: Steps, late_us: int, error: BaseException | None = None
    ) -> None:
        try:
            wanted = next(steps) if error is None else steps.throw(error)
            while wanted is None:
                if exchange.abandoned:
                    steps.close()
                    return
                if self._clock.monotonic_us() > late_us:
                    self._interrupt(exchange, steps)
                    return
                wanted = next(steps)
        except StopIteration as end:
            exchange.answer(end.value)
        except Exception as bug:
            exchange.fail(bug)
        else:
            self._read_first(exchange, steps, wanted)

    def _interrupt(self, exchange: Exchange[Any], steps: Steps) -> None:
        if not self._interrupted:
            self._post(self._slice)
        self._interrupted.append((exchange, steps))

    def _slice(self) -> None:
        interrupted, self._interrupted = self._interrupted, deque()
        late_us = self._clock.monotonic_us() + TURN_HANDLING_US_MAX
        while interrupted and self._clock.monotonic_us() <= late_us:
            self._go_on(*interrupted.popleft(), late_us)
        if interrupted:
            if not self._interrupted:
                self._post(self._slice)
            self._interrupted.extendleft(reversed(interrupted))  # who had no slice comes first

    def _read_first(self, exchange: Exchange[Any], steps: Steps, wanted: FileRange) -> None:
        def read(error: BaseException | None) -> None:
            if exchange.abandoned:
                steps.close()
            else:
                self._go_on(exchange, steps, self._clock.monotonic_us() + TURN_HANDLING_US_MAX, error)

        self._offload(lambda: warm([wanted]), read)
