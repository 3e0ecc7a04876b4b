"""Tables on their way to become records: cut into loads, each for one topic and looked at as a whole."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from ottla.client.cluster_view import Topic
from ottla.client.intake import Intake
from ottla.records.columns import arrow
from ottla.records.rows import Group, InvalidRows, Rows

_CHUNK_ROWS_MIN = 10_000  # tables of smaller chunks are put together first


class Load(NamedTuple):
    """Rows of one topic, ready to be encoded."""

    topic: Topic
    rows: Rows
    groups: list[Group]

    @classmethod
    def of(cls, topic: Topic, part: Any, intake: Intake) -> Load:
        """Raises InvalidRows, or what says that a record is too large."""
        rows = Rows(part, time.time_ns() // 1_000_000, intake.spare_rooms)
        return cls(topic, rows, intake.group(topic, rows, time.monotonic_ns() // 1_000_000))


def record_batches(rows: Any) -> list[Any]:
    pa = arrow()
    if isinstance(rows, pa.RecordBatch):
        return [rows]
    if not isinstance(rows, pa.Table):
        raise TypeError(f"send_arrow takes a pyarrow Table or RecordBatch, not {type(rows).__name__}")
    chunks: list[Any] = rows.to_batches()
    if len(chunks) > 1 and rows.num_rows < _CHUNK_ROWS_MIN * len(chunks):
        chunks = rows.combine_chunks().to_batches()
    return chunks


def rows_by_topic(batch: Any, topic: str | None) -> Iterator[tuple[str, Any]]:
    """The rows by their topics; `topic` is for all of them, whatever a column says."""
    if topic is not None:
        yield topic, batch
        return
    if "topic" not in batch.schema.names:
        raise InvalidRows("the rows have no column 'topic'; name a topic for all of them")
    import pyarrow.compute as compute

    topics = batch.column("topic").cast(arrow().string())
    for name in topics.unique().to_pylist():
        if name is None:
            raise InvalidRows("a row has no topic; name one for all of them")
        same = compute.equal(topics, name)
        yield name, batch if compute.all(same).as_py() else batch.filter(same)
