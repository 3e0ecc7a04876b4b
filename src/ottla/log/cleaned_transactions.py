"""Transactions as the cleaner meets them on its way through a log: which data was aborted, and which markers
have nothing left to say.

Aborted data goes at once. A marker stays until no batch of its transaction is left; what the new segment must
say of aborted transactions is collected for its `.txnindex`.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.log.transaction_markers import read_marker
from ottla.log.txn_index import AbortedTransaction
from ottla.records.batch import BatchHeader, Bytes


class CleanedTransactions:
    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """`aborted`: every aborted transaction that ends behind where the reading begins."""
        self._ahead = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
        self._aborted: dict[int, AbortedTransaction] = {}  # begun and not ended yet, by producer id
        self._with_data: set[int] = set()  # producers among them of which a batch was met
        self._committed: set[int] = set()  # producers with batches of a transaction that was not aborted
        self._retained: list[AbortedTransaction] = []

    def take_retained(self) -> list[AbortedTransaction]:
        """Those whose markers were kept since the last call."""
        retained, self._retained = self._retained, []
        return retained

    def can_discard(self, header: BatchHeader, batch: Bytes) -> bool:
        """For every batch, in order: data of an aborted transaction, or a marker without data before it."""
        while self._ahead and self._ahead[-1].first_offset <= header.last_offset:
            begun = self._ahead.pop()
            self._aborted.setdefault(begun.producer_id, begun)
        if header.is_control:
            return self._marker_can_go(header, batch)
        if not header.is_transactional:
            return False
        if header.producer_id in self._aborted:
            self._with_data.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False

    def _marker_can_go(self, header: BatchHeader, batch: Bytes) -> bool:
        if header.record_count == 0:
            return True  # emptied by an earlier pass
        marker = read_marker(bytes(batch))
        if marker is None:
            return False
        producer_id = header.producer_id
        if not marker.is_abort:
            had_data = producer_id in self._committed
            self._committed.discard(producer_id)
            return not had_data
        transaction = self._aborted.pop(producer_id, None)
        if transaction is None or producer_id not in self._with_data:
            return True
        self._with_data.discard(producer_id)
        self._retained.append(transaction)
        return False
