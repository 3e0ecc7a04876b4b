"""Requests that name very many partitions, cut into parts that a turn has time for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

PARTITIONS_AT_ONCE = 300
"""Some milliseconds, where a partition takes a record of its own: decided, applied and appended."""


class Topic(Protocol):
    """Of a request."""

    @property
    def partitions(self) -> Sequence[Any]: ...


T = TypeVar("T", bound=Topic)


def parts_of(topics: Iterable[T], part_of: Callable[[T, Sequence[Any]], T]) -> list[list[T]]:
    """In order; a topic with more partitions than go into one is in several (`part_of` makes its pieces)."""
    parts: list[list[T]] = [[]]
    room = PARTITIONS_AT_ONCE
    for topic in topics:
        first = 0
        while first < len(topic.partitions) or not first:
            if not room:
                parts.append([])
                room = PARTITIONS_AT_ONCE
            taken = topic.partitions[first : first + room]
            parts[-1].append(part_of(topic, taken))
            room -= len(taken)
            first += max(1, len(taken))
    return parts
