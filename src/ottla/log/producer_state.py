"""What a partition remembers of idempotent producers: who may append what next, and what was appended
already.

Per producer id: its epoch, the last five batches (a client has at most five requests in flight, so a
retry can only be one of them), and the start of its open transaction. Rules as in Kafka since KIP-360: a
producer nobody remembers may start with any sequence (its records may have been deleted), so
UNKNOWN_PRODUCER_ID is never answered. Knows no files: `producer_snapshots` keeps it across restarts.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.model.errors import ErrorCode, Refused
from ottla.model.offsets import NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP
from ottla.records.batch import BatchHeader

BATCHES_REMEMBERED = 5
PRODUCERS_REMEMBERED = 20_000
"""Per partition, the ones that wrote last: about half a kilobyte each, and their ids are whatever a client
says. Who is forgotten may go on with any sequence, and only loses the protection of a retry.
"""
_SEQUENCE_MODULUS = 1 << 31  # after 2^31 - 1 comes 0
_NO_COORDINATOR = -1


class AppendedBatch(NamedTuple):
    """A batch in the log, by what a retry of it would repeat."""

    last_sequence: int
    last_offset: int
    offset_delta: int  # last offset minus base offset; sequences span the same
    timestamp: int  # the batch's largest

    @property
    def base_offset(self) -> int:
        return self.last_offset - self.offset_delta

    @property
    def base_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) % _SEQUENCE_MODULUS


class ProducerEntry(NamedTuple):
    epoch: int = NO_PRODUCER_EPOCH
    coordinator_epoch: int = _NO_COORDINATOR  # of the last transaction marker
    last_timestamp: int = NO_TIMESTAMP  # of the last batch or marker; decides expiry
    txn_first_offset: int | None = None  # where the open transaction began here
    batches: tuple[AppendedBatch, ...] = ()  # oldest first


_UNKNOWN = ProducerEntry()


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int  # of the marker
    is_aborted: bool


class ProducerStates:
    __slots__ = ("_entries", "_open_transactions", "end_offset")

    def __init__(self, end_offset: int = 0) -> None:
        self.end_offset = end_offset  # every batch below it has been applied
        self._entries: dict[int, ProducerEntry] = {}  # who has not written for longest first
        self._open_transactions: dict[int, int] = {}  # producer id by first offset

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self) -> dict[int, ProducerEntry]:
        return dict(self._entries)

    def get(self, producer_id: int) -> ProducerEntry | None:
        return self._entries.get(producer_id)

    def load(self, entries: dict[int, ProducerEntry], end_offset: int) -> None:
        """Start over from a snapshot."""
        self.end_offset = end_offset
        self._entries = dict(entries)
        self._open_transactions = {
            entry.txn_first_offset: producer_id
            for producer_id, entry in entries.items()
            if entry.txn_first_offset is not None
        }

    @property
    def first_open_transaction_offset(self) -> int | None:
        return min(self._open_transactions, default=None)

    def check(self, header: BatchHeader, after: BatchHeader | None = None) -> AppendedBatch | None:
        """May a client append this batch next? None: yes. A batch: it is this one again. Else Refused.

        `after` is the producer's last batch that passed and will be appended before this one.
        """
        entry = self._entries.get(header.producer_id)
        if after is not None:
            epoch, last_sequence = after.producer_epoch, after.last_sequence
        elif entry is None:
            return None
        else:
            epoch = entry.epoch
            last_sequence = entry.batches[-1].last_sequence if entry.batches else NO_SEQUENCE
        expected = (last_sequence + 1) % _SEQUENCE_MODULUS if header.producer_epoch == epoch else 0
        if header.producer_epoch < epoch:
            raise Refused(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {header.producer_id} is at epoch {epoch}, not {header.producer_epoch}",
            )
        if header.base_sequence != expected:
            duplicate = _find_duplicate(entry, header) if entry is not None else None
            if duplicate is not None:
                return duplicate
            raise Refused(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id} (epoch {header.producer_epoch}) sent sequence "
                f"{header.base_sequence}, expected {expected}",
            )
        if entry is not None and entry.txn_first_offset is not None and not header.is_transactional:
            raise Refused(
                ErrorCode.INVALID_TXN_STATE, f"producer {header.producer_id} has an open transaction here"
            )
        return None

    def apply(self, header: BatchHeader, base_offset: int, timestamp: int) -> None:
        """The batch is in the log at `base_offset`: remember it. Checks nothing (a leader has done so)."""
        producer_id, epoch, delta = header.producer_id, header.producer_epoch, header.last_offset_delta
        entry = self._take(producer_id)
        batch = AppendedBatch(header.last_sequence, base_offset + delta, delta, timestamp)
        batches = entry.batches if epoch == entry.epoch else ()
        if len(batches) >= BATCHES_REMEMBERED:
            batches = batches[1 - BATCHES_REMEMBERED :]
        first_offset = entry.txn_first_offset
        if first_offset is None and header.is_transactional:
            first_offset = base_offset
            self._open_transactions[base_offset] = producer_id
        self._entries[producer_id] = ProducerEntry(
            epoch, entry.coordinator_epoch, timestamp, first_offset, (*batches, batch)
        )

    def _take(self, producer_id: int) -> ProducerEntry:
        """Out of its place, to be put back as the last one to have written."""
        entry = self._entries.pop(producer_id, None)
        if entry is None:
            entry = _UNKNOWN
            if len(self._entries) >= PRODUCERS_REMEMBERED:
                self._forget_one()
        return entry

    def _forget_one(self) -> None:
        """The one that has not written for longest; open transactions are kept."""
        oldest = next(iter(self._entries))
        entry = self._entries.pop(oldest)
        if entry.txn_first_offset is not None:
            self._entries[oldest] = entry

    def apply_marker(
        self, header: BatchHeader, coordinator_epoch: int, is_abort: bool
    ) -> CompletedTransaction | None:
        """A transaction marker is in the log: the producer's open transaction, if any, ends."""
        entry = self._take(header.producer_id)
        batches = entry.batches if header.producer_epoch == entry.epoch else ()
        self._entries[header.producer_id] = ProducerEntry(
            header.producer_epoch, coordinator_epoch, header.max_timestamp, None, batches
        )
        if entry.txn_first_offset is None:
            return None
        self._open_transactions.pop(entry.txn_first_offset, None)
        return CompletedTransaction(header.producer_id, entry.txn_first_offset, header.last_offset, is_abort)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers idle for `producer.id.expiration.ms`, except those with an open transaction."""
        expired = [
            producer_id
            for producer_id, entry in self._entries.items()
            if entry.txn_first_offset is None and now_ms - entry.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self._entries[producer_id]


def _find_duplicate(entry: ProducerEntry, header: BatchHeader) -> AppendedBatch | None:
    if header.producer_epoch == entry.epoch:
        last_sequence = header.last_sequence
        for batch in entry.batches:
            if batch.last_sequence == last_sequence and batch.offset_delta == header.last_offset_delta:
                return batch
    return None
