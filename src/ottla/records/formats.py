"""Batches of whichever format: what reads files must not care whether an old broker wrote them.

A message of format 0 or 1 counts as a batch; see `legacy` for what its header can say.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from ottla.model.limits import DECOMPRESSED_BYTES_MAX
from ottla.records import content, legacy
from ottla.records.batch import CRC_END, HEADER_BYTES, MAGIC, BatchHeader, Bytes, read_header
from ottla.records.content import Record
from ottla.records.crc import crc32c

BATCH_BYTES_MIN = legacy.SMALLEST_BYTES[0]
MAGIC_POSITION = 16

_SMALLEST_BYTES = (*legacy.SMALLEST_BYTES, HEADER_BYTES)  # by format


def header_at(data: Bytes, position: int = 0) -> BatchHeader | None:
    """The header of the batch that begins at `position`; None: no format begins so, or it is cut off.

    All of the batch need not be there.
    """
    left = len(data) - position
    if left < BATCH_BYTES_MIN:
        return None
    magic = data[position + MAGIC_POSITION]
    if magic > MAGIC or left < _SMALLEST_BYTES[magic]:
        return None
    header = read_header(data, position) if magic == MAGIC else legacy.read_legacy_header(data, position)
    return header if header.size >= _SMALLEST_BYTES[magic] else None


def scan(data: Bytes, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Positions and headers of the whole batches in `data`, up to the first thing that is none (a torn tail).

    Neither checksums nor offsets are looked at: the reader of a file knows which of them it doubts.
    """
    while True:
        header = header_at(data, position)
        if header is None or header.size > len(data) - position:
            return
        yield position, header
        position += header.size


def checksum(magic: int, data: Bytes, value: int = 0) -> int:
    """As format `magic` has it; `value` is that of the bytes before `data`."""
    return crc32c(data, value) if magic == MAGIC else zlib.crc32(data, value)


def checksum_start(magic: int) -> int:
    """Where in a batch the bytes begin that its checksum is of."""
    return CRC_END if magic == MAGIC else legacy.CRC_END


def verify_crc(data: Bytes, header: BatchHeader, position: int = 0) -> bool:
    """Whether the batch at `position`, all of which must be there, is what its checksum says."""
    start = position + checksum_start(header.magic)
    return checksum(header.magic, memoryview(data)[start : position + header.size]) == header.crc


def records_of(batch: Bytes, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> Iterator[Record]:
    """The records of one whole batch, decoded as they are asked for; CorruptRecords where that ends."""
    if len(batch) > MAGIC_POSITION and batch[MAGIC_POSITION] < MAGIC:
        return legacy.legacy_records_of(batch, decompressed_bytes_max=decompressed_bytes_max)
    return content.records_of(batch, decompressed_bytes_max=decompressed_bytes_max)
