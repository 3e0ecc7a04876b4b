"""The records of `__consumer_offsets` are Kafka's, byte for byte, and what is none is told apart."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordinator.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    GroupRecord,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    OffsetRecord,
    group_record,
    offset_record,
    plain_offset_record,
    read_record,
)
from ottla.coordinator.state_log import StateRecord, partition_for
from ottla.coordinator.versioned import decode_versioned, encode_versioned
from ottla.model.errors import Malformed


def text(value: str) -> str:
    """A string on the wire, in hex."""
    return len(value).to_bytes(2, "big").hex() + value.encode().hex()


OFFSET_KEY = "0001" + text("g") + text("orders") + "00000007"
GROUP_KEY = "0002" + text("g")

MEMBER = MemberMetadata("m-1", "i", "cli", "/10.0.0.1", 60000, 10000, b"\x01\x02", b"\x03")
MEMBER_HEX = (
    text("m-1")
    + text("i")
    + text("cli")
    + text("/10.0.0.1")
    + "0000ea60"
    + "00002710"
    + "000000020102"
    + "0000000103"
)
GROUP = GroupMetadataValue("consumer", 3, "range", "m-1", 1234, (MEMBER,))

AT_5 = "0000000000000005"
AT_TIME = "00000000000004d2"  # 1234
NULL = "ffff"
NOBODY = "00000000"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (OffsetCommitValue(5, 2, "note", 1234), f"0003{AT_5}00000002{text('note')}{AT_TIME}"),
        (OffsetCommitValue(5, -1, "", 1234, 9999), f"0001{AT_5}{text('')}{AT_TIME}000000000000270f"),
    ],
    ids=["version 3", "version 1 with its own expiry"],
)
def test_offset_commits(value: OffsetCommitValue, expected: str) -> None:
    record = offset_record(OffsetCommitKey("g", "orders", 7), value)
    assert record.key.hex() == OFFSET_KEY
    assert record.value is not None
    assert record.value.hex() == expected
    assert read_record(record) == OffsetRecord(OffsetCommitKey("g", "orders", 7), value)


INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    ["x" * 400, "x" * 401]
)


@given(group=NAMES, topic=NAMES, partition=INT32, offset=INT64, leader_epoch=INT32, timestamp_ms=INT64)
def test_the_short_way_of_a_commit_gives_what_the_codec_does(
    group: str, topic: str, partition: int, offset: int, leader_epoch: int, timestamp_ms: int
) -> None:
    key, value = (
        OffsetCommitKey(group, topic, partition),
        OffsetCommitValue(offset, leader_epoch, "", timestamp_ms),
    )
    record = plain_offset_record(group, topic, partition, offset, leader_epoch, timestamp_ms)
    assert record == StateRecord(encode_versioned(key, 1), encode_versioned(value, 3))
    for _ in range(2):  # the second time from what was kept
        assert read_record(record) == OffsetRecord(key, value)
        assert offset_record(key, value) == record


@given(data=st.binary(min_size=22, max_size=22))
def test_a_value_of_the_usual_size_is_read_as_the_codec_reads_it(data: bytes) -> None:
    for version in range(5):
        value = version.to_bytes(2, "big") + data
        try:
            expected = decode_versioned(OffsetCommitValue, value)
        except Malformed:
            with pytest.raises(Malformed):
                read_record(StateRecord(bytes.fromhex(OFFSET_KEY), value))
        else:
            read = read_record(StateRecord(bytes.fromhex(OFFSET_KEY), value))
            assert isinstance(read, OffsetRecord)
            assert read.value == expected


def test_group_metadata() -> None:
    record = group_record("g", GROUP)
    assert record.key.hex() == GROUP_KEY
    expected = "0003" + text("consumer") + "00000003" + text("range") + text("m-1") + AT_TIME + "00000001"
    assert record.value is not None
    assert record.value.hex() == expected + MEMBER_HEX
    assert read_record(record) == GroupRecord(GroupMetadataKey("g"), GROUP)


def test_an_empty_group_has_no_protocol_and_no_leader() -> None:
    record = group_record("g", GroupMetadataValue("consumer", 4, None, None, 1234))
    assert record.value is not None
    assert record.value.hex() == (
        "0003" + text("consumer") + "00000004" + "ffff" + "ffff" + AT_TIME + "00000000"
    )


def test_tombstones_have_a_key_only() -> None:
    offset = offset_record(OffsetCommitKey("g", "orders", 7), None)
    assert (offset.key.hex(), offset.value) == (OFFSET_KEY, None)
    assert read_record(offset) == OffsetRecord(OffsetCommitKey("g", "orders", 7), None)
    group = group_record("g", None)
    assert (group.key.hex(), group.value) == (GROUP_KEY, None)
    assert read_record(group) == GroupRecord(GroupMetadataKey("g"), None)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (OFFSET_KEY, f"0000{AT_5}{text('n')}{AT_TIME}", OffsetCommitValue(5, -1, "n", 1234)),
        ("0000" + OFFSET_KEY[4:], f"0002{AT_5}{text('n')}{AT_TIME}", OffsetCommitValue(5, -1, "n", 1234)),
        (OFFSET_KEY, f"0004{AT_5}00000002026e{AT_TIME}00", OffsetCommitValue(5, 2, "n", 1234)),
        (GROUP_KEY, f"0000{text('c')}00000001{NULL}{NULL}{NOBODY}", GroupMetadataValue("c", 1)),
        (
            GROUP_KEY,
            f"0002{text('c')}00000001{NULL}{NULL}{AT_TIME}{NOBODY}",
            GroupMetadataValue("c", 1, None, None, 1234),
        ),
        (GROUP_KEY, f"00040263000000010000{AT_TIME}0100", GroupMetadataValue("c", 1, None, None, 1234)),
    ],
)
def test_other_versions_are_read(key: str, value: str, expected: object) -> None:
    read = read_record(StateRecord(bytes.fromhex(key), bytes.fromhex(value)))
    assert read is not None
    assert read.value == expected


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", b""),
        (b"\0", b""),
        (b"hello", b"world"),
        (bytes.fromhex(OFFSET_KEY[:-2]), None),
        (bytes.fromhex(OFFSET_KEY), b""),
        (bytes.fromhex(OFFSET_KEY), b"\x00\x63" + bytes(100)),
        (bytes.fromhex(GROUP_KEY), b"\x00\x03\xff\xfe"),
    ],
)
def test_a_strangers_bytes_are_malformed_or_of_no_known_kind(key: bytes, value: bytes | None) -> None:
    with suppress(Malformed):
        assert read_record(StateRecord(key, value)) is None


@pytest.mark.parametrize(
    ("key", "count", "partition"),
    [("groupid", 50, 10), ("KafkaConsumerDemo", 50, 35), ("", 50, 0), ("groupid", 1, 0)],
)
def test_a_key_belongs_to_the_partition_that_javas_hash_says(key: str, count: int, partition: int) -> None:
    assert partition_for(key, count) == partition


def test_the_hash_is_over_utf_16_units_and_its_least_value_counts_as_zero() -> None:
    # "polygenelubricants" is known for Java's hashCode of Integer.MIN_VALUE.
    assert partition_for("polygenelubricants", 50) == 0
    assert partition_for("\N{OTTER}", 1_000_003) == (31 * 0xD83E + 0xDDA6) % 1_000_003
