"""The records of consumer groups are those that the classes of Kafka 4.3.1 write, byte for byte."""

from __future__ import annotations

import pytest

from ottla.coordinator.consumer_records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupKey,
    ConsumerGroupValue,
    ConsumerKey,
    ConsumerRecord,
    ConsumerValue,
    MemberAssignmentKey,
    MemberAssignmentValue,
    MemberKey,
    MemberTargetKey,
    MemberTargetValue,
    MemberValue,
    PatternKey,
    PatternValue,
    TargetKey,
    TargetValue,
    TopicPartitions,
    consumer_record,
)
from ottla.coordinator.group_records import read_record
from ottla.coordinator.state_log import StateRecord
from ottla.model.topics import TopicId

TOPIC = TopicId(bytes(range(16)))
TOPIC_HEX = TOPIC.hex()
PARTS = (TopicPartitions(TOPIC, (1, 2)),)
PARTS_HEX = f"02{TOPIC_HEX}03000000010000000200"  # one topic, two partitions, no tags
GROUP_HEX = "000167"  # "g", as keys have it
MEMBER_HEX = "00016d"

CASES = {
    "group": (ConsumerGroupKey("g"), f"0003{GROUP_HEX}", ConsumerGroupValue(7), "00000000000700"),
    "group with a hash": (
        ConsumerGroupKey("g"),
        f"0003{GROUP_HEX}",
        ConsumerGroupValue(7, -2),
        "000000000007010008fffffffffffffffe",
    ),
    "member": (
        MemberKey("g", "m"),
        f"0005{GROUP_HEX}{MEMBER_HEX}",
        MemberValue("i", None, "c", "/h", ("t",), "x.*", 60_000, "range"),
        "00000269000263032f6802027404782e2a0000ea600672616e676500",
    ),
    "member that speaks the consumer protocol": (  # as a broker of 4.3.1 wrote it
        MemberKey("g", "m"),
        f"0005{GROUP_HEX}{MEMBER_HEX}",
        MemberValue(None, None, "new", "/127.0.0.1", ("topic",), "", 300_000, None, None),
        "00000000046e65770b2f3132372e302e302e310206746f70696301000493e0000100" + "0100",
    ),
    "member that speaks the classic protocol": (
        MemberKey("g", "m"),
        f"0005{GROUP_HEX}{MEMBER_HEX}",
        MemberValue(
            *(None, None, "classic", "/127.0.0.1", ("topic",), "", 300_000, None),
            ClassicMemberMetadata(6000, (ClassicProtocol("range", b"\1\2"),)),
        ),
        "0000000008636c61737369630b2f3132372e302e302e310206746f70696301000493e000"
        "0100110100001770020672616e67650301020000",
    ),
    "target": (TargetKey("g"), f"0006{GROUP_HEX}", TargetValue(7), "00000000000700"),
    "target of a member": (
        MemberTargetKey("g", "m"),
        f"0007{GROUP_HEX}{MEMBER_HEX}",
        MemberTargetValue(PARTS),
        f"0000{PARTS_HEX}00",
    ),
    "assignment": (
        MemberAssignmentKey("g", "m"),
        f"0008{GROUP_HEX}{MEMBER_HEX}",
        MemberAssignmentValue(7, 6, 1, PARTS, ()),
        f"0000000000070000000601{PARTS_HEX}0100",
    ),
    "pattern": (
        PatternKey("g", "x.*"),
        f"0010{GROUP_HEX}0003782e2a",
        PatternValue(("xy",), 5, 1234),
        "000002037879000000000000000500000000000004d200",
    ),
}


@pytest.mark.parametrize(("key", "key_hex", "value", "value_hex"), CASES.values(), ids=CASES.keys())
def test_records(key: ConsumerKey, key_hex: str, value: ConsumerValue, value_hex: str) -> None:
    record = consumer_record(key, value)
    assert (record.key.hex(), (record.value or b"").hex()) == (key_hex, value_hex)
    assert read_record(record) == ConsumerRecord(key, value)
    tombstone = consumer_record(key, None)
    assert tombstone == StateRecord(record.key, None)
    assert read_record(tombstone) == ConsumerRecord(key, None)


def test_members_that_used_the_classic_protocol_are_read() -> None:
    """Kafka writes their protocols by a tag."""
    metadata = "010011010000afc8020672616e67650301020000"
    value = bytes.fromhex("0000000001010100ffffffff00" + metadata)
    read = read_record(StateRecord(bytes.fromhex(f"0005{GROUP_HEX}{MEMBER_HEX}"), value))
    assert isinstance(read, ConsumerRecord)
    assert isinstance(read.value, MemberValue)
    classic = read.value.classic_member_metadata
    assert classic is not None
    assert classic.session_timeout_ms == 45_000
    assert [(each.name, each.metadata) for each in classic.supported_protocols] == [("range", b"\1\2")]
