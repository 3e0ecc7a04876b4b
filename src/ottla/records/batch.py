"""Record batch v2: its header, what a produced one must fulfil, and how the leader stamps it.

Nothing here looks at a record. The leader's check of a produced batch costs about one microsecond
and must stay so: every Produce pays it, also those of one record. What can only be known
by decoding (keys, the order of offsets, each record's own timestamp) is `content`'s work and done
for the topics that need it.

    base_offset         int64    0   given by the leader
    batch_length        int32    8   bytes that follow this field
    leader_epoch        int32   12   given by the leader
    magic               int8    16   2
    crc                 uint32  17   CRC32C of everything from attributes on
    attributes          int16   21
    last_offset_delta   int32   23
    base_timestamp      int64   27
    max_timestamp       int64   35
    producer_id         int64   43
    producer_epoch      int16   51
    base_sequence       int32   53
    record_count        int32   57
    records                     61   compressed as a whole when attributes say so
"""

from __future__ import annotations

from struct import Struct
from typing import Any

from ottla.model.errors import ErrorCode, Refused
from ottla.model.offsets import NO_SEQUENCE
from ottla.model.values import NamedTuple
from ottla.records import kernel_choice
from ottla.records.crc import crc32c
from ottla.records.findings import Fault

try:
    import cython
except ModuleNotFoundError:  # uncompiled, and Cython is not there: its names are only decoration then
    from ottla.model import cython_shim as cython

if cython.compiled:
    from cython.cimports.cpython.buffer import Py_buffer, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
    from cython.cimports.libc.string import memcpy

MAGIC = 2
HEADER_BYTES = 61
LENGTH_END = 12
"""base_offset and batch_length, which batch_length itself does not count."""

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40  # KIP-534: base_timestamp is the time from which the cleaner may drop tombstones
USED_ATTRIBUTES = 0x7F

_EPOCH_END = 16
CRC_END = 21
_LEGACY_LENGTH_MIN = 14  # the smallest batch_length of any format: an empty message of magic 0
_SEQUENCE_MODULUS = 1 << 31
_COPIED_BYTES_MAX = 4096

_unpack_header = Struct(">qiibIhiqqqhii").unpack_from
_LENGTH = Struct(">i")
_STAMP = Struct(">qii")
_UP_TO_CRC = Struct(">qiibI")
_AFTER_CRC = Struct(">hiqqqhii")
_as_tuple = tuple.__new__  # what NamedTuple._make does, without a Python call

Bytes = bytes | bytearray | memoryview


class BatchHeader(NamedTuple):
    """The 61 bytes before the records. A tuple, because one is made for every batch produced or recovered."""

    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return self.batch_length + LENGTH_END

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record: after 2^31 - 1 comes 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) % _SEQUENCE_MODULUS

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def has_producer(self) -> bool:
        return self.producer_id >= 0

    @property
    def delete_horizon_ms(self) -> int | None:
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None


class CheckedBatch:
    """A produced batch that may be appended; nothing in it has been changed yet.

    What every append asks of the header stands here once more: compiled these are numbers without an object.
    """

    __slots__ = (
        "_fields", "attributes", "body", "last_offset_delta", "max_timestamp", "producer_id", "record_count",
        "size",
    )  # fmt: skip

    def __init__(self, header: BatchHeader | tuple[Any, ...], body: bytes | memoryview) -> None:
        """The fields of the header may be a plain tuple."""
        self._fields = header
        self.body = body  # the whole batch as it was received, header included
        self.size = len(body)
        self.attributes = header[5]
        self.last_offset_delta = header[6]
        self.max_timestamp = header[8]
        self.producer_id = header[9]
        self.record_count = header[12]

    @property
    def header(self) -> BatchHeader:
        """Made when somebody asks: most batches without a producer's id are appended without."""
        if type(self._fields) is not BatchHeader:
            self._fields = _as_tuple(BatchHeader, self._fields)
        return self._fields

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CheckedBatch) and (self.header, self.body) == (other.header, other.body)

    __hash__ = None  # type: ignore[assignment]


class ProduceRules(NamedTuple):
    """What a topic's settings ask of a produced batch; made once per topic and setting change."""

    batch_bytes_max: int  # max.message.bytes
    timestamp_before_ms_max: int  # message.timestamp.before.max.ms
    timestamp_after_ms_max: int  # message.timestamp.after.max.ms
    log_append_time: bool  # message.timestamp.type: the producer's timestamps do not count
    keys_needed: bool = False  # cleanup.policy has compact
    codec: int | None = None  # compression.type; None is "producer"
    codec_level: int | None = None  # compression.<codec>.level

    @property
    def look_inside(self) -> bool:
        """Whether `content.check_content` has work to do, besides `check_produced`."""
        return self.keys_needed or self.codec is not None


