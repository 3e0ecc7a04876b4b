"""The records inside a batch: reading, checking, building, and compressing them anew.

The broker looks inside only for topics that need it (`check_content`); everything else is for tools, clients
and the broker's own logs. Input may be hostile also where its checksum is right: whatever it holds ends in
CorruptRecords (readers) or Refused (Produce), and memory stays within the caller's bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ottla.model.errors import ErrorCode, Refused
from ottla.model.limits import DECOMPRESSED_BYTES_MAX
from ottla.model.offsets import NO_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from ottla.model.values import NamedTuple
from ottla.records import kernel_choice
from ottla.records.batch import (
    CODEC_MASK,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    MAGIC,
    BatchHeader,
    Bytes,
    CheckedBatch,
    ProduceRules,
    bad_timestamp,
    header_bytes,
    read_header,
    too_large,
)
from ottla.records.compression import Codec, compress, decompress
from ottla.records.findings import CorruptRecords, Finding

_DECODED_AT_ONCE = 256
"""Records that `records_of` holds as objects: one of seven bytes takes two hundred as an object."""


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    """Names that are not UTF-8 keep their bytes by surrogateescape."""


RecordFields = tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]
"""A Record, or a tuple like one."""


def records_of(batch: Bytes, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> Iterator[Record]:
    """The records of one whole batch, decoded as they are asked for; CorruptRecords where that ends."""
    header = _header_of(batch)
    if header.record_count == 0:  # the cleaner keeps such batches for their producer's sequence
        return
    records = decompress(header.codec, memoryview(batch)[HEADER_BYTES:], decompressed_bytes_max)
    append_time = header.max_timestamp if header.is_log_append_time else None
    position = 0
    left = header.record_count
    while left > 0:
        decoded, position, fault = kernel_choice.record_kernel.decode_records(
            records,
            position,
            min(left, _DECODED_AT_ONCE),
            header.base_offset,
            header.base_timestamp,
            append_time,
            Record,
        )
        yield from decoded
        left -= len(decoded)
        if fault >= 0:
            number = header.record_count - left
            raise CorruptRecords(
                f"record {number} of the batch at {header.base_offset} breaks at byte {fault}"
            )
    if position != len(records):
        raise CorruptRecords(f"bytes follow the last record of the batch at {header.base_offset}")


def build_batch(
    records: Iterable[RecordFields],
    *,
    base_offset: int = 0,
    codec: int = Codec.NONE,
    level: int | None = None,
    flags: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    append_time_ms: int | None = None,
) -> bytes:
    """A batch of `records`, offsets growing from `base_offset`; `flags` are attributes besides the codec."""
    records = tuple(records)
    if not records:
        raise ValueError("a batch needs a record")
    plain, last_offset_delta, base_timestamp, max_timestamp = kernel_choice.record_kernel.encode_records(
        records, base_offset
    )
    body = compress(codec, plain, level)
    if append_time_ms is not None:
        flags |= LOG_APPEND_TIME
        max_timestamp = append_time_ms
    header = BatchHeader(
        base_offset=base_offset,
        batch_length=0,
        leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=flags | codec,
        last_offset_delta=last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(records),
    )
    return b"".join((header_bytes(header, body), body))


def check_content(
    batch: CheckedBatch,
    rules: ProduceRules,
    now_ms: int,
    *,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> CheckedBatch:
    """What `check_produced` let through, with its records looked at and in the topic's codec; or Refused.

    For topics whose rules say `look_inside`. As in Kafka, a wrong max_timestamp in the header is put right.
    Records with wrong offsets inside are refused, where Kafka numbers some of them anew for old clients.
    """
    header = batch.header
    codec = header.codec if rules.codec is None else rules.codec
    if codec == header.codec and not rules.keys_needed:
        return batch
    try:
        plain = decompress(header.codec, batch.body[HEADER_BYTES:], decompressed_bytes_max)
        latest = _check_records(plain, header, rules, now_ms)
    except CorruptRecords as error:
        raise Refused(ErrorCode.INVALID_RECORD, str(error)) from error
    if codec == header.codec and latest == header.max_timestamp:
        return batch
    body = batch.body[HEADER_BYTES:] if codec == header.codec else compress(codec, plain, rules.codec_level)
    return _rewritten(header, codec, latest, body, rules.batch_bytes_max)


def recompress(
    batch: Bytes,
    codec: int,
    level: int | None = None,
    *,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> bytes:
    """The same records, unread, in another codec; only length, CRC and codec change in the header."""
    header = _header_of(batch)
    plain = decompress(header.codec, memoryview(batch)[HEADER_BYTES:], decompressed_bytes_max)
    body = compress(codec, plain, level)
    header = header._replace(attributes=header.attributes & ~CODEC_MASK | codec)
    return b"".join((header_bytes(header, body), body))


def _header_of(batch: Bytes) -> BatchHeader:
    """The header of a batch that the caller holds as a whole."""
    if len(batch) < HEADER_BYTES:
        raise CorruptRecords(f"{len(batch)} bytes are no batch")
    header = read_header(batch)
    if header.magic != MAGIC or header.size != len(batch) or header.record_count < 0:
        raise CorruptRecords(
            f"no batch of format {MAGIC} in {len(batch)} bytes: format {header.magic}, "
            f"{header.size} bytes, {header.record_count} records"
        )
    return header


def _check_records(plain: Bytes, header: BatchHeader, rules: ProduceRules, now_ms: int) -> int:
    """Refuses records that do not fit header and rules; the largest timestamp."""
    finding, position, number, earliest, latest = kernel_choice.record_kernel.check_records(
        plain, header.record_count, header.base_timestamp, rules.keys_needed
    )
    if finding == Finding.KEYLESS:
        text = f"record {number} has no key, and the topic is compacted"
    elif finding == Finding.OFFSET_GAP:
        text = f"the offset of record {number} is not {number}"
    elif finding == Finding.TRAILING:
        text = f"bytes follow the last record from {position} on"
    elif finding == Finding.BROKEN:
        text = f"record {number} is broken at byte {position}"
    else:
        in_bounds = (
            earliest >= now_ms - rules.timestamp_before_ms_max
            and latest <= now_ms + rules.timestamp_after_ms_max
        )
        if not rules.log_append_time and not in_bounds:
            raise bad_timestamp(earliest, latest, rules, now_ms)
        return latest
    raise Refused(ErrorCode.INVALID_RECORD, text)


def _rewritten(
    header: BatchHeader, codec: int, max_timestamp: int, body: Bytes, batch_bytes_max: int
) -> CheckedBatch:
    size = HEADER_BYTES + len(body)
    if size > batch_bytes_max:
        raise too_large(size, batch_bytes_max)
    attributes = header.attributes & ~CODEC_MASK | codec
    header = header._replace(attributes=attributes, max_timestamp=max_timestamp)
    written = memoryview(b"".join((header_bytes(header, body), body)))
    return CheckedBatch(read_header(written), written)
