"""Headers, the check of produced batches and the leader's stamp."""

from __future__ import annotations

import struct

import lz4.frame
import pytest

from ottla.model.errors import ErrorCode, Refused
from ottla.records.batch import (
    CONTROL,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    BatchHeader,
    CheckedBatch,
    ProduceRules,
    check_produced,
    header_bytes,
    read_header,
    stamp,
)
from ottla.records.content import Record, build_batch, records_of
from ottla.records.crc import crc32c
from ottla.records.formats import scan, verify_crc

pytestmark = pytest.mark.usefixtures("kernel")

NOW = 1_700_000_000_000
INT64_MAX = (1 << 63) - 1
RULES = ProduceRules(
    batch_bytes_max=1_048_588,
    timestamp_before_ms_max=INT64_MAX,
    timestamp_after_ms_max=3_600_000,
    log_append_time=False,
)

# One batch of two records, written down byte by byte from the format's description.
GOLDEN = bytes.fromhex(
    "0000000000000000"  # base offset
    "00000048"  # length of the rest: 72
    "ffffffff"  # leader epoch -1
    "02"  # magic
    "edfc5037"  # CRC32C, as the crc32c package computes it
    "0000"  # attributes
    "00000001"  # last offset delta
    "0000018bcfe56800"  # base timestamp
    "0000018bcfe56802"  # max timestamp
    "ffffffffffffffff"  # producer id -1
    "ffff"  # producer epoch -1
    "ffffffff"  # base sequence -1
    "00000002"  # records
    "1e00000002" + b"k".hex() + "02" + b"v".hex() + "04" + "02" + b"h".hex() + "02" + b"1".hex()
    # second header with a null value; then a record with neither key nor value
    + "02" + b"n".hex() + "01" + "0c" + "00" + "04" + "02" + "01" + "01" + "00"
)  # fmt: skip
GOLDEN_RECORDS = [
    Record(0, NOW, b"k", b"v", (("h", b"1"), ("n", None))),
    Record(1, NOW + 2, None, None),
]


def batch(count: int = 1, timestamp: int = NOW, **changes: int) -> memoryview:
    """A sound batch, with header fields changed before length and checksum are made."""
    built = build_batch([Record(i, timestamp, b"k", b"v") for i in range(count)])
    header = read_header(built)._replace(**changes)
    return memoryview(header_bytes(header, built[HEADER_BYTES:]) + built[HEADER_BYTES:])


def refused(
    records: bytes | memoryview | None, rules: ProduceRules = RULES, version: int = 9, now_ms: int = NOW
) -> ErrorCode:
    with pytest.raises(Refused) as caught:
        check_produced(None if records is None else memoryview(records), version, rules, now_ms)
    assert caught.value.text != caught.value.code.text, "the refusal must say what is wrong"
    return caught.value.code


def test_crc32c_is_castagnolis() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"6789", crc32c(b"12345")) == 0xE3069283


def test_golden_batch_is_built_and_read() -> None:
    assert build_batch(GOLDEN_RECORDS).hex() == GOLDEN.hex()
    assert list(records_of(GOLDEN)) == GOLDEN_RECORDS
    header = read_header(GOLDEN)
    assert header == BatchHeader(0, 72, -1, 2, 0xEDFC5037, 0, 1, NOW, NOW + 2, -1, -1, -1, 2)
    assert verify_crc(GOLDEN, header)
    assert header_bytes(header, GOLDEN[HEADER_BYTES:]) == GOLDEN[:HEADER_BYTES]


def test_header_answers_what_its_fields_mean() -> None:
    header = read_header(batch(3, base_offset=10, attributes=0x74, producer_id=7, base_sequence=5))
    assert header.size == len(batch(3))
    assert (header.last_offset, header.next_offset) == (12, 13)
    assert header.last_sequence == 7
    assert header.codec == 4
    assert header.is_transactional
    assert header.is_control
    assert not header.is_log_append_time
    assert header.has_producer
    assert header.delete_horizon_ms == NOW
    plain = read_header(batch(3))
    assert not plain.has_producer
    assert plain.last_sequence == -1
    assert plain.delete_horizon_ms is None


@pytest.mark.parametrize(
    ("base", "delta", "last"),
    [(0, 0, 0), (2**31 - 1, 0, 2**31 - 1), (2**31 - 1, 1, 0), (2**31 - 2, 4, 2), (-1, 4, -1)],
)
def test_sequences_start_again_at_zero(base: int, delta: int, last: int) -> None:
    assert read_header(batch(delta + 1, base_sequence=base)).last_sequence == last


