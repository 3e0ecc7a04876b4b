"""Kafka's records of consumer groups (KIP-848) in `__consumer_offsets`, byte for byte.

The key's first two bytes tell the kind: 3 the group, 5 a member, 6 and 7 what the assignor wants, 8 what a
member has, 16 what a pattern stands for. As Kafka does since 4.1, a hash in the group's record stands for the
topics it was assigned with; kind 4, which older brokers wrote instead, is passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ottla.coordinator.state_log import StateRecord
from ottla.coordinator.versioned import decode_versioned, encode_versioned
from ottla.model.topics import NO_TOPIC_ID, TopicId
from ottla.model.values import NamedTuple
from ottla.protocol.fields import Int8, Int32, Int64, Message, tagged

_VALUE = 0  # the version in which all values are written

OLD_PARTITION_METADATA = 4


class ConsumerGroupKey(Message, versions=(3, 3)):
    group: str = ""


class ConsumerGroupValue(Message, versions=(0, 0), flexible_since=0):
    epoch: Int32 = 0
    metadata_hash: Annotated[Int64, tagged(0, since=0)] = 0


class MemberKey(Message, versions=(5, 5)):
    group: str = ""
    member_id: str = ""


class ClassicProtocol(Message):
    name: str = ""
    metadata: bytes = b""


class ClassicMemberMetadata(Message):
    session_timeout_ms: Int32 = 0
    supported_protocols: Sequence[ClassicProtocol] = ()


class MemberValue(Message, versions=(0, 0), flexible_since=0):
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: Sequence[str] = ()
    subscribed_topic_regex: str | None = None  # written empty for none
    rebalance_timeout_ms: Int32 = -1
    server_assignor: str | None = None
    # None of members that speak the consumer protocol. Kafka takes one that is left out for an empty one, and
    # so for a member that speaks the classic protocol.
    classic_member_metadata: Annotated[ClassicMemberMetadata | None, tagged(0, since=0)] = (
        ClassicMemberMetadata()
    )


class TargetKey(Message, versions=(6, 6)):
    group: str = ""


class TargetValue(Message, versions=(0, 0), flexible_since=0):
    assignment_epoch: Int32 = 0


class TopicPartitions(Message):
    topic_id: TopicId = NO_TOPIC_ID
    partitions: Sequence[Int32] = ()


class MemberTargetKey(Message, versions=(7, 7)):
    group: str = ""
    member_id: str = ""


class MemberTargetValue(Message, versions=(0, 0), flexible_since=0):
    topic_partitions: Sequence[TopicPartitions] = ()


class MemberAssignmentKey(Message, versions=(8, 8)):
    group: str = ""
    member_id: str = ""


class MemberAssignmentValue(Message, versions=(0, 0), flexible_since=0):
    member_epoch: Int32 = 0
    previous_member_epoch: Int32 = 0
    state: Int8 = 0
    assigned_partitions: Sequence[TopicPartitions] = ()
    partitions_pending_revocation: Sequence[TopicPartitions] = ()


class PatternKey(Message, versions=(16, 16)):
    group: str = ""
    pattern: str = ""


class PatternValue(Message, versions=(0, 0), flexible_since=0):
    topics: Sequence[str] = ()
    version: Int64 = 0  # of the cluster's metadata
    timestamp_ms: Int64 = 0


ConsumerKey = ConsumerGroupKey | MemberKey | TargetKey | MemberTargetKey | MemberAssignmentKey | PatternKey
ConsumerValue = (
    ConsumerGroupValue | MemberValue | TargetValue | MemberTargetValue | MemberAssignmentValue | PatternValue
)

_KINDS: dict[int, tuple[type[ConsumerKey], type[ConsumerValue]]] = {
    3: (ConsumerGroupKey, ConsumerGroupValue),
    5: (MemberKey, MemberValue),
    6: (TargetKey, TargetValue),
    7: (MemberTargetKey, MemberTargetValue),
    8: (MemberAssignmentKey, MemberAssignmentValue),
    16: (PatternKey, PatternValue),
}


class ConsumerRecord(NamedTuple):
    key: ConsumerKey
    value: ConsumerValue | None


def consumer_record(key: ConsumerKey, value: ConsumerValue | None) -> StateRecord:
    assert key.__versions__ is not None
    return StateRecord(
        encode_versioned(key, key.__versions__[0]),
        None if value is None else encode_versioned(value, _VALUE),
    )


def read_consumer_record(kind: int, record: StateRecord) -> ConsumerRecord | None:
    """None for kinds that are not of consumer groups."""
    types = _KINDS.get(kind)
    if types is None:
        return None
    key_type, value_type = types
    return ConsumerRecord(
        decode_versioned(key_type, record.key),
        None if record.value is None else decode_versioned(value_type, record.value),
    )
