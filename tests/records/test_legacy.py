"""Messages of formats 0 and 1: what an independent writer wrote is read, and what we write it reads."""

from __future__ import annotations

import gzip
import random
from contextlib import suppress

import lz4.frame
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compat.clients.kafka_package import LegacyRecordBatch
from old_messages import OLD_CODECS, OLD_FORMATS, as_kept, old_set
from ottla.records.compression import Codec
from ottla.records.content import Record, build_batch
from ottla.records.findings import CorruptRecords
from ottla.records.formats import header_at, records_of, scan, verify_crc
from ottla.records.legacy import build_legacy, legacy_records_of
from ottla.records.lz4_descriptor import _xxh32, with_old_checksum, with_right_checksum

NOW = 1_500_000_000_000
RECORDS = [
    Record(100, NOW, b"k", b"v"),
    Record(101, NOW + 5, None, b""),
    Record(104, NOW + 2, b"", None),
    Record(105, NOW + 3, b"key", b"value" * 500),
]

formats = pytest.mark.parametrize("magic", OLD_FORMATS)
codecs = pytest.mark.parametrize("codec", OLD_CODECS, ids=lambda codec: codec.name.lower())
# kafka-python needs another package for the wrong checksum of format 0; interop has Apache Kafka's writer.
readable_codecs = [
    (magic, codec) for magic in OLD_FORMATS for codec in OLD_CODECS if (magic, codec) != (0, Codec.LZ4)
]


def read(data: bytes) -> list[Record]:
    return [
        record
        for position, header in scan(data)
        for record in records_of(data[position : position + header.size])
    ]


@pytest.mark.parametrize(("magic", "codec"), readable_codecs)
def test_what_an_old_client_wrote_is_read(magic: int, codec: Codec) -> None:
    data = old_set(RECORDS, magic, codec)
    assert read(data) == as_kept(RECORDS, magic)
    for position, header in scan(data):
        assert verify_crc(data, header, position)
        assert (header.magic, header.codec, header.leader_epoch) == (magic, codec, -1)
    last = list(scan(data))[-1][1]
    assert last.last_offset == 105
    if codec and magic:
        assert last.max_timestamp == NOW + 5


@pytest.mark.parametrize(("magic", "codec"), readable_codecs)
def test_what_we_write_an_old_client_reads(magic: int, codec: Codec) -> None:
    data = build_legacy(RECORDS, magic, codec)
    found = []
    for position, header in scan(data):
        message = LegacyRecordBatch(data[position : position + header.size], magic)
        assert message.validate_crc()
        found += [
            Record(r.offset, -1 if r.timestamp is None else r.timestamp, r.key, r.value) for r in message
        ]
    assert found == as_kept(RECORDS, magic)


@formats
@codecs
def test_what_we_write_we_read(magic: int, codec: Codec) -> None:
    assert read(build_legacy(RECORDS, magic, codec)) == as_kept(RECORDS, magic)


@pytest.mark.parametrize("codec", [codec for codec in OLD_CODECS if codec])
def test_log_append_time_is_that_of_the_whole_set(codec: Codec) -> None:
    for data in (
        old_set(RECORDS, 1, codec, append_time_ms=NOW + 99),
        build_legacy(RECORDS, 1, codec, append_time_ms=NOW + 99),
    ):
        assert {record.timestamp for record in read(data)} == {NOW + 99}
        header = header_at(data)
        assert header is not None
        assert header.is_log_append_time


def test_old_and_new_batches_follow_each_other_in_a_file() -> None:
    new = build_batch([Record(0, NOW, None, b"new")])
    data = old_set(RECORDS, 0) + old_set(RECORDS, 1, Codec.GZIP) + new
    magics = [header.magic for _, header in scan(data)]
    assert magics == [0, 0, 0, 0, 1, 2]
    assert [header.magic for _, header in scan(data[:-1])] == magics[:-1]


def test_checksums_of_lz4_descriptors_are_those_of_the_library() -> None:
    for data, value in ((b"", 0x02CC5D05), (b"a", 0x550D7456), (b"abc", 0x32D153FF)):
        assert _xxh32(data) == value
    for content_size in (True, False):
        frame = lz4.frame.compress(b"content" * 100, store_size=content_size)
        assert with_right_checksum(frame) == frame
        assert with_old_checksum(frame) != frame
        assert with_right_checksum(with_old_checksum(frame)) == frame


def test_lz4_of_format_0_has_the_checksum_of_old_clients() -> None:
    """The bytes that KIP-57 gives as an example: the checksum covers the magic."""
    frame = build_legacy([Record(0, -1, None, b"x" * 100)], 0, Codec.LZ4)[26:]
    assert frame[:4] == b"\x04\x22\x4d\x18"
    with pytest.raises(RuntimeError):
        lz4.frame.decompress(frame)
    assert b"x" * 100 in lz4.frame.decompress(with_right_checksum(frame))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300), st.sampled_from(OLD_FORMATS), st.sampled_from(OLD_CODECS))
def test_invented_messages_end_in_one_error(noise: bytes, magic: int, codec: Codec) -> None:
    with suppress(CorruptRecords):
        list(legacy_records_of(noise))
    wrapped = build_legacy([Record(7, NOW, None, noise)], magic)[: -len(noise) or None] + noise
    message = bytearray(wrapped)
    message[17] = codec
    with suppress(CorruptRecords):
        list(legacy_records_of(bytes(message), decompressed_bytes_max=1 << 20))


def test_damaged_messages_end_in_one_error_or_in_records() -> None:
    rng = random.Random(7)
    for _ in range(2000):
        data = bytearray(old_set(RECORDS, 1, rng.choice(OLD_CODECS)))
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        with suppress(CorruptRecords):
            for position, header in scan(data):
                list(
                    records_of(bytes(data[position : position + header.size]), decompressed_bytes_max=1 << 20)
                )


def test_a_compressed_message_inside_of_another_is_refused() -> None:
    inner = old_set(RECORDS, 1, Codec.GZIP)
    outer = build_legacy([Record(0, NOW, None, b"")], 1, Codec.GZIP)
    value = gzip.compress(inner)
    message = bytearray(outer[:34] + value)
    message[8:12] = (len(message) - 12).to_bytes(4, "big")
    message[30:34] = len(value).to_bytes(4, "big")
    with pytest.raises(CorruptRecords, match="inside"):
        list(legacy_records_of(bytes(message)))