def test_sound_batch_passes_unchanged() -> None:
    data = batch(3, producer_id=5, producer_epoch=1, base_sequence=0, attributes=TRANSACTIONAL)
    checked = check_produced(data, 9, RULES, NOW)
    assert checked == CheckedBatch(read_header(data), data)
    assert checked.body is data


def test_attribute_bits_without_meaning_pass() -> None:
    assert check_produced(batch(attributes=0x4080), 9, RULES, NOW).header.attributes == 0x4080


@pytest.mark.parametrize("records", [None, b"", bytes(11)])
def test_no_batch_is_refused(records: bytes | None) -> None:
    assert refused(records) == ErrorCode.INVALID_RECORD


def test_every_truncation_is_refused_as_invalid_or_corrupt() -> None:
    data = batch(2)
    codes = {refused(data[:size]) for size in range(len(data))}
    assert codes == {ErrorCode.INVALID_RECORD}


def test_length_below_any_format_is_corrupt() -> None:
    for length in (-(2**31), -1, 0, 13):
        data = bytearray(batch())
        struct.pack_into(">i", data, 8, length)
        assert refused(data) == ErrorCode.CORRUPT_MESSAGE


def test_length_below_a_header_is_corrupt() -> None:
    for size in (26, 60):
        data = bytearray(batch()[:size])
        struct.pack_into(">i", data, 8, size - 12)
        assert refused(data) == ErrorCode.CORRUPT_MESSAGE


def test_more_than_one_batch_is_refused() -> None:
    assert refused(bytes(batch()) * 2) == ErrorCode.INVALID_RECORD


