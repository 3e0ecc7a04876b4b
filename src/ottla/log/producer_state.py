"""What a partition remembers of idempotent producers: who may append what next, and what was appended
already.

Per producer id: its epoch, the last five batches (a client has at most five requests in flight, so a
retry can only be one of them), and the start of its open transaction. Rules as in Kafka since KIP-360: a
producer nobody remembers may start with any sequence (its records may have been deleted), so
UNKNOWN_PRODUCER_ID is never answered. Knows no files: `producer_snapshots` keeps it across restarts.
"""

from __future__ import annotations

from ottla.log.txn_index import AbortedTransaction
from ottla.model.errors import ErrorCode, Refused
from ottla.model.offsets import NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP
from ottla.model.values import NamedTuple
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
    last_stable_offset: int  # when it had ended, wherever the high watermark was

    def as_aborted(self) -> AbortedTransaction:
        return AbortedTransaction(
            self.producer_id, self.first_offset, self.last_offset, self.last_stable_offset
        )


class ProducerStates:
    __slots__ = ("_entries", "_open_transactions", "_unsettled", "end_offset")

    def __init__(self, end_offset: int = 0) -> None:
        self.end_offset = end_offset  # every batch below it has been applied
        self._entries: dict[int, ProducerEntry] = {}  # who has not written for longest first
        self._open_transactions: dict[int, int] = {}  # producer id by first offset, ascending
        self._unsettled: dict[int, int] = {}  # ended ones, marker by first offset: it may yet be lost

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
        open_transactions = (
            (entry.txn_first_offset, producer_id)
            for producer_id, entry in entries.items()
            if entry.txn_first_offset is not None
        )
        self._open_transactions = dict(sorted(open_transactions))
        self._unsettled = {}

    # -- transactions --------------------------------------------------------------------------------------

    @property
    def has_transactions(self) -> bool:
        """Whether any is open, or has ended but might be open again after a power cut."""
        return bool(self._open_transactions or self._unsettled)

    def is_in_transaction(self, producer_id: int, epoch: int) -> bool:
        """Whether the producer has written here in its open transaction."""
        entry = self._entries.get(producer_id, _UNKNOWN)
        return entry.txn_first_offset is not None and entry.epoch == epoch

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Where the first transaction begins whose end is not known for good; None: there is none."""
        for first_offset, marker_offset in list(self._unsettled.items()):
            if marker_offset < high_watermark:
                del self._unsettled[first_offset]
        first_open = next(iter(self._open_transactions), None)
        first_unsettled = min(self._unsettled, default=None)
        if first_open is None or first_unsettled is None:
            return first_unsettled if first_open is None else first_open
        return min(first_open, first_unsettled)

    def check_marker(self, producer_id: int, epoch: int, coordinator_epoch: int) -> None:
        """May a coordinator end the producer's transaction here? Raises Refused for one of the past."""
        entry = self._entries.get(producer_id, _UNKNOWN)
        if epoch < entry.epoch:
            raise Refused(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id} is at epoch {entry.epoch}, not {epoch}",
            )
        if coordinator_epoch < entry.coordinator_epoch:
            raise Refused(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"the transactions of producer {producer_id} are in the hands of coordinator epoch "
                f"{entry.coordinator_epoch}, not {coordinator_epoch}",
            )

    def ended_by(self, producer_id: int, marker_offset: int, is_aborted: bool) -> CompletedTransaction | None:
        """What a marker at `marker_offset` would end; None without an open transaction."""
        first_offset = self._entries.get(producer_id, _UNKNOWN).txn_first_offset
        if first_offset is None:
            return None
        others = (first for first, other in self._open_transactions.items() if other != producer_id)
        stable_offset = next(others, marker_offset + 1)
        return CompletedTransaction(producer_id, first_offset, marker_offset, is_aborted, stable_offset)

    # -- sequences -----------------------------------------------------------------------------------------

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
        completed = self.ended_by(header.producer_id, header.last_offset, is_abort)
        entry = self._take(header.producer_id)
        batches = entry.batches if header.producer_epoch == entry.epoch else ()
        self._entries[header.producer_id] = ProducerEntry(
            header.producer_epoch, coordinator_epoch, header.max_timestamp, None, batches
        )
        if completed is not None:
            del self._open_transactions[completed.first_offset]
            self._unsettled[completed.first_offset] = completed.last_offset
        return completed

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
