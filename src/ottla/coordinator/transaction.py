"""One transactional id: its producer, its state, and the partitions its open transaction has touched."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from ottla.model.offsets import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP
from ottla.model.topics import TopicPartition
from ottla.model.values import NamedTuple

EPOCH_MAX: Final = 2**15 - 1
"""Never given to a client: the coordinator must always be able to fence it with a larger one."""

ENDLESS_MS: Final = 2**31 - 1
"""The timeout of transactions that an outside coordinator prepares (KIP-939): they wait for its word."""


class TransactionState(IntEnum):
    """The numbers are those of the records."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2  # decided: every partition will get its marker
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4  # every partition has it
    COMPLETE_ABORT = 5

    @property
    def is_ending(self) -> bool:
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_complete(self) -> bool:
        return self in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)

    @property
    def kafka_name(self) -> str:
        """As DescribeTransactions tells it."""
        return "".join(part.capitalize() for part in self.name.split("_"))


class Transaction(NamedTuple):
    """What the log holds of a transactional id."""

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = NO_TIMESTAMP
    updated_ms: int = NO_TIMESTAMP
    previous_producer_id: int = NO_PRODUCER_ID  # of the transaction before, when it was another one
    next_producer_id: int = NO_PRODUCER_ID  # from the next transaction on
    next_producer_epoch: int = NO_PRODUCER_EPOCH  # of the one that will end a prepared transaction (KIP-939)
    client_version: int = 0  # by which rules the client ended it; from 2 on (KIP-890) each has its own epoch
    last_epoch: int = NO_PRODUCER_EPOCH  # of the same producer before its last raise; not in the log

    @property
    def owner(self) -> tuple[int, int]:
        """Id and epoch of the producer that may go on; others are fenced."""
        if self.next_producer_epoch != NO_PRODUCER_EPOCH:
            return self.next_producer_id, self.next_producer_epoch
        return self.producer_id, self.producer_epoch

    @property
    def is_prepared(self) -> bool:
        """Open, but it can only be ended: the producer that wrote it is gone."""
        return self.next_producer_epoch != NO_PRODUCER_EPOCH

    @property
    def is_exhausted(self) -> bool:
        return self.producer_epoch >= EPOCH_MAX - 1

    @property
    def deadline_ms(self) -> int | None:
        """When an open transaction is to be aborted."""
        if self.state is not TransactionState.ONGOING or self.timeout_ms == ENDLESS_MS:
            return None
        return self.started_ms + self.timeout_ms

    @property
    def is_commit(self) -> bool:
        return self.state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