def test_bytes_after_the_batch_are_refused() -> None:
    assert refused(bytes(batch()) + b"\0") == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    ("magic", "code"),
    [
        (0, ErrorCode.INVALID_RECORD),
        (1, ErrorCode.INVALID_RECORD),
        (3, ErrorCode.CORRUPT_MESSAGE),
        (255, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_other_formats_are_refused(magic: int, code: ErrorCode) -> None:
    data = bytearray(batch())
    data[16] = magic
    assert refused(data) == code


def test_zstd_needs_produce_7() -> None:
    data = batch(attributes=4)
    assert refused(data, version=6) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert check_produced(data, 7, RULES, NOW).header.codec == 4


@pytest.mark.parametrize("linked", [False, True], ids=["independent", "linked"])
def test_lz4_blocks_that_depend_on_each_other_are_refused_as_in_kafka(linked: bool) -> None:
    plain = build_batch([Record(0, NOW, None, bytes(200_000))])
    body = lz4.frame.compress(plain[HEADER_BYTES:], block_linked=linked)
    header = read_header(plain)._replace(attributes=3)
    data = memoryview(header_bytes(header, body) + body)
    if linked:
        assert refused(data) == ErrorCode.INVALID_RECORD
    else:
        assert check_produced(data, 9, RULES, NOW).header.codec == 3


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codec_is_refused(codec: int) -> None:
    assert refused(batch(attributes=codec)) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("base_offset", [-1, 1, INT64_MAX])
def test_base_offset_must_be_zero(base_offset: int) -> None:
    assert refused(batch(base_offset=base_offset)) == ErrorCode.INVALID_RECORD


def test_size_limit_is_inclusive() -> None:
    data = batch()
    check_produced(data, 9, RULES._replace(batch_bytes_max=len(data)), NOW)
    assert refused(data, RULES._replace(batch_bytes_max=len(data) - 1)) == ErrorCode.MESSAGE_TOO_LARGE


def test_wrong_crc_is_corrupt() -> None:
    for position in (17, 21, 30, 60, 65):
        data = bytearray(batch())
        data[position] ^= 1
        assert refused(data) == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    "changes",
    [
        {"record_count": 0, "last_offset_delta": -1},
        {"record_count": -1, "last_offset_delta": -2},
        {"record_count": 2},
        {"last_offset_delta": 1},
        {"last_offset_delta": -1},
        {"record_count": 2**31 - 1, "last_offset_delta": -(2**31)},
    ],
)
def test_count_must_fit_offsets(changes: dict[str, int]) -> None:
    assert refused(batch(**changes)) == ErrorCode.INVALID_RECORD


def test_clients_write_no_control_batches() -> None:
    assert refused(batch(attributes=CONTROL)) == ErrorCode.INVALID_RECORD
    assert refused(batch(attributes=CONTROL | TRANSACTIONAL)) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("log_append_time", [False, True])
def test_clients_claim_no_log_append_time(log_append_time: bool) -> None:
    rules = RULES._replace(log_append_time=log_append_time)
    assert refused(batch(attributes=LOG_APPEND_TIME), rules) == ErrorCode.INVALID_TIMESTAMP


def test_producer_needs_a_sequence() -> None:
    assert refused(batch(producer_id=0, base_sequence=-1)) == ErrorCode.INVALID_RECORD
    check_produced(batch(producer_id=0, base_sequence=0), 9, RULES, NOW)


def test_timestamps_are_bounded_on_both_sides() -> None:
    rules = RULES._replace(timestamp_before_ms_max=1_000, timestamp_after_ms_max=500)
    for timestamp in (NOW - 1_000, NOW + 500, -1):
        check_produced(batch(timestamp=timestamp), 9, rules, NOW)
    for timestamp in (NOW - 1_001, NOW + 501, -2 & 0x7FFF_FFFF_FFFF_FFFF):
        assert refused(batch(timestamp=timestamp), rules) == ErrorCode.INVALID_TIMESTAMP
    assert refused(batch(max_timestamp=NOW + 501), rules) == ErrorCode.INVALID_TIMESTAMP
    assert refused(batch(base_timestamp=NOW - 1_001), rules) == ErrorCode.INVALID_TIMESTAMP
    check_produced(batch(timestamp=5), 9, rules._replace(log_append_time=True), NOW)


def test_default_bounds_take_every_past() -> None:
    for timestamp in (-1, 0, 1, NOW + 3_600_000):
        check_produced(batch(timestamp=timestamp), 9, RULES, NOW)
    assert refused(batch(timestamp=NOW + 3_600_001)) == ErrorCode.INVALID_TIMESTAMP


def test_the_ends_of_int64_are_no_surprise() -> None:
    for ends in ((0, 0), (INT64_MAX, 0), (0, INT64_MAX), (INT64_MAX, INT64_MAX)):
        rules = RULES._replace(timestamp_before_ms_max=ends[0], timestamp_after_ms_max=ends[1])
        assert refused(batch(base_timestamp=-INT64_MAX - 1), rules) == ErrorCode.INVALID_TIMESTAMP
        if ends[1] == 0:
            assert refused(batch(max_timestamp=INT64_MAX), rules) == ErrorCode.INVALID_TIMESTAMP
        else:
            check_produced(batch(max_timestamp=INT64_MAX), 9, rules, NOW)


def test_stamp_changes_offset_and_epoch_only() -> None:
    data = batch(3)
    first, rest = stamp(check_produced(data, 9, RULES, NOW), 1234567890123, 7)
    written = bytes(first) + bytes(rest)
    assert isinstance(rest, memoryview), "the body is not copied"
    assert len(written) == len(data)
    header = read_header(written)
    assert header == read_header(data)._replace(base_offset=1234567890123, leader_epoch=7)
    assert verify_crc(written, header)
    assert written[16:] == data[16:]


def test_log_append_time_rewrites_the_header_and_no_record() -> None:
    data = batch(3, attributes=TRANSACTIONAL | 0x4080, producer_id=3, base_sequence=9, producer_epoch=2)
    chunks = stamp(check_produced(data, 9, RULES, NOW), 42, 7, NOW + 5)
    written = b"".join(chunks)
    header = read_header(written)
    assert verify_crc(written, header)
    expected = read_header(data)._replace(
        base_offset=42,
        leader_epoch=7,
        attributes=TRANSACTIONAL | LOG_APPEND_TIME,  # Kafka drops the bits it does not know
        max_timestamp=NOW + 5,
        crc=header.crc,
    )
    assert header == expected
    assert written[HEADER_BYTES:] == data[HEADER_BYTES:]
    assert {record.timestamp for record in records_of(written)} == {NOW + 5}


def test_stamp_leaves_the_received_bytes_alone() -> None:
    data = batch(2)
    before = bytes(data)
    stamp(check_produced(data, 9, RULES, NOW), 42, 7, NOW)
    assert bytes(data) == before


def test_scan_stops_at_a_torn_tail() -> None:
    one, two = bytes(batch(1)), bytes(batch(2, base_offset=1))
    run = one + two
    found = [(0, read_header(one)), (len(one), read_header(two))]
    assert list(scan(run)) == found
    assert list(scan(run, len(one))) == found[1:]
    for end in range(len(run)):
        assert list(scan(run[:end])) == (found[:1] if end >= len(one) else [])
    assert list(scan(run + bytes(500))) == found


@pytest.mark.parametrize("length", [-(2**31), -12, -1, 0, 48, 2**31 - 1])
def test_scan_stops_at_an_impossible_length(length: int) -> None:
    data = bytearray(bytes(batch()) * 2)
    struct.pack_into(">i", data, 8, length)
    assert list(scan(data)) == []
