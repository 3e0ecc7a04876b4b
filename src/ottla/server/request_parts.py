"""Requests that name very many partitions, cut into parts that a turn has time for; answers joined."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Protocol, TypeVar

PARTITIONS_AT_ONCE = 300
"""Some milliseconds, where a partition takes a record of its own: decided, applied and appended."""


class Topic(Protocol):
    """A message of a request or a response."""

    @property
    def name(self) -> str: ...

    @property
    def partitions(self) -> Sequence[Any]: ...


T = TypeVar("T", bound=Topic)


def count_of(topics: Iterable[Topic]) -> int:
    return sum(len(topic.partitions) for topic in topics)


def parts_of(topics: Iterable[T]) -> list[list[T]]:
    """In order; a topic with more partitions than go into one is in several."""
    parts: list[list[T]] = [[]]
    room = PARTITIONS_AT_ONCE
    for topic in topics:
        first = 0
        while first < len(topic.partitions) or not first:
            if not room:
                parts.append([])
                room = PARTITIONS_AT_ONCE
            taken = topic.partitions[first : first + room]
            parts[-1].append(_with(topic, taken))
            room -= len(taken)
            first += max(1, len(taken))
    return parts


def joined(parts: Iterable[Sequence[T] | None]) -> list[T]:
    """Topics that were cut are whole again."""
    topics = [topic for part in parts for topic in part or ()]
    return [
        _with(first, [each for topic in (first, *others) for each in topic.partitions])
        for _, (first, *others) in groupby(
            topics, lambda topic: (topic.name, getattr(topic, "topic_id", None))
        )
    ]


def _with(topic: T, partitions: Sequence[Any]) -> T:
    values: dict[str, Any] = {name: getattr(topic, name) for name in type(topic).__field_defaults__}  # type: ignore[attr-defined]
    return type(topic)(**{**values, "partitions": partitions})
