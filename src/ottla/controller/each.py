"""Requests that name many things: each on its own way, the results together and in order. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

R = TypeVar("R")
T = TypeVar("T")


def for_each(
    items: Sequence[T],
    start: Callable[[T, Callable[[R], None]], None],
    done: Callable[[Sequence[R]], None],
) -> None:
    """Start all, and hand over their results, in the order of `items`, when the last has come."""
    results: dict[int, R] = {}

    def finisher(index: int) -> Callable[[R], None]:
        def finish(result: R) -> None:
            results[index] = result
            if len(results) == len(items):
                done([results[position] for position in range(len(items))])

        return finish

    if not items:
        done([])
    for index, item in enumerate(items):
        start(item, finisher(index))


def duplicates_of(names: Iterable[T]) -> set[T]:
    return {name for name, count in Counter(names).items() if count > 1}
