"""Records that wait for their broker: batches per partition, in the order they were sent. Pure.

The owner holds a lock: users' threads append, one thread drains. A batch takes records until it is full or on
its way; from then on it only changes its place: waiting, in flight, done.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ottla.client.errors import ClientError
from ottla.model.offsets import NO_SEQUENCE
from ottla.model.topics import TopicPartition
from ottla.records.rows import EncodedRecords

Headers = Sequence[tuple[str, bytes | None]]
RecordFields = tuple[int, int, bytes | None, bytes | None, Headers]
"""Number in the batch, timestamp, key, value, headers: what the kernel encodes."""

RECORD_OVERHEAD_BYTES = 24  # lengths and deltas of a record, at most; a bound needs no exact sum
HEADER_OVERHEAD_BYTES = 10
BATCH_OVERHEAD_BYTES = 61


class Delivery(NamedTuple):
    """Where a record came to lie."""

    topic: str
    partition: int
    offset: int | None  # None: acks=0, or a duplicate whose offset the broker has forgotten
    timestamp_ms: int


OnDelivery = Callable[[Delivery | None, ClientError | None], object]

OnDone = Callable[["Batch"], object]


class Batch:
    __slots__ = (
        "append_time_ms",
        "attempts",
        "base_offset",
        "base_sequence",
        "callbacks",
        "created_ms",
        "encoded",
        "error",
        "fate_unknown",
        "halves",
        "is_done",
        "is_open",
        "is_told",
        "lane",
        "not_before_ms",
        "on_done",
        "order",
        "records",
        "size",
    )

    def __init__(self, lane: Lane, order: tuple[int, int], created_ms: int) -> None:
        self.lane = lane
        self.order = order  # grows within a lane: the order that must be kept
        self.created_ms = created_ms
        self.records: list[RecordFields] | EncodedRecords = []
        self.size = BATCH_OVERHEAD_BYTES  # bytes as a bound
        self.callbacks: list[tuple[int, OnDelivery]] = []
        self.on_done: OnDone | None = None  # called once for the batch, or for each that it was split into
        self.is_open = True  # takes more records
        # On its way:
        self.attempts = 0
        self.not_before_ms = 0  # the pause before the next try
        self.base_sequence = NO_SEQUENCE
        self.encoded: bytes | memoryview | None = None
        self.fate_unknown = False  # it was sent, and no answer said whether it was written
        # At the end, one of: offset (None: not told), error, two smaller batches in its place.
        self.is_done = False
        self.is_told = False  # its callbacks have run
        self.base_offset: int | None = None
        self.append_time_ms: int | None = None  # of a topic that stamps records itself
        self.error: ClientError | None = None
        self.halves: tuple[Batch, Batch] | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing of it is under way any more."""
        if self.halves is not None:
            return all(half.is_over for half in self.halves)
        return self.is_done

    @property
    def is_flushed(self) -> bool:
        """Whether it is over, and its callbacks have run."""
        if self.halves is not None:
            return all(half.is_flushed for half in self.halves)
        return self.is_told

    def delivery(self, index: int) -> Delivery:
        timestamp_ms = self.records[index][1] if self.append_time_ms is None else self.append_time_ms
        offset = None if self.base_offset is None else self.base_offset + index
        return Delivery(self.lane.target.topic, self.lane.target.partition, offset, timestamp_ms)


class Lane:
    """One partition's batches."""

    __slots__ = ("in_flight", "is_acknowledged", "next_number", "next_sequence", "queue", "target")

    def __init__(self, target: TopicPartition) -> None:
        self.target = target
        self.queue: deque[Batch] = deque()  # waiting, oldest first; only the last may be open
        self.in_flight: list[Batch] = []
        self.next_number = 0
        self.next_sequence = 0
        self.is_acknowledged = False  # a batch of this epoch is written: the broker knows our sequences

    def put_back(self, batch: Batch) -> None:
        """Into the queue again, at its place in the order."""
        index = 0
        while index < len(self.queue) and self.queue[index].order < batch.order:
            index += 1
        self.queue.insert(index, batch)


