"""Kafka's five ways to compress a batch's records, by the number that its attributes carry.

Output is bounded before it is allocated: a few bytes of input may ask for gigabytes (CVE-2023-34455). Sizes
that the input declares are believed only as a first guess, and never above the bound.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from struct import Struct

import cramjam

from ottla.model.limits import KIB, MIB
from ottla.records.findings import CorruptRecords

Bytes = bytes | bytearray | memoryview


class Codec(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


CODEC_NAMES = {codec.name.lower(): codec for codec in Codec}
"""By the names that `compression.type` knows ("producer" is no codec: it means whatever comes)."""

_FIRST_GUESS_BYTES_MIN = 64 * KIB
_FIRST_GUESS_RATIO = 4
_GROWTH = 4  # tries after a wrong guess start anew, so few large steps are cheaper than many small ones

_TOO_SMALL = "failed to write whole buffer"  # Rust's words for it; everything else is broken input

_SNAPPY_BLOCK_BYTES = 32 * KIB  # what snappy-java writes
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK = Struct(">i")

_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_CONTENT_SIZE_FLAG = 0x08
_LZ4_LEVEL_DEFAULT = 9  # Kafka's number for "fast"; liblz4's own is 0
_LZ4_LEVEL_HIGH_MIN = 3
_LZ4_LEVEL_MAX = 12

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_WINDOW_BYTES_ALWAYS = 8 * MIB
"""RFC 8878 asks every decoder for it; a larger window must fit the bound. libzstd itself stops at 128 MiB."""


def decompress(codec: int, data: Bytes, bytes_max: int) -> Bytes:
    """The plain bytes of `data`; CorruptRecords if that fails or needs more than `bytes_max` of them."""
    if codec == Codec.NONE:
        _check_bound(len(data), bytes_max)
        return data
    if codec == Codec.SNAPPY:
        return _decompress_snappy(memoryview(data), bytes_max)
    if codec == Codec.GZIP:
        return _decompress_growing(cramjam.gzip.decompress_into, data, bytes_max, _gzip_size(data))
    if codec == Codec.LZ4:
        return _decompress_growing(cramjam.lz4.decompress_into, data, bytes_max, _lz4_size(data, bytes_max))
    if codec == Codec.ZSTD:
        return _decompress_growing(cramjam.zstd.decompress_into, data, bytes_max, _zstd_size(data, bytes_max))
    raise CorruptRecords(f"no compression type has the number {codec}")


def compress(codec: int, data: Bytes, level: int | None = None) -> Bytes:
    """`data` as Kafka's own clients would compress it; `level` as in `compression.<codec>.level`."""
    if codec == Codec.NONE:
        return data
    if codec == Codec.GZIP:
        return memoryview(cramjam.gzip.compress(data, None if level == -1 else level))
    if codec == Codec.SNAPPY:
        return _compress_snappy(memoryview(data))
    if codec == Codec.LZ4:
        return _compress_lz4(data, _LZ4_LEVEL_DEFAULT if level is None else level)
    if codec == Codec.ZSTD:
        return memoryview(cramjam.zstd.compress(data, level))
    raise ValueError(f"no compression type has the number {codec}")


def _check_bound(size: int, bytes_max: int) -> None:
    if size > bytes_max:
        raise CorruptRecords(f"the records have {size} bytes, more than {bytes_max} are not decompressed")


def _decompress_growing(
    decompress_into: Callable[[Bytes, bytearray], int], data: Bytes, bytes_max: int, first_guess: int | None
) -> memoryview:
    """Tries with a buffer of the guessed size, then with larger ones up to `bytes_max`."""
    if first_guess is None:
        first_guess = max(_FIRST_GUESS_BYTES_MIN, _FIRST_GUESS_RATIO * len(data))
    size = min(first_guess, bytes_max)
    while True:
        room = bytearray(size)
        try:
            return memoryview(room)[: decompress_into(data, room)]
        except cramjam.DecompressionError as error:
            if _TOO_SMALL not in str(error):
                raise CorruptRecords(f"decompression failed: {error}") from error
            if size == bytes_max:
                raise CorruptRecords(f"more than {bytes_max} bytes are not decompressed") from error
        del room  # before the next one is there: the bound holds for both together
        size = min(max(size * _GROWTH, _FIRST_GUESS_BYTES_MIN), bytes_max)


