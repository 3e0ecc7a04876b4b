"""The records of a batch in the form in which loops go over them: plain records of format 2.

Messages of formats 0 and 1 are shown in that form too, so that one loop decides for all of them.
"""

from __future__ import annotations

from ottla.model.limits import DECOMPRESSED_BYTES_MAX
from ottla.records import kernel_choice
from ottla.records.batch import HEADER_BYTES, MAGIC, BatchHeader, Bytes
from ottla.records.compression import decompress
from ottla.records.findings import CorruptRecords
from ottla.records.formats import records_of

_RECORD_BYTES_MIN = 7  # every field of a record takes a byte


def plain_records(header: BatchHeader, batch: memoryview) -> tuple[BatchHeader, Bytes]:
    """The records, and a header that fits them. CorruptRecords when there are none that could be read."""
    if header.magic < MAGIC:
        return _shown_as_records(header, batch)
    plain = decompress(header.codec, batch[HEADER_BYTES:], DECOMPRESSED_BYTES_MAX)
    if not 0 <= header.record_count * _RECORD_BYTES_MIN <= len(plain):
        raise broken(header, header.record_count, len(plain))
    return header, plain


def _shown_as_records(header: BatchHeader, message: memoryview) -> tuple[BatchHeader, Bytes]:
    records = tuple(records_of(message))
    try:
        base_offset = records[0].offset
        plain, last_delta, base_timestamp, _ = kernel_choice.record_kernel.encode_records(
            records, base_offset
        )
    except (ValueError, IndexError) as error:
        raise CorruptRecords(
            f"the message at offset {header.base_offset} holds no sound set: {error}"
        ) from error
    shown = header._replace(
        base_offset=base_offset,
        last_offset_delta=last_delta,
        base_timestamp=base_timestamp,
        record_count=len(records),
    )
    return shown, plain


def broken(header: BatchHeader, number: int, position: int) -> CorruptRecords:
    which = f"record {number}" if number >= 0 else "a record"
    return CorruptRecords(
        f"{which} of the batch at {header.base_offset}, whose checksum is right, breaks at byte {position}"
    )
