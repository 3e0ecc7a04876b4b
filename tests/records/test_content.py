"""Records inside a batch: round trips, the topic's rules, and broken content behind a right checksum."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ottla.model.errors import ErrorCode, Refused
from ottla.records.batch import (
    CONTROL,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    CheckedBatch,
    ProduceRules,
    check_produced,
    header_bytes,
    read_header,
)
from ottla.records.compression import Codec, compress
from ottla.records.content import Record, build_batch, check_content, recompress, records_of
from ottla.records.findings import CorruptRecords
from ottla.records.formats import verify_crc

NOW = 1_700_000_000_000
INT64_MAX = (1 << 63) - 1
RULES = ProduceRules(1 << 20, INT64_MAX, 3_600_000, log_append_time=False)
COMPACTED = RULES._replace(keys_needed=True)
CODECS = pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name.lower())

# The kernel fixture only swaps a module, so it may serve all examples of a property.
both = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

parts = st.none() | st.binary(max_size=300)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
headers = st.lists(st.tuples(names, parts), max_size=4).map(tuple)


@st.composite
def record_lists(draw: st.DrawFn) -> list[Record]:
    """Records with growing offsets, as a compacted batch may hold them."""
    offset = draw(st.integers(0, 2**60))
    records = []
    for _ in range(draw(st.integers(1, 12))):
        timestamp = draw(st.integers(-1, INT64_MAX - 1) | st.integers(NOW, NOW + 1000))
        records.append(Record(offset, timestamp, draw(parts), draw(parts), draw(headers)))
        offset += draw(st.integers(1, 3) | st.integers(1, 2**26))
    return records


@CODECS
@given(records=record_lists())
@both
def test_records_come_back(kernel: object, codec: Codec, records: list[Record]) -> None:
    batch = build_batch(records, base_offset=records[0].offset, codec=codec, leader_epoch=3)
    header = read_header(batch)
    assert list(records_of(batch)) == records
    assert verify_crc(batch, header)
    assert header.size == len(batch)
    assert header.leader_epoch == 3
    assert header.last_offset == records[-1].offset
    assert header.record_count == len(records)
    assert header.base_timestamp == records[0].timestamp
    assert header.max_timestamp == max(record.timestamp for record in records)
    assert header.codec == codec


def test_many_records_come_back(kernel: object) -> None:
    records = [Record(i, NOW + i, b"%d" % i, None) for i in range(3_001)]
    assert list(records_of(build_batch(records))) == records


def test_producer_fields_and_flags_are_written() -> None:
    batch = build_batch(
        [Record(7, NOW, b"\0\0\0\1", b"marker")],
        base_offset=7,
        flags=TRANSACTIONAL | CONTROL,
        producer_id=99,
        producer_epoch=3,
        base_sequence=17,
        append_time_ms=NOW + 5,
    )
    header = read_header(batch)
    assert header.attributes == TRANSACTIONAL | CONTROL | LOG_APPEND_TIME
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (99, 3, 17)
    assert [record.timestamp for record in records_of(batch)] == [NOW + 5]
    assert (header.base_timestamp, header.max_timestamp) == (NOW, NOW + 5)


@pytest.mark.parametrize(
    ("records", "base_offset"),
    [
        ([], 0),
        ([Record(0, -2, None, None)], 0),
        ([Record(0, INT64_MAX, None, None)], 0),
        ([Record(-1, 0, None, None)], -1),
        ([Record(4, 0, None, None)], 5),
        ([Record(1, 0, None, None), Record(1, 0, None, None)], 0),
        ([Record(2, 0, None, None), Record(1, 0, None, None)], 0),
        ([Record(2**31, 0, None, None)], 0),
    ],
)
def test_impossible_batches_are_not_built(kernel: object, records: list[Record], base_offset: int) -> None:
    with pytest.raises(ValueError, match=r"offset|needs"):
        build_batch(records, base_offset=base_offset)


def test_header_names_that_are_not_utf8_keep_their_bytes(kernel: object) -> None:
    record = Record(0, NOW, None, None, ((b"\xff\xfe".decode("utf-8", "surrogateescape"), b"1"),))
    batch = build_batch([record])
    assert b"\xff\xfe" in batch
    assert list(records_of(batch)) == [record]


def test_an_empty_batch_of_the_cleaner_has_no_records() -> None:
    header = read_header(build_batch([Record(0, NOW, b"k", b"v")]))._replace(record_count=0)
    assert list(records_of(header_bytes(header, b""))) == []


def with_content(plain: bytes, count: int, codec: Codec = Codec.NONE, **changes: int) -> memoryview:
    """A batch whose header and checksum are right, whatever `plain` is."""
    header = read_header(build_batch([Record(0, NOW, b"k", b"v")]))
    header = header._replace(record_count=count, last_offset_delta=count - 1, attributes=codec, **changes)
    body = bytes(compress(codec, plain))
    return memoryview(header_bytes(header, body) + body)


BROKEN = {
    "nothing": b"",
    "negative size": b"\x01\x00",
    "zero size": b"\x00",
    "size beyond the end": b"\x7e\x00\x00\x00",
    "size that never ends": b"\xff\xff\xff\xff\xff\xff",
    "size beyond 32 bits": b"\xff\xff\xff\xff\x1f\x00\x00\x00\x01\x01\x00",
    "timestamp that never ends": b"\x2a\x00" + b"\xff" * 20,
    "timestamp beyond 64 bits": b"\x1c\x00" + b"\xff" * 9 + b"\x02" + b"\x00\x01\x01\x00",
    "timestamp beyond the base": b"\x1c\x00" + b"\xfe" + b"\xff" * 8 + b"\x01" + b"\x00\x01\x01\x00",
    "no offset": b"\x04\x00\x00",
    "no key": b"\x06\x00\x00\x00",
    "key beyond the record": b"\x0c\x00\x00\x00\x7ek\x00",
    "value beyond the record": b"\x0c\x00\x00\x00\x01\x7e\x00",
    "no header count": b"\x0a\x00\x00\x00\x01\x01",
    "negative header count": b"\x0c\x00\x00\x00\x01\x01\x01",
    "header count beyond the record": b"\x0c\x00\x00\x00\x01\x01\x7e",
    "billion headers": b"\x14\x00\x00\x00\x01\x01\xfe\xff\xff\xff\x0f",
    "header without a name": b"\x10\x00\x00\x00\x01\x01\x02\x01\x01",
    "header value beyond the record": b"\x10\x00\x00\x00\x01\x01\x02\x00\x7e",
    "bytes after the headers": b"\x0e\x00\x00\x00\x01\x01\x00\x00",
    "bytes after the record": b"\x0c\x00\x00\x00\x01\x01\x00\x00",
}


def test_the_broken_ones_differ_from_a_sound_one(kernel: object) -> None:
    assert list(records_of(with_content(b"\x0c\x00\x00\x00\x01\x01\x00", 1))) == [Record(0, NOW, None, None)]


@CODECS
@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN.keys())
def test_broken_content_behind_a_right_checksum(kernel: object, content: bytes, codec: Codec) -> None:
    batch = with_content(content, 1, codec)
    checked = check_produced(batch, 9, RULES, NOW)  # the checksum is right and nobody looked inside
    with pytest.raises(CorruptRecords):
        list(records_of(batch))
    with pytest.raises(Refused) as caught:
        check_content(checked, COMPACTED, NOW)
    assert caught.value.code == ErrorCode.INVALID_RECORD


def test_fewer_or_more_records_than_counted(kernel: object) -> None:
    three = build_batch([Record(i, NOW, b"k", b"v") for i in range(3)])[HEADER_BYTES:]
    for count in (2, 4, 2**31 - 1):
        with pytest.raises(CorruptRecords):
            list(records_of(with_content(three, count)))
        with pytest.raises(Refused):
            check_content(check_produced(with_content(three, count), 9, RULES, NOW), COMPACTED, NOW)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_content_that_does_not_decompress(codec: Codec) -> None:
    header = read_header(with_content(b"", 1))._replace(attributes=codec)
    batch = memoryview(header_bytes(header, b"garbage") + b"garbage")
    with pytest.raises(CorruptRecords):
        list(records_of(batch))
    with pytest.raises(CorruptRecords):
        recompress(batch, Codec.NONE)
    with pytest.raises(Refused) as caught:
        check_content(check_produced(batch, 9, RULES, NOW), COMPACTED, NOW)
    assert caught.value.code == ErrorCode.INVALID_RECORD


def test_a_bomb_inside_a_batch_is_refused() -> None:
    batch = build_batch([Record(0, NOW, b"k", bytes(3_000_000))], codec=Codec.ZSTD)
    assert len(batch) < 1_000
    with pytest.raises(CorruptRecords):
        list(records_of(batch, decompressed_bytes_max=2_999_999))
    with pytest.raises(CorruptRecords):
        recompress(batch, Codec.NONE, decompressed_bytes_max=2_999_999)
    checked = check_produced(memoryview(batch), 9, RULES, NOW)
    with pytest.raises(Refused) as caught:
        check_content(checked, COMPACTED, NOW, decompressed_bytes_max=2_999_999)
    assert caught.value.code == ErrorCode.INVALID_RECORD


def produced(records: list[Record], codec: Codec = Codec.NONE, **changes: int) -> CheckedBatch:
    built = build_batch(records, codec=codec)
    header = read_header(built)._replace(**changes)
    batch = memoryview(header_bytes(header, built[HEADER_BYTES:]) + built[HEADER_BYTES:])
    return check_produced(batch, 9, RULES, NOW)


@CODECS
def test_a_compacted_topic_needs_keys(kernel: object, codec: Codec) -> None:
    keyed = produced([Record(0, NOW, b"k", None), Record(1, NOW, b"", b"v")], codec)
    assert check_content(keyed, COMPACTED, NOW) is keyed
    keyless = produced([Record(0, NOW, b"k", b"v"), Record(1, NOW, None, b"v")], codec)
    with pytest.raises(Refused, match="record 1 has no key") as caught:
        check_content(keyless, COMPACTED, NOW)
    assert caught.value.code == ErrorCode.INVALID_RECORD
    assert check_content(keyless, RULES, NOW) is keyless


def test_offsets_inside_must_be_consecutive(kernel: object) -> None:
    gap = produced([Record(0, NOW, b"k", b"v"), Record(2, NOW, b"k", b"v")], last_offset_delta=1)
    with pytest.raises(Refused, match="record 1") as caught:
        check_content(gap, COMPACTED, NOW)
    assert caught.value.code == ErrorCode.INVALID_RECORD


def test_every_records_timestamp_is_checked_where_records_are_looked_at(kernel: object) -> None:
    rules = COMPACTED._replace(timestamp_before_ms_max=1_000, timestamp_after_ms_max=500)
    late = [Record(0, NOW, b"k", b"v"), Record(1, NOW + 501, b"k", b"v")]
    early = [Record(0, NOW, b"k", b"v"), Record(1, NOW - 1_001, b"k", b"v")]
    for records in (late, early):
        with pytest.raises(Refused) as caught:
            check_content(produced(records, max_timestamp=NOW), rules, NOW)
        assert caught.value.code == ErrorCode.INVALID_TIMESTAMP
        check_content(produced(records), rules._replace(log_append_time=True), NOW)
    none_at_all = produced([Record(0, -1, b"k", b"v")])
    assert check_content(none_at_all, rules, NOW) is none_at_all


def test_a_wrong_max_timestamp_is_put_right(kernel: object) -> None:
    records = [Record(0, NOW, b"k", b"v"), Record(1, NOW + 9, b"k", b"v")]
    checked = produced(records, max_timestamp=NOW, producer_id=3, base_sequence=4)
    fixed = check_content(checked, COMPACTED, NOW)
    expected = checked.header._replace(max_timestamp=NOW + 9, crc=fixed.header.crc)
    assert fixed.header == expected == read_header(fixed.body)
    assert verify_crc(fixed.body, fixed.header)
    assert list(records_of(fixed.body)) == records


@CODECS
def test_the_topics_codec_is_applied(kernel: object, codec: Codec) -> None:
    records = [Record(i, NOW + i, b"k%d" % i, b"value" * 50, (("h", b"x"),)) for i in range(50)]
    for source in Codec:
        checked = produced(records, source, producer_id=3, producer_epoch=1, base_sequence=4)
        done = check_content(checked, RULES._replace(codec=codec), NOW)
        if codec == source:
            assert done is checked
            continue
        assert done.header == read_header(done.body)
        assert done.header.size == len(done.body)
        assert verify_crc(done.body, done.header)
        assert done.header.codec == codec
        assert done.header._replace(attributes=0, crc=0, batch_length=0) == checked.header._replace(
            attributes=0, crc=0, batch_length=0
        )
        assert list(records_of(done.body)) == records


def test_a_batch_that_recompression_makes_too_large_is_refused() -> None:
    checked = produced([Record(0, NOW, b"k", bytes(5_000))], Codec.ZSTD)
    with pytest.raises(Refused) as caught:
        check_content(checked, RULES._replace(codec=Codec.NONE, batch_bytes_max=5_000), NOW)
    assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE


def test_rules_know_whether_to_look_inside() -> None:
    assert not RULES.look_inside
    assert COMPACTED.look_inside
    assert RULES._replace(codec=Codec.NONE).look_inside
