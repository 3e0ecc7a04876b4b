"""How long a change of topics may keep its asker waiting: after `timeout_ms` it is told REQUEST_TIMED_OUT.

The change itself goes on, as in Kafka: who is told so looks again. 0 or less sets no limit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ottla.controller.topics import TopicResult
from ottla.model.errors import ErrorCode, Refused

if TYPE_CHECKING:
    from ottla.server.services import Services

Done = Callable[[Sequence[TopicResult]], None]


def in_time(services: Services, timeout_ms: int, names: Sequence[str], done: Done) -> Done:
    """`done`, which is called once: with the results, or with a refusal for each name when time is up."""
    if timeout_ms <= 0:
        return done
    timers = services.reactor.timers
    is_told = False

    def tell(results: Sequence[TopicResult]) -> None:
        nonlocal is_told
        if not is_told:
            is_told = True
            timers.cancel(timer)
            done(results)

    def expire() -> None:
        refusal = Refused(ErrorCode.REQUEST_TIMED_OUT, f"not done within {timeout_ms} ms; it goes on")
        tell([TopicResult.refused(name, refusal) for name in names])

    timer = timers.set(services.clock.monotonic_ms() + timeout_ms, expire)
    return tell
