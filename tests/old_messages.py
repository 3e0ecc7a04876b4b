"""Message sets of formats 0 and 1 as old brokers stored them, made by kafka-python's own writer.

A producer's set is not what the broker kept: it gave a compressed set the offset of its last message, and the
largest timestamp of its messages; in format 0 it wrote the messages' real offsets inside.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

from compat.clients.kafka_package import LegacyRecordBatchBuilder
from ottla.records.compression import Codec
from ottla.records.content import Record

OLD_FORMATS = (0, 1)
OLD_CODECS = (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)

_APPEND_TIME = 0x08


def old_set(
    records: Sequence[Record], magic: int, codec: int = Codec.NONE, *, append_time_ms: int | None = None
) -> bytes:
    base = records[0].offset if magic and codec else 0
    builder = LegacyRecordBatchBuilder(magic=magic, compression_type=int(codec), batch_size=1 << 30)
    for record in records:
        timestamp = record.timestamp if magic else None
        assert builder.append(record.offset - base, timestamp, record.key, record.value) is not None
    stored = bytearray(builder.build())
    if codec:
        newest = max(record.timestamp for record in records)
        _finish(stored, records[-1].offset, magic, newest, append_time_ms)
    return bytes(stored)


def _finish(message: bytearray, offset: int, magic: int, timestamp: int, append_time_ms: int | None) -> None:
    """What the broker wrote into the compressed message it had received."""
    struct.pack_into(">q", message, 0, offset)
    if magic:
        struct.pack_into(">q", message, 18, timestamp if append_time_ms is None else append_time_ms)
        message[17] |= 0 if append_time_ms is None else _APPEND_TIME
    struct.pack_into(">I", message, 12, zlib.crc32(message[16:]))


def as_kept(records: Sequence[Record], magic: int) -> list[Record]:
    """What an old format can keep of them."""
    return [record._replace(timestamp=record.timestamp if magic else -1, headers=()) for record in records]
