"""Kafka's records of `__transaction_state`, byte for byte: the key is the transactional id.

Version 1 of the value is written (Kafka 4 with transaction.version 2), both are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ottla.coordinator.state_log import StateRecord
from ottla.coordinator.transaction import Transaction, TransactionState
from ottla.coordinator.versioned import decode_versioned, encode_versioned
from ottla.model.errors import Malformed
from ottla.model.topics import TopicPartition
from ottla.protocol.fields import Int8, Int16, Int32, Int64, Message, tagged

_KEY_VERSION = 0
_VALUE_VERSION = 1


class TransactionLogKey(Message, versions=(0, 0)):
    transactional_id: str = ""


class PartitionsSchema(Message):
    topic: str = ""
    partition_ids: Sequence[Int32] = ()


class TransactionLogValue(Message, versions=(0, 1), flexible_since=1):
    producer_id: Int64 = 0
    previous_producer_id: Annotated[Int64, tagged(0, since=1)] = -1
    next_producer_id: Annotated[Int64, tagged(1, since=1)] = -1
    producer_epoch: Int16 = 0
    transaction_timeout_ms: Int32 = 0
    transaction_status: Int8 = 0
    transaction_partitions: Sequence[PartitionsSchema] | None = None
    transaction_last_update_timestamp_ms: Int64 = 0
    transaction_start_timestamp_ms: Int64 = 0
    client_transaction_version: Annotated[Int16, tagged(2, since=1)] = 0
    next_producer_epoch: Annotated[Int16, tagged(3, since=1)] = -1


def transaction_record(transactional_id: str, transaction: Transaction | None) -> StateRecord:
    key = encode_versioned(TransactionLogKey(transactional_id), _KEY_VERSION)
    if transaction is None:
        return StateRecord(key, None)
    return StateRecord(key, encode_versioned(_value(transaction), _VALUE_VERSION))


def _value(transaction: Transaction) -> TransactionLogValue:
    partitions = None  # as Kafka writes it without a transaction
    if transaction.state is not TransactionState.EMPTY:
        by_topic: dict[str, list[int]] = {}
        for topic, partition in sorted(transaction.partitions):
            by_topic.setdefault(topic, []).append(partition)
        partitions = [PartitionsSchema(topic, numbers) for topic, numbers in by_topic.items()]
    return TransactionLogValue(
        transaction.producer_id,
        transaction.previous_producer_id,
        transaction.next_producer_id,
        transaction.producer_epoch,
        transaction.timeout_ms,
        transaction.state,
        partitions,
        transaction.updated_ms,
        transaction.started_ms,
        transaction.client_version,
        transaction.next_producer_epoch,
    )


def read_transaction(record: StateRecord) -> tuple[str, Transaction | None]:
    """The transactional id and what is known of it. Malformed when no coordinator wrote this."""
    key = decode_versioned(TransactionLogKey, record.key)
    if record.value is None:
        return key.transactional_id, None
    value = decode_versioned(TransactionLogValue, record.value)
    try:
        state = TransactionState(value.transaction_status)
    except ValueError:
        raise Malformed(f"no transaction has the state {value.transaction_status}") from None
    partitions = frozenset(
        TopicPartition(each.topic, number)
        for each in value.transaction_partitions or ()
        for number in each.partition_ids
    )
    return key.transactional_id, Transaction(
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        state,
        partitions,
        value.transaction_start_timestamp_ms,
        value.transaction_last_update_timestamp_ms,
        value.previous_producer_id,
        value.next_producer_id,
        value.next_producer_epoch,
        value.client_transaction_version,
    )
