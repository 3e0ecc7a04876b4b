"""Requests that name many things: each on its own way, the results together and in order. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TypeAlias, TypeVar

R = TypeVar("R")
T = TypeVar("T")

Pace: TypeAlias = "Callable[[Generator[None, None, None]], None]"
"""Takes steps to their end, now or in slices of time."""


def at_once(steps: Generator[None, None, None]) -> None:
    for _ in steps:
        pass


def for_each(
    items: Sequence[T],
    start: Callable[[T, Callable[[R], None]], None],
    done: Callable[[Sequence[R]], None],
    pace: Pace = at_once,
) -> None:
    """Start all, as `pace` allows, and hand over their results, in order, when the last has come."""
    results: dict[int, R] = {}

    def finisher(index: int) -> Callable[[R], None]:
        def finish(result: R) -> None:
            results[index] = result
            if len(results) == len(items):
                done([results[position] for position in range(len(items))])

        return finish

    def steps() -> Generator[None, None, None]:
        for index, item in enumerate(items):
            yield
            start(item, finisher(index))

    if items:
        pace(steps())
    else:
        done([])


def duplicates_of(names: Iterable[T]) -> set[T]:
    return {name for name, count in Counter(names).items() if count > 1}
