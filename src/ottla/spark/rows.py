"""The rows that a sink takes: key, value, topic, partition, headers, as Spark's own Kafka sink names them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.client.producer import Producer
from ottla.client.rows_delivery import RowsFuture
from ottla.model.limits import MIB
from ottla.records.columns import arrow
from ottla.records.rows import InvalidRows
from ottla.spark.errors import InvalidOption, JobError

if TYPE_CHECKING:
    from pyarrow import RecordBatch

_PIECE_BYTES = 4 * MIB

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

    def gathered(self, rows: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        """What is written of the rows, in larger pieces than Spark's, for fuller batches of records."""
        pieces: list[RecordBatch] = []
        for each in rows:
            if each.num_rows:
                pieces.append(each.select(self.columns))
            if sum(piece.nbytes for piece in pieces) >= _PIECE_BYTES:
                yield _one(pieces)
                pieces = []
        if pieces:
            yield _one(pieces)

    def send(self, producer: Producer, rows: RecordBatch) -> RowsFuture:
        try:
            return producer.send_arrow(rows, self.topic)
        except InvalidRows as error:
            raise JobError(f"rows that cannot become records: {error}") from None


def _one(pieces: list[RecordBatch]) -> RecordBatch:
    whole: RecordBatch = pieces[0] if len(pieces) == 1 else arrow().concat_batches(pieces)
    return whole