class Accumulator:
    def __init__(self, batch_bytes_max: int) -> None:
        self._batch_bytes_max = batch_bytes_max
        self.lanes: dict[TopicPartition, Lane] = {}
        self.bytes = 0  # of all batches that are not done
        self.unfinished = 0  # batches that are not done

    def append(
        self,
        topic: str,
        partition: int,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        size: int,
        now_ms: int,
    ) -> tuple[Batch, int]:
        """The batch that took the record, and its number there."""
        lane = self.lanes.get((topic, partition))  # type: ignore[call-overload]  # a plain tuple is equal
        if lane is None:
            lane = self._lane(TopicPartition(topic, partition))
        queue = lane.queue
        batch = queue[-1] if queue else None
        if batch is None or not batch.is_open or batch.size + size > self._batch_bytes_max:
            if batch is not None:
                batch.is_open = False
            batch = self._begin(lane, now_ms)
            queue.append(batch)
        index = len(batch.records)
        batch.records.append((index, timestamp_ms, key, value, headers))  # type: ignore[union-attr]  # it is open
        batch.size += size
        self.bytes += size
        if batch.size >= self._batch_bytes_max:
            batch.is_open = False
        return batch, index

    def enqueue(self, target: TopicPartition, records: EncodedRecords, now_ms: int) -> Batch:
        """Puts a whole batch behind what is there."""
        lane = self.lanes.get(target) or self._lane(target)
        if lane.queue:
            lane.queue[-1].is_open = False
        batch = self._begin(lane, now_ms)
        batch.is_open = False
        batch.records = records
        batch.size += records.size
        self.bytes += records.size
        lane.queue.append(batch)
        return batch

    def _lane(self, target: TopicPartition) -> Lane:
        lane = self.lanes[target] = Lane(target)
        return lane

    def _begin(self, lane: Lane, now_ms: int) -> Batch:
        batch = Batch(lane, (lane.next_number, 0), now_ms)
        lane.next_number += 1
        self.bytes += BATCH_OVERHEAD_BYTES
        self.unfinished += 1
        return batch

    def finish(self, batch: Batch) -> None:
        """The batch is delivered, failed or split."""
        batch.is_done = True
        batch.is_open = False
        batch.encoded = None
        if isinstance(batch.records, EncodedRecords):
            batch.records.drop()
        self.bytes -= batch.size
        self.unfinished -= 1

    def split(self, batch: Batch) -> tuple[Batch, Batch]:
        """Two batches in the place of one that was too large for its topic; their sequences follow on."""
        middle = len(batch.records) // 2
        number, part = batch.order
        halves = (
            self._half(batch, slice(0, middle), (number, part)),
            self._half(batch, slice(middle, None), (number, part + middle)),
        )
        if batch.base_sequence != NO_SEQUENCE:
            halves[0].base_sequence = batch.base_sequence
            halves[1].base_sequence = next_sequence(batch.base_sequence, middle)
        batch.halves = halves
        self.finish(batch)
        return halves

    def _half(self, batch: Batch, part: slice, order: tuple[int, int]) -> Batch:
        half = Batch(batch.lane, order, batch.created_ms)
        half.is_open = False
        half.attempts = 1  # as a retry it goes before what is newer
        half.records = [(index, *fields[1:]) for index, fields in enumerate(batch.records[part])]
        half.size += sum(size_of(*fields[2:]) for fields in half.records)
        half.on_done = batch.on_done
        first, last = part.start, part.start + len(half.records)
        half.callbacks = [(index - first, done) for index, done in batch.callbacks if first <= index < last]
        self.bytes += half.size
        self.unfinished += 1
        return half

    def waiting(self) -> Iterator[Batch]:
        for lane in self.lanes.values():
            yield from lane.queue

    def in_flight(self) -> Iterator[Batch]:
        for lane in self.lanes.values():
            yield from lane.in_flight


def next_sequence(sequence: int, count: int) -> int:
    """The sequence `count` records later: after 2^31 - 1 comes 0."""
    return (sequence + count) & 0x7FFF_FFFF


def checked_headers(headers: Headers) -> Headers:
    """A copy that nobody changes any more, of the right types."""
    checked: tuple[tuple[Any, Any], ...] = tuple((name, content) for name, content in headers)
    for name, content in checked:
        if not isinstance(name, str) or not isinstance(content, bytes | None):
            raise TypeError(f"a header is a text and bytes (or None), not {name!r} and {content!r}")
    return checked


def size_of(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Bytes that a record adds to a batch, at most."""
    size = RECORD_OVERHEAD_BYTES
    if key is not None:
        size += len(key)
    if value is not None:
        size += len(value)
    for name, content in headers:
        size += HEADER_OVERHEAD_BYTES + 4 * len(name) + (0 if content is None else len(content))
    return size
