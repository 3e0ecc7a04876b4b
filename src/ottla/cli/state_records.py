"""The records of the broker's own topics as text, for `ottla log dump --records` and `ottla consume`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ottla.cli.record_forms import Form
from ottla.coordinator.consumer_records import ConsumerRecord, TopicPartitions
from ottla.coordinator.group_records import (
    GroupMetadataValue,
    OffsetCommitValue,
    OffsetRecord,
    read_record,
)
from ottla.coordinator.state_log import StateRecord
from ottla.coordinator.transaction_records import read_transaction
from ottla.log.inspection.readable import RecordDecoders
from ottla.model.topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, topic_id_text
from ottla.protocol.fields import Message, fields_of

if TYPE_CHECKING:
    from ottla.client.fetched import ConsumedRecord


def group_record_text(key: bytes | None, value: bytes | None) -> tuple[str | None, str | None]:
    """ValueError for a stranger's bytes."""
    if key is None:
        raise ValueError("a record of groups has a key")
    record = read_record(StateRecord(key, value))
    if record is None:
        raise ValueError("not a record of groups")
    if isinstance(record, ConsumerRecord):
        return _consumer_text(record)
    if isinstance(record, OffsetRecord):
        place = f"{record.key.topic}-{record.key.partition}"
        return f"offset of group {record.key.group} in {place}", _offset_text(record.value)
    return f"group {record.key.group}", _group_text(record.value)


def _consumer_text(record: ConsumerRecord) -> tuple[str, str | None]:
    """By the names of its fields; topic ids as Kafka's tools print them."""
    key, value = record
    subject = f"{type(key).__name__.removesuffix('Key')} of group {key.group}"
    rest = [f"{name} {text}" for name, text in _fields(key) if name != "group"]
    values = None if value is None else ", ".join(f"{name} {text}" for name, text in _fields(value))
    return ", ".join([subject, *rest]), values


def _fields(message: Message) -> Iterator[tuple[str, str]]:
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        if isinstance(value, list | tuple) and value and isinstance(value[0], TopicPartitions):
            value = "; ".join(f"{topic_id_text(each.topic_id)} {list(each.partitions)}" for each in value)
        yield field.name, str(value)


def _offset_text(value: OffsetCommitValue | None) -> str | None:
    if value is None:
        return None
    text = f"{value.offset}, committed at {value.commit_timestamp_ms}"
    if value.leader_epoch >= 0:
        text += f", leader epoch {value.leader_epoch}"
    return f"{text}, metadata {value.metadata!r}" if value.metadata else text


def _group_text(value: GroupMetadataValue | None) -> str | None:
    if value is None:
        return None
    members = ", ".join(
        f"{member.member_id} ({member.client_id} at {member.client_host})" for member in value.members
    )
    return (
        f"generation {value.generation}, protocol {value.protocol_type}/{value.protocol}, "
        f"leader {value.leader}, members: {members or 'none'}"
    )


def transaction_text(key: bytes | None, value: bytes | None) -> tuple[str | None, str | None]:
    """ValueError for a stranger's bytes."""
    if key is None:
        raise ValueError("a record of transactions has a key")
    transactional_id, transaction = read_transaction(StateRecord(key, value))
    name = f"transactional id {transactional_id}"
    if transaction is None:
        return name, None
    partitions = ", ".join(map(str, sorted(transaction.partitions)))
    return name, (
        f"{transaction.state.name.lower().replace('_', ' ')}, producer {transaction.producer_id} "
        f"epoch {transaction.producer_epoch}, timeout {transaction.timeout_ms} ms, "
        f"updated at {transaction.updated_ms}, partitions: {partitions or 'none'}"
    )


def state_form(topic: str, form: Form) -> Form:
    """`form` with the text of keys and values; of a stranger's bytes with what they are."""
    decoder = RECORD_DECODERS[topic]

    def show(record: ConsumedRecord) -> bytes:
        try:
            key, value = decoder(record.key, record.value)
        except ValueError:
            return form(record)
        return form(record._replace(key=key and key.encode(), value=value and value.encode()))

    return show


RECORD_DECODERS: RecordDecoders = {OFFSETS_TOPIC: group_record_text, TRANSACTIONS_TOPIC: transaction_text}
"""By topic."""
