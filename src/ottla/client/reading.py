"""`read`: the records of a topic between two places, as an iterator.

    for record in read("localhost:9092", "orders", start="@-1h"):
        ...

Partitions are read side by side: order holds within each. Without a `stop` the reading follows the topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType

from ottla.client.admin import Admin
from ottla.client.consumer import Consumer, Place
from ottla.client.errors import UnknownPartition
from ottla.client.fetched import ConsumedRecord
from ottla.model.topics import TopicPartition

_POLL_SECONDS = 1.0
_POLL_RECORDS = 5_000


class Reading:
    def __init__(
        self, consumer: Consumer, starts: dict[TopicPartition, int], stops: dict[TopicPartition, int] | None
    ) -> None:
        self._consumer = consumer
        self._stops = stops
        self._left = dict(starts) if stops is None else _unfinished(starts, stops)
        consumer.assign({target: self._left[target] for target in self._left})

    def __enter__(self) -> Reading:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._consumer.close()

    @property
    def is_over(self) -> bool:
        """Whether every partition has come to its stop; never without one."""
        return not self._left

    def __iter__(self) -> Iterator[ConsumedRecord]:
        """Ends, and closes its connections, when every partition has come to its stop."""
        for records in self.batches():
            yield from records

    def batches(self) -> Iterator[list[ConsumedRecord]]:
        """The same in lists, as they come."""
        try:
            while not self.is_over:
                records = self.poll(_POLL_SECONDS)
                if records:
                    yield records
        finally:
            self.close()

    def poll(self, timeout: float) -> list[ConsumedRecord]:
        """What has come within `timeout` seconds, as soon as there is something."""
        if self.is_over:
            return []
        records = self._consumer.poll(timeout)
        if self._stops is None:
            return records
        stops = {target.partition: self._stops[target] for target in self._left}
        positions = {target: self._consumer.position(target) for target in self._left}
        if any(position > stops[target.partition] for target, position in positions.items()):
            records = [record for record in records if record.offset < stops[record.partition]]
        self._left = _unfinished(positions, self._stops)
        if len(self._left) < len(positions):
            self._consumer.assign(self._left.keys())
        return records


def read(
    bootstrap: str | Sequence[str],
    topic: str,
    start: Place = "start",
    stop: Place | None = "end",
    *,
    partitions: Iterable[int] | None = None,
    **settings: object,
) -> Reading:
    """Records from `start` up to `stop` (exclusive; "end": of now; None: for ever); see `offset_spec`."""
    defaults = {"max.poll.records": _POLL_RECORDS, "auto.offset.reset": "earliest"}
    consumer = Consumer(bootstrap, strategy=(), **{**defaults, **settings})
    try:
        starts, stops = _bounds(
            bootstrap, topic, start, stop, partitions, read_committed=consumer.reads_committed
        )
    except BaseException:
        consumer.close()
        raise
    return Reading(consumer, starts, stops)


def _bounds(
    bootstrap: str | Sequence[str],
    topic: str,
    start: Place,
    stop: Place | None,
    partitions: Iterable[int] | None,
    *,
    read_committed: bool,
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int] | None]:
    with Admin(bootstrap) as admin:
        there = admin.partitions_of(topic)
        targets = there if partitions is None else [TopicPartition(topic, index) for index in partitions]
        for target in targets:
            if target not in there:
                raise UnknownPartition(topic, target.partition, len(there))
        starts = admin.resolve_offsets(targets, start)
        if stop is None:
            return starts, None
        return starts, admin.resolve_offsets(targets, stop, read_committed=read_committed)


def _unfinished(
    starts: dict[TopicPartition, int], stops: dict[TopicPartition, int]
) -> dict[TopicPartition, int]:
    return {target: offset for target, offset in starts.items() if offset < stops[target]}