def _gzip_size(data: Bytes) -> int | None:
    """The last member's size as its trailer says, when deflate could reach it at all (1032:1)."""
    size = int.from_bytes(data[-4:], "little")
    return size if 0 < size <= 1032 * len(data) else None


def _lz4_size(data: Bytes, bytes_max: int) -> int | None:
    """The size that the frame declares, if it does."""
    if len(data) < 14 or data[:4] != _LZ4_MAGIC or not data[4] & _LZ4_CONTENT_SIZE_FLAG:
        return None
    size = int.from_bytes(data[6:14], "little")
    _check_bound(size, bytes_max)
    return size


def _zstd_size(data: Bytes, bytes_max: int) -> int | None:
    """The size that the first frame declares, if it does; also refuses a window that is a bomb of its own."""
    if len(data) < 6 or data[:4] != _ZSTD_MAGIC:
        return None
    descriptor = data[4]
    single_segment = bool(descriptor & 0x20)
    position = 5
    if not single_segment:
        window_base = 1 << (10 + (data[5] >> 3))
        window = window_base + window_base // 8 * (data[5] & 7)
        if window > max(bytes_max, _ZSTD_WINDOW_BYTES_ALWAYS):
            raise CorruptRecords(
                f"zstd asks for a window of {window} bytes to decompress at most {bytes_max}"
            )
        position = 6
    position += (0, 1, 2, 4)[descriptor & 0x03]  # dictionary id
    size_bytes = (int(single_segment), 2, 4, 8)[descriptor >> 6]
    if size_bytes == 0 or len(data) < position + size_bytes:
        return None
    size = int.from_bytes(data[position : position + size_bytes], "little") + (256 if size_bytes == 2 else 0)
    _check_bound(size, bytes_max)
    return size


def _decompress_snappy(data: memoryview, bytes_max: int) -> memoryview:
    """A raw snappy block, or many of them in snappy-java's framing."""
    blocks = _xerial_blocks(data) if data[:8] == _XERIAL_MAGIC else [data]
    try:
        sizes = [cramjam.snappy.decompress_raw_len(block) for block in blocks]
        _check_bound(sum(sizes), bytes_max)
        room = memoryview(bytearray(sum(sizes)))
        position = 0
        for block, size in zip(blocks, sizes, strict=True):
            cramjam.snappy.decompress_raw_into(block, room[position : position + size])
            position += size
    except cramjam.DecompressionError as error:
        raise CorruptRecords(f"decompression failed: {error}") from error
    return room


def _xerial_blocks(data: memoryview) -> list[memoryview]:
    if len(data) < len(_XERIAL_HEADER):
        raise CorruptRecords(f"{len(data)} bytes are no snappy stream")
    blocks = []
    position = len(_XERIAL_HEADER)
    while position < len(data):
        start = position + _XERIAL_BLOCK.size
        size = _XERIAL_BLOCK.unpack_from(data, position)[0] if start <= len(data) else -1
        if not 0 < size <= len(data) - start:
            raise CorruptRecords(f"no snappy block begins at byte {position} of {len(data)}")
        blocks.append(data[start : start + size])
        position = start + size
    return blocks


def _compress_snappy(data: memoryview) -> bytes:
    parts: list[Bytes] = [_XERIAL_HEADER]
    for position in range(0, len(data), _SNAPPY_BLOCK_BYTES):
        block = memoryview(cramjam.snappy.compress_raw(data[position : position + _SNAPPY_BLOCK_BYTES]))
        parts += (_XERIAL_BLOCK.pack(len(block)), block)
    return b"".join(parts)


def _compress_lz4(data: Bytes, level: int) -> memoryview:
    """One frame of independent blocks without content checksum: the Java client reads no other blocks."""
    fast = level == _LZ4_LEVEL_DEFAULT
    liblz4_level = 0 if fast else min(max(level, _LZ4_LEVEL_HIGH_MIN), _LZ4_LEVEL_MAX)
    stream = cramjam.lz4.Compressor(level=liblz4_level, content_checksum=False, block_linked=False)
    stream.compress(bytes(data))
    return memoryview(stream.finish())
