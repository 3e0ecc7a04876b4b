"""The transactional ids of one partition of `__transaction_state`, and what may become of them.

Each decision gives the next Transaction of an id, to be written as one record; nothing changes before that is
applied. Rules as in Kafka 4: with transaction.version 2 (KIP-890, EndTxn 5) each transaction has an epoch of
its own, so that a delayed message of one can never enter the next.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from ottla.coordinator.state_log import StateRecord
from ottla.coordinator.transaction import EPOCH_MAX, Transaction, TransactionState
from ottla.coordinator.transaction_records import read_transaction
from ottla.model.errors import ErrorCode, Malformed, Refused
from ottla.model.offsets import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP
from ottla.model.topics import TopicPartition

log = logging.getLogger(__name__)

EPOCH_PER_TRANSACTION = 2
"""The first transaction.version in which each transaction has its own epoch."""

_State = TransactionState


class ProducerIdNeeded(Exception):
    """The decision takes a new producer id: make it again with one."""


class TransactionMachine:
    def __init__(self) -> None:
        self.transactions: dict[str, Transaction] = {}  # by transactional id

    # -- the log -------------------------------------------------------------------------------------------

    def apply(self, record: StateRecord, producer_id: int = NO_PRODUCER_ID) -> None:
        try:
            transactional_id, transaction = read_transaction(record)
        except Malformed as problem:
            log.warning("skipped a record that no coordinator wrote: %s", problem)
            return
        if transaction is None:
            self.transactions.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = transaction

    def apply_marker(self, producer_id: int, committed: bool) -> None:
        """Transactions do not write to this topic."""

    def remember_last_epoch(self, transactional_id: str, decided: Transaction) -> None:
        """What the record of `decided`, just applied, does not hold."""
        applied = self.transactions[transactional_id]
        self.transactions[transactional_id] = applied._replace(last_epoch=decided.last_epoch)

    # -- a producer begins ---------------------------------------------------------------------------------

    def begin(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: tuple[int, int] | None,
        new_producer_id: int | None,
        now_ms: int,
        *,
        keep_prepared: bool = False,
    ) -> Transaction:
        """InitProducerId: an epoch that fences whoever had the id before.

        The result may be a PREPARE_ABORT: an open transaction has to be ended first, then ask again. With
        `keep_prepared` it stays open, for the new producer to end it (KIP-939).
        `expected` is the id and epoch a producer believes to have, when it only wants its epoch raised.
        """
        known = self.transactions.get(transactional_id)
        if known is None:
            return Transaction(_taken(new_producer_id), 0, timeout_ms, updated_ms=now_ms)
        if expected is not None and not _is_ours(known, *expected):
            raise Refused(ErrorCode.PRODUCER_FENCED, f"{transactional_id} has another producer by now")
        if known.state.is_ending:
            raise Refused(ErrorCode.CONCURRENT_TRANSACTIONS)
        if known.state is _State.ONGOING:
            if expected is not None and expected != known.owner:  # Kafka would abort it for a zombie, too
                raise Refused(ErrorCode.PRODUCER_FENCED, f"{transactional_id} has another producer by now")
            if keep_prepared:
                return _take_over(known, new_producer_id, now_ms)
            return self.fence(transactional_id, now_ms)
        expected_epoch = None if expected is None else expected[1]
        if known.is_exhausted and expected_epoch in (None, known.producer_epoch):
            producer_id, epoch = _taken(new_producer_id), 0
            last_epoch = known.producer_epoch if expected is not None else NO_PRODUCER_EPOCH
        elif expected_epoch is None:
            producer_id, epoch, last_epoch = known.producer_id, known.producer_epoch + 1, NO_PRODUCER_EPOCH
        elif expected_epoch == known.producer_epoch:
            producer_id, epoch, last_epoch = known.producer_id, expected_epoch + 1, expected_epoch
        elif expected_epoch == known.last_epoch:  # it asked before and did not get the answer
            producer_id, epoch, last_epoch = known.producer_id, known.producer_epoch, known.last_epoch
        else:
            raise Refused(
                ErrorCode.PRODUCER_FENCED,
                f"{transactional_id} is at epoch {known.producer_epoch}, not {expected_epoch}",
            )
        return Transaction(
            producer_id,
            epoch,
            timeout_ms,
            updated_ms=now_ms,
            previous_producer_id=known.producer_id,
            last_epoch=last_epoch,
        )

    def fence(self, transactional_id: str, now_ms: int) -> Transaction:
        """The open transaction is aborted in an epoch that its producer does not have."""
        known = self.transactions[transactional_id]
        assert known.state is _State.ONGOING
        return known._replace(
            state=_State.PREPARE_ABORT,
            producer_epoch=min(_fencing_epoch(known), EPOCH_MAX),
            next_producer_id=NO_PRODUCER_ID,
            next_producer_epoch=NO_PRODUCER_EPOCH,
            updated_ms=now_ms,
            client_version=EPOCH_PER_TRANSACTION,
            last_epoch=NO_PRODUCER_EPOCH,
        )

    # -- a transaction grows -------------------------------------------------------------------------------

    def add(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        now_ms: int,
    ) -> Transaction | None:
        """AddPartitionsToTxn; None when they all belong to it already."""
        known = self._known(transactional_id, producer_id, producer_epoch)
        if known.state.is_ending:
            raise Refused(ErrorCode.CONCURRENT_TRANSACTIONS)
        if known.is_prepared:
            raise Refused(ErrorCode.INVALID_TXN_STATE, f"{transactional_id} is prepared: it can only end")
        is_open = known.state is _State.ONGOING
        if is_open and known.partitions.issuperset(partitions):
            return None
        return known._replace(
            state=_State.ONGOING,
            partitions=known.partitions.union(partitions) if is_open else frozenset(partitions),
            started_ms=known.started_ms if is_open else now_ms,
            updated_ms=now_ms,
            client_version=0,
        )

    def verify(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partition: TopicPartition
    ) -> None:
        """Refused unless the partition is part of the open transaction (KIP-890)."""
        known = self._known(transactional_id, producer_id, producer_epoch)
        if known.state.is_ending:
            raise Refused(ErrorCode.CONCURRENT_TRANSACTIONS)
        if known.state is not _State.ONGOING or partition not in known.partitions:
            raise Refused(
                ErrorCode.TRANSACTION_ABORTABLE,
                f"{partition} is not part of {transactional_id}'s transaction",
            )

    def _known(self, transactional_id: str, producer_id: int, producer_epoch: int) -> Transaction:
        known = self.transactions.get(transactional_id)
        if known is None or producer_id not in (known.producer_id, known.owner[0]):
            raise Refused(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"{transactional_id} is not producer {producer_id}"
            )
        if known.owner != (producer_id, producer_epoch):
            raise Refused(
                ErrorCode.PRODUCER_FENCED,
                f"{transactional_id} is at epoch {known.owner[1]}, not {producer_epoch}",
            )
        return known

    # -- a transaction ends --------------------------------------------------------------------------------

    def end(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        is_commit: bool,
        client_version: int,
        new_producer_id: int | None,
        now_ms: int,
    ) -> Transaction | None:
        """EndTxn; None when it has ended just so already, and the answer is what is known of it."""
        known = self.transactions.get(transactional_id)
        has_own_epoch = client_version >= EPOCH_PER_TRANSACTION
        is_repeated = (
            known is not None and has_own_epoch and _was_ended_by(known, producer_id, producer_epoch)
        )
        if not is_repeated:
            known = self._known(transactional_id, producer_id, producer_epoch)
        assert known is not None
        if known.state.is_ending:
            if is_commit == known.is_commit and (is_repeated or not has_own_epoch):
                raise Refused(ErrorCode.CONCURRENT_TRANSACTIONS)
            raise _cannot_end(transactional_id, known, is_commit)
        if known.state.is_complete and (is_repeated or not has_own_epoch):
            if is_commit == known.is_commit:
                return None
            raise _cannot_end(transactional_id, known, is_commit)
        if known.state is not _State.ONGOING and (is_commit or not has_own_epoch):
            raise _cannot_end(transactional_id, known, is_commit)
        decided = known._replace(
            state=_State.PREPARE_COMMIT if is_commit else _State.PREPARE_ABORT,
            started_ms=known.started_ms if known.started_ms != NO_TIMESTAMP else now_ms,
            updated_ms=now_ms,
            client_version=client_version,
        )
        if not has_own_epoch:
            return decided
        if known.is_prepared and known.next_producer_id != known.producer_id:
            return decided._replace(producer_epoch=EPOCH_MAX)
        last_epoch = known.owner[1]
        is_exhausted = last_epoch >= EPOCH_MAX - 1
        return decided._replace(
            producer_epoch=last_epoch + 1,
            last_epoch=last_epoch,
            next_producer_id=_taken(new_producer_id) if is_exhausted else NO_PRODUCER_ID,
            next_producer_epoch=NO_PRODUCER_EPOCH,
        )

    def complete(self, transactional_id: str, now_ms: int) -> Transaction:
        """Every partition has the marker."""
        known = self.transactions[transactional_id]
        assert known.state.is_ending
        completed = known._replace(
            state=_State.COMPLETE_COMMIT if known.is_commit else _State.COMPLETE_ABORT,
            partitions=frozenset(),
            updated_ms=now_ms,
            previous_producer_id=known.producer_id,
        )
        if known.next_producer_id == NO_PRODUCER_ID:
            return completed
        return completed._replace(
            producer_id=known.next_producer_id,
            producer_epoch=known.next_producer_epoch + 1,
            next_producer_id=NO_PRODUCER_ID,
            next_producer_epoch=NO_PRODUCER_EPOCH,
            last_epoch=known.producer_epoch,
        )

    # -- forgetting ----------------------------------------------------------------------------------------

    def expired(self, now_ms: int, expiration_ms: int) -> list[str]:
        """Transactional ids that nobody has used for so long."""
        return [
            transactional_id
            for transactional_id, known in self.transactions.items()
            if (known.state is _State.EMPTY or known.state.is_complete)
            and now_ms - known.updated_ms >= expiration_ms
        ]


def _taken(new_producer_id: int | None) -> int:
    if new_producer_id is None:
        raise ProducerIdNeeded
    return new_producer_id


def _fencing_epoch(known: Transaction) -> int:
    """Of the producer that wrote the transaction, above every epoch that was given out."""
    if known.is_prepared and known.next_producer_id == known.producer_id:
        return known.next_producer_epoch + 1
    return known.producer_epoch + 1


def _take_over(known: Transaction, new_producer_id: int | None, now_ms: int) -> Transaction:
    """The transaction stays as it is, and a new producer may end it."""
    producer_id, epoch = known.owner
    if epoch >= EPOCH_MAX - 1:
        producer_id, epoch = _taken(new_producer_id), -1
    return known._replace(next_producer_id=producer_id, next_producer_epoch=epoch + 1, updated_ms=now_ms)


def _is_ours(known: Transaction, producer_id: int, producer_epoch: int) -> bool:
    """Whether a producer that believes to be this one may have its epoch raised, as far as the id tells."""
    if producer_id == known.producer_id:
        return True
    return producer_id == known.previous_producer_id and producer_epoch >= EPOCH_MAX - 1


def _was_ended_by(known: Transaction, producer_id: int, producer_epoch: int) -> bool:
    """The epoch was raised when the transaction ended: this asks for that end once more."""
    if known.client_version < EPOCH_PER_TRANSACTION or known.state in (_State.EMPTY, _State.ONGOING):
        return False
    if known.is_prepared:  # its end, too, was asked for in the name of another id
        return known.owner == (producer_id, producer_epoch)
    if producer_id == known.producer_id:
        return producer_epoch + 1 == known.producer_epoch
    is_new_id = known.state.is_complete and known.producer_epoch == 0
    return is_new_id and producer_id == known.previous_producer_id and producer_epoch == EPOCH_MAX - 1


def _cannot_end(transactional_id: str, known: Transaction, is_commit: bool) -> Refused:
    verb = "committed" if is_commit else "aborted"
    return Refused(
        ErrorCode.INVALID_TXN_STATE,
        f"{transactional_id} is {known.state.kafka_name} and cannot be {verb}",
    )
