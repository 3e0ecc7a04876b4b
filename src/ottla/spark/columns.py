"""The columns of a topic, named and typed as in Spark's own Kafka connector. Knows neither Spark nor Arrow
objects.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.spark.errors import InvalidOption

HEADERS = "headers"

TYPES = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    HEADERS: "array<struct<key:string,value:binary>>",
}
"""By name, in their order, as Spark writes types."""

READABLE = tuple(TYPES)


def columns_named(names: Iterable[str], said_by: str) -> tuple[str, ...]:
    """The columns of these names in this order. Raises InvalidOption."""
    chosen = tuple(names)
    for name in chosen:
        if name not in TYPES:
            raise InvalidOption(f"{said_by}: there is no column {name!r}; choose from {', '.join(READABLE)}")
    if not chosen or len(set(chosen)) != len(chosen):
        raise InvalidOption(f"{said_by}: name each wanted column once, for example key,value,offset")
    return chosen


def ddl(columns: Iterable[str]) -> str:
    return ", ".join(f"{name} {TYPES[name]}" for name in columns)


def check_types(given: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The columns of a schema that a user gave, as (name, type). Raises InvalidOption."""
    fields = list(given)
    columns = columns_named((name for name, _ in fields), "schema")
    for name, kind in fields:
        if kind != TYPES[name]:
            raise InvalidOption(
                f"schema: column {name} is {TYPES[name]}, not {kind}; choose columns with "
                f".schema('{ddl(columns)}') and cast them in the query"
            )
    return columns