def read_header(data: Bytes, position: int = 0) -> BatchHeader:
    """The header at `position`; the caller has made sure that HEADER_BYTES are there and that magic is 2."""
    return _as_tuple(BatchHeader, _unpack_header(data, position))


def header_bytes(header: BatchHeader, records: Bytes) -> bytes:
    """The bytes of `header` in front of `records`; their length and CRC are found here, not taken from it."""
    after_crc = _AFTER_CRC.pack(*header[5:])
    crc = crc32c(records, crc32c(after_crc))
    length = HEADER_BYTES - LENGTH_END + len(records)
    return _UP_TO_CRC.pack(header.base_offset, length, header.leader_epoch, MAGIC, crc) + after_crc


def check_produced(
    records: bytes | memoryview | None, version: int, rules: ProduceRules, now_ms: int
) -> CheckedBatch:
    """A partition's part of Produce `version`, if it may be appended; else Refused with Kafka's code.

    The checks and their order are those of Kafka's ProduceRequest, UnifiedLog and LogValidator as far as
    a header allows: only the first and the largest timestamp are seen, where Kafka looks at each. Stricter
    than Kafka: bytes after the batch are refused (Kafka drops them and acknowledges), and so is a batch that
    claims log append time, on every topic. Attribute bits without a meaning pass, as they do there.
    """
    if records is None:
        raise _not_one_batch(records)
    fault, fields = kernel_choice.header_kernel.check_header(
        records,
        version,
        rules.batch_bytes_max,
        rules.log_append_time,
        now_ms,
        rules.timestamp_before_ms_max,
        rules.timestamp_after_ms_max,
    )
    if fault:
        raise _refusal(fault, fields and BatchHeader(*fields), records, version, rules, now_ms)
    return CheckedBatch(fields, records)


def _refusal(
    fault: int,
    header: BatchHeader,
    records: bytes | memoryview,
    version: int,
    rules: ProduceRules,
    now_ms: int,
) -> Refused:
    """The answer to a fault that the kernel found."""
    match fault:
        case Fault.NOT_ONE_BATCH:
            return _not_one_batch(records)
        case Fault.ZSTD_TOO_EARLY:
            text = f"zstd needs Produce 7, this is Produce {version}"
            return Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, text)
        case Fault.BASE_OFFSET:
            text = f"a produced batch starts at offset 0, this one at {header.base_offset}"
        case Fault.TOO_LARGE:
            return too_large(header.size, rules.batch_bytes_max)
        case Fault.CRC:
            return Refused(ErrorCode.CORRUPT_MESSAGE, f"the batch's CRC is not {header.crc:#010x} as it says")
        case Fault.CODEC:
            # Kafka stumbles over it and answers UNKNOWN_SERVER_ERROR; this says what is wrong.
            text = f"no compression type has the number {header.codec}"
            return Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, text)
        case Fault.COUNT:
            text = f"{header.record_count} records do not fill offsets 0 to {header.last_offset_delta}"
        case Fault.CONTROL:
            text = "clients may not write control batches"
        case Fault.SEQUENCE:
            text = f"producer {header.producer_id} sent the sequence {header.base_sequence}"
        case Fault.TIMESTAMP_TYPE:
            return Refused(ErrorCode.INVALID_TIMESTAMP, "only the broker writes batches of log append time")
        case Fault.LZ4_BLOCKS:
            # Kafka decompresses here, cannot, and answers UNKNOWN_SERVER_ERROR; nor can Java consumers.
            text = "the blocks of its lz4 frame depend on each other; compress with independent blocks"
        case _:
            return bad_timestamp(header.base_timestamp, header.max_timestamp, rules, now_ms)
    return Refused(ErrorCode.INVALID_RECORD, text)


def bad_timestamp(first: int, last: int, rules: ProduceRules, now_ms: int) -> Refused:
    earliest = now_ms - rules.timestamp_before_ms_max
    latest = now_ms + rules.timestamp_after_ms_max
    text = f"timestamps from {first} to {last} are not all between {earliest} and {latest}"
    return Refused(ErrorCode.INVALID_TIMESTAMP, text)


