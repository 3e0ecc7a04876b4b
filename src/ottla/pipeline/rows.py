"""The rows that a sink takes: key, value, topic, partition, headers, as Spark's own Kafka sink names them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.client.producer import Producer
from ottla.pipeline.errors import InvalidOption, PipelineError

if TYPE_CHECKING:
    from pyarrow import RecordBatch

_TYPES = {
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "topic": ("string",),
    "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
}


@dataclass(frozen=True)
class RowShape:
    columns: tuple[str, ...]  # those of the rows that are written; others are left out, as Spark's sink does
    topic: str | None  # for all rows; None: each names its own

    @staticmethod
    def of(fields: Sequence[tuple[str, str]], topic: str | None) -> RowShape:
        types = dict(fields)
        if "value" not in types:
            raise InvalidOption(
                "the rows have no column value: give one, as in select(to_json(struct('*')).alias('value'))"
            )
        if topic is None and "topic" not in types:
            raise InvalidOption(
                "which topic? write .option('topic', 'orders'), or give the rows a column topic"
            )
        for name, allowed in _TYPES.items():
            if types.get(name, allowed[0]) not in allowed:
                raise InvalidOption(
                    f"column {name} is {types[name]}: make it {' or '.join(allowed)}, "
                    f"for example with cast('{allowed[-1]}')"
                )
        columns = tuple(name for name in _TYPES if name in types and (name != "topic" or topic is None))
        return RowShape(columns, topic)

    def send(self, producer: Producer, rows: RecordBatch) -> None:
        chosen = rows.select(self.columns)
        if self.topic is None and chosen.column("topic").null_count:
            raise PipelineError(
                "a row has no topic: fill the column topic, or write .option('topic', ...) for all rows"
            )
        for row in chosen.to_pylist():
            headers = [(each["key"], each["value"]) for each in row.get("headers") or ()]
            producer.send(
                self.topic or row["topic"],
                _bytes(row["value"]),
                _bytes(row.get("key")),
                partition=row.get("partition"),
                headers=headers,
            )


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
