"""Messages of formats 0 and 1, as brokers before Kafka 0.11 wrote them. Old files hold them; nobody may send
them any more.

    offset       int64    0   of a compressed set: that of its last message
    size         int32    8   bytes that follow this field
    crc          uint32  12   CRC-32 (not CRC32C) of everything from magic on
    magic        int8    16   0 or 1
    attributes   int8    17   codec; in format 1 also whether timestamp is the broker's
    timestamp    int64   18   format 1 only
    key          int32 and bytes, -1 for null
    value        int32 and bytes, -1 for null

A compressed message holds a set of messages as its value: with their real offsets in format 0, counted
from the first one's in format 1 (KIP-31). Where its messages begin is known only by decompressing it, so
the header of one says no more than its last offset.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from struct import Struct

from ottla.model.limits import DECOMPRESSED_BYTES_MAX
from ottla.model.offsets import (
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
)
from ottla.model.values import NamedTuple
from ottla.records.batch import CODEC_MASK, LENGTH_END, LOG_APPEND_TIME, BatchHeader, Bytes
from ottla.records.compression import Codec, compress, decompress
from ottla.records.content import Record
from ottla.records.findings import CorruptRecords
from ottla.records.lz4_descriptor import with_old_checksum, with_right_checksum

CRC_END = 16
SMALLEST_BYTES = (26, 34)  # by format: no key, no value
UNKNOWN_COUNT = -1

_HEAD = Struct(">qiIbb")
_TIMESTAMP = Struct(">q")
_SIZE = Struct(">i")
_ATTRIBUTES_USED = (CODEC_MASK, CODEC_MASK | LOG_APPEND_TIME)  # by format


class _Message(NamedTuple):
    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def read_legacy_header(data: Bytes, position: int) -> BatchHeader:
    """A message as if it were a batch; the caller has made sure that SMALLEST_BYTES are there.

    Both offsets are that of the last message in it. `record_count` of a compressed one is UNKNOWN_COUNT.
    """
    offset, size, crc, magic, attributes = _HEAD.unpack_from(data, position)
    attributes &= _ATTRIBUTES_USED[magic]
    timestamp = _TIMESTAMP.unpack_from(data, position + _HEAD.size)[0] if magic else NO_TIMESTAMP
    return BatchHeader(
        base_offset=offset,
        batch_length=size,
        leader_epoch=NO_LEADER_EPOCH,
        magic=magic,
        crc=crc,
        attributes=attributes,
        last_offset_delta=0,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        record_count=UNKNOWN_COUNT if attributes & CODEC_MASK else 1,
    )


def legacy_records_of(
    message: Bytes, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> Iterator[Record]:
    """The records of one whole message, with their real offsets; CorruptRecords where that ends."""
    outer, end = _read_message(message, 0)
    if end != len(message):
        raise CorruptRecords(f"a message of {end} bytes was expected, not of {len(message)}")
    if not outer.attributes & CODEC_MASK:
        yield _record(outer, outer.offset, outer.timestamp)
        return
    messages = _decompressed(outer, decompressed_bytes_max)
    base_offset = outer.offset - _last_offset(messages) if outer.magic and outer.offset else 0
    is_append_time = bool(outer.attributes & LOG_APPEND_TIME)
    position = 0
    while position < len(messages):
        inner, position = _read_message(messages, position)
        if inner.attributes & CODEC_MASK:
            raise CorruptRecords(f"a compressed message lies inside of the one at offset {outer.offset}")
        timestamp = outer.timestamp if is_append_time else inner.timestamp
        yield _record(inner, base_offset + inner.offset, timestamp)


def build_legacy(
    records: Sequence[Record], magic: int, codec: int = Codec.NONE, *, append_time_ms: int | None = None
) -> bytes:
    """`records` in an old format: a message for each, or one compressed message for all of them.

    Headers cannot be kept, and no timestamps in format 0. With `append_time_ms` they are of log append time.
    """
    flags = 0 if append_time_ms is None or magic == 0 else LOG_APPEND_TIME
    timestamps = [record.timestamp if append_time_ms is None else append_time_ms for record in records]
    if codec == Codec.NONE:
        return b"".join(
            _message_bytes(magic, flags, record.offset, timestamp, record.key, record.value)
            for record, timestamp in zip(records, timestamps, strict=True)
        )
    if codec == Codec.ZSTD:
        raise ValueError("the old formats know no zstd")
    base_offset = records[0].offset if magic else 0
    inner = b"".join(
        _message_bytes(magic, 0, record.offset - base_offset, timestamp, record.key, record.value)
        for record, timestamp in zip(records, timestamps, strict=True)
    )
    value = bytes(compress(codec, inner))
    if magic == 0 and codec == Codec.LZ4:
        value = with_old_checksum(value)
    return _message_bytes(magic, flags | codec, records[-1].offset, max(timestamps), None, value)


def _read_message(data: Bytes, position: int) -> tuple[_Message, int]:
    """The message at `position` and where it ends."""
    left = len(data) - position
    if left < SMALLEST_BYTES[0]:
        raise CorruptRecords(f"{left} bytes are no message")
    offset, size, _, magic, attributes = _HEAD.unpack_from(data, position)
    end = position + LENGTH_END + size
    if magic not in (0, 1) or end > len(data) or size + LENGTH_END < SMALLEST_BYTES[magic]:
        raise CorruptRecords(f"magic {magic} and size {size} are no message")
    at = position + _HEAD.size
    timestamp = NO_TIMESTAMP
    if magic:
        (timestamp,) = _TIMESTAMP.unpack_from(data, at)
        at += _TIMESTAMP.size
    key, at = _read_bytes(data, at, end)
    value, at = _read_bytes(data, at, end)
    if at != end:
        raise CorruptRecords(f"bytes follow the value of the message at offset {offset}")
    return _Message(offset, magic, attributes & _ATTRIBUTES_USED[magic], timestamp, key, value), end


def _read_bytes(data: Bytes, position: int, end: int) -> tuple[bytes | None, int]:
    start = position + _SIZE.size
    size = _SIZE.unpack_from(data, position)[0] if start <= end else -2
    if size == -1:
        return None, start
    if not 0 <= size <= end - start:
        raise CorruptRecords(f"a key or value of {size} bytes does not fit into its message")
    return bytes(data[start : start + size]), start + size


def _decompressed(outer: _Message, bytes_max: int) -> Bytes:
    codec = outer.attributes & CODEC_MASK
    if outer.value is None or codec == Codec.ZSTD:
        raise CorruptRecords(f"nothing to decompress in the message at offset {outer.offset}")
    value = with_right_checksum(outer.value) if codec == Codec.LZ4 and outer.magic == 0 else outer.value
    messages = decompress(codec, value, bytes_max)
    if not len(messages):
        raise CorruptRecords(f"the compressed message at offset {outer.offset} holds nothing")
    return messages


def _last_offset(messages: Bytes) -> int:
    """As the last message of the set has it."""
    position = last = 0
    while position + LENGTH_END <= len(messages):
        last = position
        (size,) = _SIZE.unpack_from(messages, position + _TIMESTAMP.size)
        if size < 0:
            raise CorruptRecords(f"size {size} is no message")
        position += LENGTH_END + size
    offset: int = _TIMESTAMP.unpack_from(messages, last)[0]
    return offset


def _record(message: _Message, offset: int, timestamp: int) -> Record:
    return Record(offset, timestamp, message.key, message.value)


def _message_bytes(
    magic: int, attributes: int, offset: int, timestamp: int, key: bytes | None, value: bytes | None
) -> bytes:
    body = b"".join(
        (
            bytes((magic, attributes)),
            _TIMESTAMP.pack(timestamp) if magic else b"",
            *(part for field in (key, value) for part in _sized(field)),
        )
    )
    return _HEAD.pack(offset, len(body) + 4, zlib.crc32(body), 0, 0)[:CRC_END] + body


def _sized(field: bytes | None) -> tuple[bytes, bytes]:
    return (_SIZE.pack(-1), b"") if field is None else (_SIZE.pack(len(field)), field)
