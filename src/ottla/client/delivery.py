"""What `send` gives back: a future of one record's delivery. Light, because there is one per record."""

from __future__ import annotations

from threading import Condition

from ottla.client.accumulator import Batch, Delivery
from ottla.client.errors import ClientError, TimedOut


class SendFuture:
    __slots__ = ("_batch", "_changed", "_index")

    def __init__(self, batch: Batch, index: int, changed: Condition) -> None:
        self._batch = batch
        self._index = index
        self._changed = changed  # of the producer: notified whenever batches are done

    def done(self) -> bool:
        return self._place()[0].is_done

    def result(self, timeout: float | None = None) -> Delivery:
        """Waits (seconds; None: as long as delivery may take). Raises why the record was not delivered."""
        error = self.exception(timeout)
        if error is not None:
            raise error
        batch, index = self._place()
        return batch.delivery(index)

    def exception(self, timeout: float | None = None) -> ClientError | None:
        """Waits; None: the record was delivered."""
        if not self.done():
            with self._changed:
                if not self._changed.wait_for(self.done, timeout):
                    raise TimedOut(
                        f"no delivery within {timeout} s", "wait longer; the record is still under way"
                    )
        return self._place()[0].error

    def _place(self) -> tuple[Batch, int]:
        """Where the record is now, if its batch was split."""
        batch, index = self._batch, self._index
        while batch.halves is not None:
            first, second = batch.halves
            batch, index = (
                (first, index) if index < len(first.records) else (second, index - len(first.records))
            )
        return batch, index
