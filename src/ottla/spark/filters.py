"""Narrows a batch read by filters on offset, partition and timestamp. Spark evaluates every filter again, so
what is narrowed here only has to be a superset.

Of a timestamp only lower bounds help: a broker tells the first offset from which on a time is reached, but
records behind it may be older again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

_OFFSET_END = 2**63 - 1


@dataclass(frozen=True)
class Narrowing:
    offset_start: int = 0
    offset_end: int = _OFFSET_END  # exclusive
    partitions: frozenset[int] | None = None  # None: all
    partition_start: int = 0
    partition_end: int = _OFFSET_END
    time_ms: int | None = None  # no record before this time is wanted

    def wants(self, partition: int) -> bool:
        named = self.partitions is None or partition in self.partitions
        return named and self.partition_start <= partition < self.partition_end


def narrowed(filters: Iterable[Filter]) -> Narrowing:
    found = Narrowing()
    for each in filters:
        found = _with(found, each)
    return found


def _with(found: Narrowing, each: Filter) -> Narrowing:
    attribute: tuple[str, ...] = getattr(each, "attribute", ())
    bounds = _bounds(each)
    if len(attribute) != 1 or bounds is None:
        return found
    low, high = bounds
    match attribute[0]:
        case "offset" if type(low) is not datetime:
            return replace(
                found,
                offset_start=max(found.offset_start, _or(low, 0)),
                offset_end=min(found.offset_end, _or(high, _OFFSET_END - 1) + 1),
            )
        case "partition":
            if isinstance(each, In):
                named = frozenset(each.value)
                both = named if found.partitions is None else named & found.partitions
                return replace(found, partitions=both)
            return replace(
                found,
                partition_start=max(found.partition_start, _or(low, 0)),
                partition_end=min(found.partition_end, _or(high, _OFFSET_END - 1) + 1),
            )
        case "timestamp" if isinstance(low, datetime):
            time_ms = int(low.timestamp() * 1000)
            return replace(found, time_ms=max(found.time_ms or 0, time_ms))
    return found


def _bounds(each: Filter) -> tuple[Any, Any] | None:
    """The smallest and the largest value that pass (None: open); None for a filter that is none of ours."""
    match each:
        case EqualTo() | EqualNullSafe():
            return (each.value, each.value) if each.value is not None else None
        case In():
            return (min(each.value), max(each.value)) if each.value and None not in each.value else None
        case GreaterThan():
            return (each.value + 1 if isinstance(each.value, int) else each.value), None
        case GreaterThanOrEqual():
            return each.value, None
        case LessThan():
            return None, (each.value - 1 if isinstance(each.value, int) else each.value)
        case LessThanOrEqual():
            return None, each.value
    return None


def _or(value: int | None, default: int) -> int:
    return default if value is None else value
