"""How the blocking clients run what is written as coroutines, and how they take over its methods.

What waits for brokers is written once, with `await`. Under asyncio a wait suspends the caller; under the
blocking clients `Cluster.turn` drives the network in place: their coroutines never suspend, and end by their
first step.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from ottla.client.errors import Misused

P = ParamSpec("P")
T = TypeVar("T")
Calls = TypeVar("Calls")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    coroutine.close()
    raise TypeError("listeners and callbacks of a blocking client must not be coroutines")


def blocking(
    method: Callable[Concatenate[Calls, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], T]:
    """The method of a shell that waits for a coroutine of its `_calls`."""

    @wraps(method)
    def call(self: Any, /, *arguments: P.args, **named: P.kwargs) -> T:
        return run(method(self._calls, *arguments, **named))

    return call


def in_turn(
    method: Callable[Concatenate[Calls, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], T]:
    """The same for a shell without a thread of its own: threads wait for each other, by its lock `_user`."""

    @wraps(method)
    def call(self: Any, /, *arguments: P.args, **named: P.kwargs) -> T:
        with self._user:
            return run(method(self._calls, *arguments, **named))

    return call


def exclusive(
    method: Callable[Concatenate[Calls, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], T]:
    """The same for one whose calls wait long, and belong to one thread: a second one is refused.

    The lock can be taken again by its thread, as callbacks do that call what they are called by.
    """

    @wraps(method)
    def call(self: Any, /, *arguments: P.args, **named: P.kwargs) -> T:
        if not self._user.acquire(blocking=False):
            raise Misused(
                f"{method.__name__}() while another thread is using this {type(self).__name__.lower()}",
                "give each thread one of its own, or let a WorkerPool share the records out",
            )
        try:
            return run(method(self._calls, *arguments, **named))
        finally:
            self._user.release()

    return call


def direct(method: Callable[Concatenate[Calls, P], T]) -> Callable[Concatenate[Any, P], T]:
    """The method of a shell that is one of its `_calls`."""

    @wraps(method)
    def call(self: Any, /, *arguments: P.args, **named: P.kwargs) -> T:
        return method(self._calls, *arguments, **named)

    return call
