"""Kafka's records of `__consumer_offsets`, byte for byte: offset commits and the metadata of groups.

A key begins with two bytes that tell what it is: 0 and 1 an offset commit, 2 a classic group, others are of
consumer groups (`consumer_records`). A value begins with its own version.

Values are written in the versions that Kafka 2.3 to 4 write; all up to 4 are read. Nearly all records are
commits without metadata to a few keys, over and over: these have a short way, which gives the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from typing import Annotated

from ottla.coordinator.consumer_records import ConsumerRecord, read_consumer_record
from ottla.coordinator.state_log import StateRecord
from ottla.coordinator.versioned import decode_versioned, encode_versioned, version_of
from ottla.model.values import NamedTuple
from ottla.protocol.fields import Int32, Int64, Message, ignorable, since, until

_OFFSET_COMMIT = 1
_GROUP_METADATA = 2
_OFFSET_VALUE = 3
_OFFSET_VALUE_EXPIRING = 1  # the one that has room for a retention of its own
_GROUP_VALUE = 3
_KEYS_KEPT = 10_000  # encoded, and decoded: some megabytes, since long ones are not kept
_KEPT_LENGTH_MAX = 400

_PLAIN_VALUE = Struct(">hqihq")
"""An offset value of version 3 whose metadata is empty: version, offset, leader epoch, length, timestamp."""


class OffsetCommitKey(Message, versions=(0, 1)):
    group: str = ""
    topic: str = ""
    partition: Int32 = 0


class OffsetCommitValue(Message, versions=(0, 4), flexible_since=4):
    offset: Int64 = 0
    leader_epoch: Annotated[Int32, since(3), ignorable] = -1
    metadata: str = ""
    commit_timestamp_ms: Int64 = 0
    expire_timestamp_ms: Annotated[Int64, since(1), until(1), ignorable] = -1


class GroupMetadataKey(Message, versions=(2, 2)):
    group: str = ""


class MemberMetadata(Message):
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(3), ignorable] = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: Annotated[Int32, since(1), ignorable] = -1
    session_timeout_ms: Int32 = 0
    subscription: bytes = b""
    assignment: bytes = b""


class GroupMetadataValue(Message, versions=(0, 4), flexible_since=4):
    protocol_type: str = ""
    generation: Int32 = 0
    protocol: str | None = None
    leader: str | None = None
    current_state_timestamp_ms: Annotated[Int64, since(2), ignorable] = -1
    members: Sequence[MemberMetadata] = ()


class OffsetRecord(NamedTuple):
    key: OffsetCommitKey
    value: OffsetCommitValue | None


class GroupRecord(NamedTuple):
    key: GroupMetadataKey
    value: GroupMetadataValue | None


def _encode_key(group_id: str, topic: str, partition: int) -> bytes:
    return encode_versioned(OffsetCommitKey(group_id, topic, partition), _OFFSET_COMMIT)


def _decode_key(data: bytes) -> OffsetCommitKey:
    return decode_versioned(OffsetCommitKey, data)


_kept_encoded = lru_cache(_KEYS_KEPT)(_encode_key)
_kept_decoded = lru_cache(_KEYS_KEPT)(_decode_key)


def _offset_key(group_id: str, topic: str, partition: int) -> bytes:
    encode = _kept_encoded if len(group_id) <= _KEPT_LENGTH_MAX else _encode_key
    return encode(group_id, topic, partition)


def offset_record(key: OffsetCommitKey, value: OffsetCommitValue | None) -> StateRecord:
    version = _OFFSET_VALUE
    if value is not None and value.expire_timestamp_ms >= 0:
        version = _OFFSET_VALUE_EXPIRING
    return StateRecord(
        _offset_key(key.group, key.topic, key.partition),
        None if value is None else encode_versioned(value, version),
    )


def plain_offset_record(
    group_id: str, topic: str, partition: int, offset: int, leader_epoch: int, timestamp_ms: int
) -> StateRecord:
    """`offset_record` of a commit without metadata that does not expire by itself."""
    value = _PLAIN_VALUE.pack(_OFFSET_VALUE, offset, leader_epoch, 0, timestamp_ms)
    return StateRecord(_offset_key(group_id, topic, partition), value)


def _offset_value(data: bytes) -> OffsetCommitValue:
    if len(data) == _PLAIN_VALUE.size:
        version, offset, leader_epoch, length, timestamp_ms = _PLAIN_VALUE.unpack(data)
        if version == _OFFSET_VALUE and length == 0:
            return OffsetCommitValue(offset, leader_epoch, "", timestamp_ms)
    return decode_versioned(OffsetCommitValue, data)


def group_record(group_id: str, value: GroupMetadataValue | None) -> StateRecord:
    key = encode_versioned(GroupMetadataKey(group_id), _GROUP_METADATA)
    return StateRecord(key, None if value is None else encode_versioned(value, _GROUP_VALUE))


def read_record(record: StateRecord) -> OffsetRecord | GroupRecord | ConsumerRecord | None:
    """None for kinds of records that are not known here. Malformed for what is no record at all."""
    kind = version_of(record.key)
    if kind in (0, _OFFSET_COMMIT):
        decode = _kept_decoded if len(record.key) <= _KEPT_LENGTH_MAX else _decode_key
        return OffsetRecord(decode(record.key), None if record.value is None else _offset_value(record.value))
    if kind == _GROUP_METADATA:
        return GroupRecord(
            decode_versioned(GroupMetadataKey, record.key),
            None if record.value is None else decode_versioned(GroupMetadataValue, record.value),
        )
    return read_consumer_record(kind, record)