def stamp_all(
    batches: list[CheckedBatch], base_offset: int, leader_epoch: int, append_time_ms: int | None
) -> list[Bytes]:
    """The batches as they are written, one behind the other from `base_offset` on.

    Small neighbours are copied into one piece: a system call takes longer for each piece than that.
    """
    chunks: list[Bytes] = []
    run: list[CheckedBatch] = []
    run_offset = base_offset
    for batch in batches:
        if batch.size > _COPIED_BYTES_MAX or append_time_ms is not None:
            if run:
                chunks.append(_join(run, run_offset, leader_epoch))
                run = []
            chunks += stamp(batch, base_offset, leader_epoch, append_time_ms)
        else:
            if not run:
                run_offset = base_offset
            run.append(batch)
        base_offset += batch.last_offset_delta + 1
    if run:
        chunks.append(_join(run, run_offset, leader_epoch))
    return chunks


def _join(run: list[CheckedBatch], base_offset: int, leader_epoch: int) -> bytes:
    if cython.compiled:
        size = 0
        for batch in run:
            size += batch.size
        joined = PyBytes_FromStringAndSize(cython.NULL, size)
        room = cython.cast("unsigned char *", PyBytes_AS_STRING(joined))
        buffer = cython.declare(Py_buffer)
        for batch in run:
            PyObject_GetBuffer(batch.body, cython.address(buffer), PyBUF_SIMPLE)
            memcpy(room, buffer.buf, batch.size)
            PyBuffer_Release(cython.address(buffer))
            _put_int32(room, base_offset >> 32)
            _put_int32(room + 4, base_offset)
            _put_int32(room + 12, leader_epoch)  # LENGTH_END, which is no C number
            room += batch.size
            base_offset += batch.last_offset_delta + 1
        return joined  # type: ignore[no-any-return]
    parts: list[Bytes] = []
    for batch in run:
        parts += stamp(batch, base_offset, leader_epoch)
        base_offset += batch.last_offset_delta + 1
    return b"".join(parts)


def _put_int32(room: bytearray, value: int) -> None:
    room[0] = value >> 24 & 0xFF
    room[1] = value >> 16 & 0xFF
    room[2] = value >> 8 & 0xFF
    room[3] = value & 0xFF


def stamp(
    batch: CheckedBatch, base_offset: int, leader_epoch: int, append_time_ms: int | None = None
) -> list[bytes | memoryview]:
    """The batch as it is written: a new beginning, and the rest as it was received, uncopied.

    With `append_time_ms` it becomes one of log append time: Kafka sets the timestamp type and max_timestamp,
    leaves base_timestamp and the records alone, and makes the CRC anew.
    """
    header, body = batch.header, memoryview(batch.body)
    if append_time_ms is None:
        return [_STAMP.pack(base_offset, header.batch_length, leader_epoch), body[_EPOCH_END:]]
    records = body[HEADER_BYTES:]
    attributes = header.attributes & USED_ATTRIBUTES | LOG_APPEND_TIME
    begin = (base_offset, 0, leader_epoch, MAGIC, 0, attributes)
    stamped = BatchHeader(*begin, *header[6:8], append_time_ms, *header[9:])
    return [header_bytes(stamped, records), records]


def _not_one_batch(records: bytes | memoryview | None) -> Refused:
    """Why `records` is not exactly one batch of magic 2."""
    if records is None or len(records) < LENGTH_END:
        return Refused(ErrorCode.INVALID_RECORD, "the request brings no batch for this partition")
    (batch_length,) = _LENGTH.unpack_from(records, 8)
    if batch_length < _LEGACY_LENGTH_MIN:
        return Refused(ErrorCode.CORRUPT_MESSAGE, f"a batch cannot have the length {batch_length}")
    size = batch_length + LENGTH_END
    magic = records[_EPOCH_END] if len(records) > _EPOCH_END else MAGIC
    if magic > MAGIC:
        return Refused(ErrorCode.CORRUPT_MESSAGE, f"no message format has the number {magic}")
    if size > len(records):
        return Refused(ErrorCode.INVALID_RECORD, f"of a batch of {size} bytes only {len(records)} arrived")
    if magic < MAGIC:
        return Refused(
            ErrorCode.INVALID_RECORD,
            f"message format {magic} is too old; record batches of format 2 are taken",
        )
    if size < len(records):
        return Refused(
            ErrorCode.INVALID_RECORD, "a partition takes exactly one batch per request; more bytes follow it"
        )
    return Refused(ErrorCode.CORRUPT_MESSAGE, f"a batch has at least {HEADER_BYTES} bytes, this one {size}")


def too_large(size: int, size_max: int) -> Refused:
    return Refused(
        ErrorCode.MESSAGE_TOO_LARGE, f"the batch has {size} bytes, max.message.bytes is {size_max}"
    )
