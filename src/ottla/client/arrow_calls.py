"""`Producer.send_arrow`: the rows of an Arrow table as records, encoded by the kernel in the caller's thread.

Looked at as a whole before the first row is sent: what cannot become records is refused, and nothing of it is
on its way. Then batch after batch goes into the producer's buffer, as full as batch.size allows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.client.accumulator import Batch, OnDone
from ottla.client.cluster import Cluster
from ottla.client.cluster_view import Topic
from ottla.client.errors import BufferFull, Closed
from ottla.client.intake import Intake
from ottla.client.producing import ProducerLoop
from ottla.client.rows_delivery import OnRowsDelivery, RowsFuture, delivery_of
from ottla.records.columns import arrow
from ottla.records.rows import Group, InvalidRows, Rows

if TYPE_CHECKING:
    import pyarrow

_CHUNK_ROWS_MIN = 10_000  # tables of smaller chunks are put together first


class _Load(NamedTuple):
    """Rows of one topic, ready to be encoded."""

    topic: Topic
    rows: Rows
    groups: list[Group]


class ArrowCalls:
    """The part of `Producer` that sends tables."""

    _changed: threading.Condition
    _cluster: Cluster
    _intake: Intake
    _is_closed: bool
    _loop: ProducerLoop

    def _wait_for_topic(self, topic: str) -> Topic:
        raise NotImplementedError

    def _wait_for_room(self, size: int) -> None:
        raise NotImplementedError

    def send_arrow(
        self,
        rows: pyarrow.Table | pyarrow.RecordBatch,
        topic: str | None = None,
        on_delivery: OnRowsDelivery | None = None,
    ) -> RowsFuture:
        """Sends each row as a record: of key, value, headers, timestamp, partition, topic what there is.

        `topic` is for all rows, whatever a column says. Rows go to the partition that they name, else by
        their keys. Waits for room in the buffer as `send` does; when that takes longer than max.block.ms, it
        raises BufferFull, and what was taken is under way. `on_delivery(delivery, error)` is called for each
        batch, on the producer's thread.
        """
        sent: list[Batch] = []
        loads = [load for batch in _record_batches(rows) for load in self._loads(batch, topic)]
        try:
            for load in loads:
                for group in load.groups:
                    self._send_group(load, group, sent, on_delivery)
        except BufferFull as error:
            count = sum(len(batch.records) for batch in sent)
            raise BufferFull(
                f"{error.text}; {count} of {rows.num_rows} rows are under way", error.cure
            ) from None
        return RowsFuture(sent, self._changed)

    def _loads(self, batch: pyarrow.RecordBatch, topic: str | None) -> Iterator[_Load]:
        now_ms = time.time_ns() // 1_000_000
        for name, part in _by_topic(batch, topic):
            known = self._cluster.metadata.view.topics.get(name) or self._wait_for_topic(name)
            rows = Rows(part, now_ms, self._intake.spare_rooms)
            yield _Load(known, rows, self._intake.group(known, rows, _monotonic_ms()))

    def _send_group(
        self, load: _Load, group: Group, sent: list[Batch], on_delivery: OnRowsDelivery | None
    ) -> None:
        intake, first = self._intake, group.first
        on_done = None if on_delivery is None else _told(on_delivery)
        while first < group.end:
            records, first = load.rows.encode(first, group.end, intake.batch_bytes_max)
            records.compress(self._loop.codec, self._loop.codec_level)
            with self._changed:
                if self._is_closed:
                    raise Closed("the producer is closed")
                if not intake.has_room(records.size):
                    self._wait_for_room(records.size)
                sent.append(intake.enqueue(load.topic, group.partition, records, _monotonic_ms(), on_done))
            self._cluster.network.wake()


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _told(on_delivery: OnRowsDelivery) -> OnDone:
    return lambda batch: on_delivery(delivery_of(batch) if batch.error is None else None, batch.error)


def _record_batches(rows: Any) -> list[Any]:
    pa = arrow()
    if isinstance(rows, pa.RecordBatch):
        return [rows]
    if not isinstance(rows, pa.Table):
        raise TypeError(f"send_arrow takes a pyarrow Table or RecordBatch, not {type(rows).__name__}")
    chunks: list[Any] = rows.to_batches()
    if len(chunks) > 1 and rows.num_rows < _CHUNK_ROWS_MIN * len(chunks):
        chunks = rows.combine_chunks().to_batches()
    return chunks


def _by_topic(batch: Any, topic: str | None) -> Iterator[tuple[str, Any]]:
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
