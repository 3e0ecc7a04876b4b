"""What `send_arrow` gives back: a future of all the batches that its rows became."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import Condition
from typing import NamedTuple

from ottla.client.accumulator import Batch, OnDone
from ottla.client.errors import ClientError, TimedOut


class RowsDelivery(NamedTuple):
    """Where a batch came to lie."""

    topic: str
    partition: int
    offset: int | None  # of its first record; None: acks=0, or a duplicate that the broker has forgotten
    records: int


OnRowsDelivery = Callable[[RowsDelivery | None, ClientError | None], object]
"""Called for each batch, on the producer's thread."""


class RowsFuture:
    def __init__(self, batches: Sequence[Batch], changed: Condition) -> None:
        self._batches = batches
        self._changed = changed  # of the producer: notified whenever batches are done

    def done(self) -> bool:
        return all(batch.is_over for batch in self._batches)

    def result(self, timeout: float | None = None) -> list[RowsDelivery]:
        """Waits (seconds; None: as long as delivery may take).

        Raises why rows were not delivered, if some were not; others may be.
        """
        error = self.exception(timeout)
        if error is not None:
            raise error
        return [delivery_of(batch) for batch in self._parts()]

    def exception(self, timeout: float | None = None) -> ClientError | None:
        """Waits; None: all rows were delivered."""
        if not self.done():
            with self._changed:
                if not self._changed.wait_for(self.done, timeout):
                    raise TimedOut(f"no delivery within {timeout} s", "wait longer; rows are still under way")
        return next((batch.error for batch in self._parts() if batch.error is not None), None)

    def _parts(self) -> Iterator[Batch]:
        """The batches that were sent in the end, if some were split."""
        left = list(reversed(self._batches))
        while left:
            batch = left.pop()
            if batch.halves is None:
                yield batch
            else:
                left += reversed(batch.halves)


def delivery_of(batch: Batch) -> RowsDelivery:
    return RowsDelivery(*batch.lane.target, batch.base_offset, len(batch.records))


def told(on_delivery: OnRowsDelivery) -> OnDone:
    return lambda batch: on_delivery(delivery_of(batch) if batch.error is None else None, batch.error)
