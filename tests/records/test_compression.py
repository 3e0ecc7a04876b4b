"""Codecs: frames as other writers make them, broken ones, and bombs within a bound of memory."""

from __future__ import annotations

import gzip
import random
import struct
import subprocess
import sys
import textwrap

import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.model.limits import KIB, MIB
from ottla.records.compression import CODEC_NAMES, Codec, compress, decompress
from ottla.records.findings import CorruptRecords

COMPRESSED = [codec for codec in Codec if codec != Codec.NONE]
CODECS = pytest.mark.parametrize("codec", COMPRESSED, ids=lambda codec: codec.name.lower())


def text(size: int) -> bytes:
    """Bytes that compress neither not at all nor to nothing."""
    words = random.Random(7).choices([b"alpha ", b"beta ", b"gamma ", b"delta\n"], k=size // 5 + 1)
    return b"".join(words)[:size]


DATA = text(300_000)


def test_names_are_those_of_compression_type() -> None:
    assert list(CODEC_NAMES) == ["none", "gzip", "snappy", "lz4", "zstd"]


@CODECS
@given(data=st.binary(max_size=5_000))
@settings(max_examples=50)
def test_any_bytes_come_back(codec: Codec, data: bytes) -> None:
    assert decompress(codec, compress(codec, data), max(len(data), 1)) == data


@CODECS
@pytest.mark.parametrize("size", [1, 32 * KIB, 64 * KIB + 1, 5 * MIB])
def test_sizes_around_the_blocks_come_back(codec: Codec, size: int) -> None:
    data = text(size)
    packed = compress(codec, data)
    assert decompress(codec, packed, size) == data
    assert decompress(codec, memoryview(bytearray(packed)), 256 * MIB) == data


@pytest.mark.parametrize(
    ("codec", "levels"),
    [(Codec.GZIP, [-1, 1, 9]), (Codec.LZ4, [1, 9, 17]), (Codec.ZSTD, [-131_072, 1, 22])],
)
def test_kafkas_levels_are_taken(codec: Codec, levels: list[int]) -> None:
    for level in levels:
        assert decompress(codec, compress(codec, DATA, level), len(DATA)) == DATA


def test_others_read_what_we_write() -> None:
    assert gzip.decompress(compress(Codec.GZIP, DATA)) == DATA
    assert lz4.frame.decompress(bytes(compress(Codec.LZ4, DATA))) == DATA
    assert zstandard.ZstdDecompressor().decompress(bytes(compress(Codec.ZSTD, DATA))) == DATA


def test_lz4_blocks_are_independent_as_the_java_client_demands() -> None:
    for level in (None, 1, 17):
        info = lz4.frame.get_frame_info(bytes(compress(Codec.LZ4, DATA, level)))
        assert info["block_linked"] is False
        assert info["block_size"] == 64 * KIB


def test_snappy_is_written_in_snappy_javas_framing() -> None:
    packed = bytes(compress(Codec.SNAPPY, DATA))
    assert packed[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    position, plain = 16, b""
    while position < len(packed):
        (size,) = struct.unpack_from(">i", packed, position)
        block = snappy.decompress(packed[position + 4 : position + 4 + size])
        assert len(block) <= 32 * KIB
        plain += block
        position += 4 + size
    assert plain == DATA


def test_raw_snappy_is_read() -> None:
    assert decompress(Codec.SNAPPY, snappy.compress(DATA), len(DATA)) == DATA


def test_gzip_members_follow_each_other() -> None:
    packed = gzip.compress(DATA[:1000]) + gzip.compress(b"") + gzip.compress(DATA[1000:])
    assert decompress(Codec.GZIP, packed, len(DATA)) == DATA


@pytest.mark.parametrize("store_size", [True, False])
@pytest.mark.parametrize("block_checksum", [True, False])
@pytest.mark.parametrize("content_checksum", [True, False])
@pytest.mark.parametrize("block_linked", [True, False])
def test_every_lz4_frame_is_read(
    store_size: bool, block_checksum: bool, content_checksum: bool, block_linked: bool
) -> None:
    for block_size in (lz4.frame.BLOCKSIZE_MAX64KB, lz4.frame.BLOCKSIZE_MAX4MB):
        packed = lz4.frame.compress(
            DATA,
            store_size=store_size,
            block_checksum=block_checksum,
            content_checksum=content_checksum,
            block_linked=block_linked,
            block_size=block_size,
        )
        assert decompress(Codec.LZ4, packed, len(DATA)) == DATA


@pytest.mark.parametrize("write_content_size", [True, False])
@pytest.mark.parametrize("write_checksum", [True, False])
def test_every_zstd_frame_is_read(write_content_size: bool, write_checksum: bool) -> None:
    for level in (1, 3, 19):
        for size in (0, 1, 255, 256, 70_000, len(DATA)):
            writer = zstandard.ZstdCompressor(
                level=level, write_content_size=write_content_size, write_checksum=write_checksum
            )
            packed = writer.compress(DATA[:size])
            assert decompress(Codec.ZSTD, packed, max(size, 1)) == DATA[:size]
    stream = zstandard.ZstdCompressor(
        level=3
    ).compressobj()  # as a Java producer streams: no size, 2 MiB window
    packed = stream.compress(DATA) + stream.flush()
    assert decompress(Codec.ZSTD, packed, len(DATA)) == DATA


def test_zstd_frames_follow_each_other() -> None:
    packed = bytes(compress(Codec.ZSTD, DATA[:1000])) + bytes(compress(Codec.ZSTD, DATA[1000:]))
    assert decompress(Codec.ZSTD, packed, len(DATA)) == DATA


@CODECS
def test_the_bound_is_inclusive(codec: Codec) -> None:
    packed = compress(codec, DATA)
    assert decompress(codec, packed, len(DATA)) == DATA
    with pytest.raises(CorruptRecords):
        decompress(codec, packed, len(DATA) - 1)


def test_plain_records_have_the_same_bound() -> None:
    assert decompress(Codec.NONE, DATA, len(DATA)) is DATA
    with pytest.raises(CorruptRecords):
        decompress(Codec.NONE, DATA, len(DATA) - 1)


@CODECS
def test_truncated_input_is_corrupt(codec: Codec) -> None:
    packed = bytes(compress(codec, DATA[:2_000]))
    # Snappy-java's framing has no end mark, so its header alone is a sound stream of nothing.
    for size in set(range(len(packed))) - ({16} if codec == Codec.SNAPPY else set()):
        with pytest.raises(CorruptRecords):
            decompress(codec, packed[:size], MIB)


@CODECS
def test_garbage_is_corrupt(codec: Codec) -> None:
    rng = random.Random(codec)
    for size in (0, 1, 3, 5, 6, 13, 14, 100):
        with pytest.raises(CorruptRecords):
            decompress(codec, rng.randbytes(size), MIB)
    with pytest.raises(CorruptRecords):
        decompress(codec, bytes(compress(codec, DATA)) + b"\xff\xff\xff\xff", MIB)


def test_unknown_numbers_are_no_codec() -> None:
    with pytest.raises(CorruptRecords):
        decompress(5, b"", MIB)
    with pytest.raises(ValueError, match="number 5"):
        compress(5, b"")


def test_declared_sizes_are_refused_before_anything_is_allocated() -> None:
    lz4_frame = lz4.frame.compress(b"x", store_size=True)
    lie = lz4_frame[:6] + struct.pack("<Q", 1 << 60) + lz4_frame[14:]
    with pytest.raises(CorruptRecords, match=str(1 << 60)):
        decompress(Codec.LZ4, lie, MIB)
    with pytest.raises(CorruptRecords, match=str(1 << 60)):
        decompress(Codec.ZSTD, b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 1 << 60), MIB)
    with pytest.raises(CorruptRecords, match=str((1 << 32) - 1)):
        decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f\x00x", MIB)


def test_a_zstd_window_beyond_the_bound_is_refused() -> None:
    window_of_128_mib = b"\x28\xb5\x2f\xfd\x00\x88\x01\x00\x00"  # an empty frame
    with pytest.raises(CorruptRecords, match="window"):
        decompress(Codec.ZSTD, window_of_128_mib, 16 * MIB)
    assert decompress(Codec.ZSTD, window_of_128_mib, 128 * MIB) == b""


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_a_first_frame_that_declares_little_hides_nothing(codec: Codec) -> None:
    packed = bytes(compress(codec, b"x")) + bytes(compress(codec, DATA))
    assert decompress(codec, packed, len(DATA) + 1) == b"x" + DATA


DECOMPRESS_AND_MEASURE = textwrap.dedent(
    """
    import sys, tracemalloc
    from ottla.records.compression import decompress
    from ottla.records.findings import CorruptRecords

    def peak_rss():
        status = open("/proc/self/status").read()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024

    codec, bytes_max, data = int(sys.argv[1]), int(sys.argv[2]), sys.stdin.buffer.read()
    rss_before = peak_rss()
    tracemalloc.start()
    try:
        decompress(codec, data, bytes_max)
        refused = 0
    except CorruptRecords:
        refused = 1
    print(refused, tracemalloc.get_traced_memory()[1], peak_rss() - rss_before)
    """
)


def refused_and_peak_bytes(codec: Codec, data: bytes, bytes_max: int) -> tuple[bool, int]:
    """Whether it is refused, and the peak of what Python allocated or the process had in memory for it."""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", DECOMPRESS_AND_MEASURE, str(int(codec)), str(bytes_max)],
        input=data,
        capture_output=True,
        check=True,
        timeout=60,
    )
    refused, traced, rss = map(int, run.stdout.split())
    return bool(refused), max(traced, rss)


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@CODECS
def test_a_bomb_costs_no_more_memory_than_the_bound(codec: Codec) -> None:
    if codec == Codec.SNAPPY:  # blocks that are right about their size, and too many of them
        block = snappy.compress(bytes(8 * MIB))
        bomb = bytes(compress(codec, b"")) + (struct.pack(">i", len(block)) + block) * 16
    else:
        bomb = bytes(compress(codec, bytes(128 * MIB), 1))
    refused, peak = refused_and_peak_bytes(codec, bomb, 32 * MIB)
    assert refused
    assert peak < (32 + 12) * MIB
    refused, peak = refused_and_peak_bytes(codec, bomb, 128 * MIB)
    assert not refused
    assert peak > 128 * MIB, "the measure must see what a larger bound costs"
