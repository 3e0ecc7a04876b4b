"""`read`: the records of a topic between two places, as an iterator.

    for record in read("localhost:9092", "orders", start="@-1h"):
        ...

Partitions are read side by side: order holds within each. Without a `stop` the reading follows the topic.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from ottla.client.admin import Admin
from ottla.client.columns import ROWS_MAX, as_pandas, as_polars, as_table, record_batches
from ottla.client.consumer import Consumer
from ottla.client.consumer_places import Place
from ottla.client.errors import ClientError, OffsetOutOfRange, TimedOut, UnknownPartition
from ottla.client.fetched import ConsumedRecord
from ottla.client.settings import common_of
from ottla.model.limits import MIB
from ottla.model.topics import TopicPartition
from ottla.records.columns import Columns

if TYPE_CHECKING:
    import pyarrow

T = TypeVar("T")

_POLL_SECONDS = 1.0
_POLL_RECORDS = 5_000
_FETCH_BYTES = 4 * MIB  # of all partitions together, as long as each has what a consumer asks for
_PARTITION_FETCH_BYTES_MIN = 1 * MIB


class Reading:
    def __init__(
        self, consumer: Consumer, starts: dict[TopicPartition, int], stops: dict[TopicPartition, int] | None
    ) -> None:
        self._consumer = consumer
        self._stops = stops
        self._stuck_since: float | None = None  # nothing has come since then, for a reason that is known
        self._left = dict(starts) if stops is None else _unfinished(starts, stops)
        consumer.assign(self._left, stops)

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

    @property
    def is_endless(self) -> bool:
        return self._stops is None

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
        self._look_for_ends()
        self._maybe_give_up(came=bool(records))
        return records

    # -- columns -------------------------------------------------------------------------------------------

    def arrow_batches(
        self, columns: Sequence[str] | None = None, rows_max: int = ROWS_MAX
    ) -> Iterator[pyarrow.RecordBatch]:
        """The records as Arrow columns (None: all of `records.columns.COLUMNS`), as they come.

        Each batch holds the records of one partition or of several. Ends as `__iter__` does.
        """
        return self._closing(record_batches(self, Columns(columns, rows_max)))

    def to_arrow(self, columns: Sequence[str] | None = None) -> pyarrow.Table:
        """All of it, in memory. Not for a reading without a stop."""
        if self.is_endless:
            raise ClientError(
                "a table of a reading without a stop", 'give one (stop="end"), or use arrow_batches'
            )
        filling = Columns(columns, ROWS_MAX)
        return as_table(list(self._closing(record_batches(self, filling))), filling)

    def to_pandas(self, columns: Sequence[str] | None = None) -> Any:
        return as_pandas(self.to_arrow(columns))

    def to_polars(self, columns: Sequence[str] | None = None) -> Any:
        return as_polars(self.to_arrow(columns))

    def poll_into(self, columns: Columns, timeout: float) -> int:
        """What has come within `timeout` seconds, as rows behind those that are there; how many there are."""
        if not self.is_over:
            before = columns.rows
            self._consumer.poll_into(columns, timeout)
            self._look_for_ends()
            self._maybe_give_up(came=columns.rows > before)
        return columns.rows

    def _closing(self, items: Iterator[T]) -> Iterator[T]:
        try:
            yield from items
        finally:
            self.close()

    @property
    def problem(self) -> ClientError | None:
        """What keeps records from coming, as far as is known; None: there may simply be none."""
        return None if self.is_over else self._consumer.problem

    def _maybe_give_up(self, *, came: bool) -> None:
        """A reading with a stop does not wait for ever for brokers that do not give what is before it."""
        problem = self.problem
        if came or problem is None or self.is_endless:
            self._stuck_since = None
            return
        now, patience = time.monotonic(), self._consumer.timeout_ms / 1000
        if self._stuck_since is None:
            self._stuck_since = now
        elif now - self._stuck_since >= patience:
            raise TimedOut(f"nothing came for {patience:.0f} s: {problem.text}", problem.cure) from problem

    def _look_for_ends(self) -> None:
        """Lets go of partitions that have come to their stops."""
        if self._stops is None:
            return
        count = len(self._left)
        positions = {target: self._consumer.position(target) for target in self._left}
        self._left = _unfinished(positions, self._stops)
        if len(self._left) < count:
            self._consumer.assign(self._left.keys(), self._stops)


def read(
    bootstrap: str | Sequence[str],
    topic: str,
    start: Place = "start",
    stop: Place | None = "end",
    *,
    partitions: Iterable[int] | None = None,
    **settings: object,
) -> Reading:
    """Records from `start` up to `stop` (exclusive; "end": of now; None: for ever); see `offset_spec`.

    Settings are a consumer's. With auto.offset.reset=none a start or stop that the partition does not have
    (any more) raises OffsetOutOfRange; otherwise what there is of the range is read.
    """
    with Admin(bootstrap, **common_of(settings)) as admin:
        there = admin.partitions_of(topic)
        targets = there if partitions is None else tuple(TopicPartition(topic, each) for each in partitions)
        for target in targets:
            if target not in there:
                raise UnknownPartition(topic, target.partition, len(there))
        defaults = {
            "max.poll.records": _POLL_RECORDS,
            "auto.offset.reset": "earliest",
            "max.partition.fetch.bytes": max(
                _FETCH_BYTES // max(len(targets), 1), _PARTITION_FETCH_BYTES_MIN
            ),
        }
        consumer = Consumer(bootstrap, strategy=(), **{**defaults, **settings})
        try:
            starts, stops = _bounds(admin, targets, start, stop, consumer)
        except BaseException:
            consumer.close()
            raise
    return Reading(consumer, starts, None if stop is None else stops)


Offsets = dict[TopicPartition, int]


def _bounds(
    admin: Admin, targets: tuple[TopicPartition, ...], start: Place, stop: Place | None, consumer: Consumer
) -> tuple[Offsets, Offsets]:
    """The offsets of both places, as the consumer is set."""

    def offsets_of(place: Place, *, read_committed: bool) -> Offsets:
        if consumer.resets_never and isinstance(place, int) and place >= 0:
            return dict.fromkeys(targets, place)
        return admin.resolve_offsets(targets, place, read_committed=read_committed)

    starts = offsets_of(start, read_committed=False)
    stops = {} if stop is None else offsets_of(stop, read_committed=consumer.reads_committed)
    if consumer.resets_never:
        _check_range(admin, starts, stops)
    return starts, stops


def _check_range(admin: Admin, starts: Offsets, stops: Offsets) -> None:
    """Nobody shall wait for records that were deleted, or that a partition never had."""
    earliest = admin.resolve_offsets(starts, "start")
    latest = admin.resolve_offsets(starts, "end")
    for target in starts:
        for offset in (starts[target], stops.get(target, latest[target])):
            if not earliest[target] <= offset <= latest[target]:
                raise OffsetOutOfRange.of(target, offset, earliest[target], latest[target])


def _unfinished(
    starts: dict[TopicPartition, int], stops: dict[TopicPartition, int]
) -> dict[TopicPartition, int]:
    return {target: offset for target, offset in starts.items() if offset < stops[target]}
