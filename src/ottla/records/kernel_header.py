# mypy: disable-error-code="untyped-decorator,valid-type,name-defined,misc,no-any-return"
"""The check of a produced batch's header: one source, compiled or not, under the rules of `kernel`.

Every Produce pays it, also those of one record. It only names the first fault: `batch` knows the words.
Positions and bits are those of the table and the constants there, which cannot be imported from here.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

from ottla.records.crc import crc32c
from ottla.records.findings import Fault

try:
    import cython
except ModuleNotFoundError:  # uncompiled, and Cython is not there: its names are only decoration then
    from ottla.model import cython_shim as cython

if not cython.compiled:
    Long = int
    Octets = memoryview
else:
    from cython.cimports.cpython.buffer import Py_buffer, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer

NO_TIMESTAMP = cython.declare(cython.longlong, -1)

PASSED = cython.declare(cython.longlong, Fault.NONE)
NOT_ONE_BATCH = cython.declare(cython.longlong, Fault.NOT_ONE_BATCH)
ZSTD_TOO_EARLY = cython.declare(cython.longlong, Fault.ZSTD_TOO_EARLY)
BASE_OFFSET = cython.declare(cython.longlong, Fault.BASE_OFFSET)
TOO_LARGE = cython.declare(cython.longlong, Fault.TOO_LARGE)
WRONG_CRC = cython.declare(cython.longlong, Fault.CRC)
UNKNOWN_CODEC = cython.declare(cython.longlong, Fault.CODEC)
COUNT = cython.declare(cython.longlong, Fault.COUNT)
CONTROL = cython.declare(cython.longlong, Fault.CONTROL)
SEQUENCE = cython.declare(cython.longlong, Fault.SEQUENCE)
TIMESTAMP_TYPE = cython.declare(cython.longlong, Fault.TIMESTAMP_TYPE)
LZ4_BLOCKS = cython.declare(cython.longlong, Fault.LZ4_BLOCKS)
TIMESTAMP = cython.declare(cython.longlong, Fault.TIMESTAMP)

_unpack_header = Struct(">qiibIhiqqqhii").unpack_from


def is_compiled() -> bool:
    return bool(cython.compiled)


# Fields of any batch; `kernel_scan` reads by them too.


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def uint32(p: Octets, pos: Long) -> cython.uint:
    first: cython.uint = p[pos]
    second: cython.uint = p[pos + 1]
    third: cython.uint = p[pos + 2]
    fourth: cython.uint = p[pos + 3]
    return first << 24 | second << 16 | third << 8 | fourth


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def int32(p: Octets, pos: Long) -> Long:
    value: Long = uint32(p, pos)
    return value - ((value >> 31) << 32)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def int64(p: Octets, pos: Long) -> Long:
    return int32(p, pos) * 65536 * 65536 + uint32(p, pos + 4)


@cython.cfunc
def _header_fields(data: Any) -> tuple[Any, ...]:
    """The thirteen fields at the start of `data`; compiled, read one by one in half of struct's time."""
    if not cython.compiled:
        return _unpack_header(data)
    buffer = cython.declare(Py_buffer)
    PyObject_GetBuffer(data, cython.address(buffer), PyBUF_SIMPLE)
    p: Octets = cython.cast(Octets, buffer.buf)
    fields: tuple[Any, ...] = (
        int64(p, 0),
        int32(p, 8),
        int32(p, 12),
        int32(p, 16) >> 24,
        uint32(p, 17),
        int32(p, 21) >> 16,
        int32(p, 23),
        int64(p, 27),
        int64(p, 35),
        int64(p, 43),
        int32(p, 51) >> 16,
        int32(p, 53),
        int32(p, 57),
    )
    PyBuffer_Release(cython.address(buffer))
    return fields


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _timestamp_fits(timestamp: Long, now: Long, before_max: Long, after_max: Long) -> cython.bint:
    """Whether a topic takes it; no sum here can leave int64, as `now` and the bounds are not negative."""
    if timestamp > now:
        return timestamp - now <= after_max
    return timestamp >= now - before_max or timestamp == NO_TIMESTAMP


def check_header(
    records: Any,
    version: Long,
    bytes_max: Long,
    log_append_time: cython.bint,
    now: Long,
    before_max: Long,
    after_max: Long,
) -> tuple[int, Any]:
    """What forbids to append `records`, which Produce `version` brought, and their header's fields if they
    have one.

    The order of the checks is Kafka's.
    """
    size: Long = len(records)
    if size < 61:
        return NOT_ONE_BATCH, None
    fields: tuple[Any, ...] = _header_fields(records)
    base_offset: Long
    batch_length: Long
    magic: Long
    crc: Long
    attributes: Long
    last_offset_delta: Long
    base_timestamp: Long
    max_timestamp: Long
    producer_id: Long
    base_sequence: Long
    record_count: Long
    (
        base_offset,
        batch_length,
        _,
        magic,
        crc,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        _,
        base_sequence,
        record_count,
    ) = fields
    codec: Long = attributes & 0x07
    if magic != 2 or batch_length + 12 != size:
        return NOT_ONE_BATCH, fields
    if codec == 4 and version < 7:
        return ZSTD_TOO_EARLY, fields
    if base_offset != 0:
        return BASE_OFFSET, fields
    if size > bytes_max:
        return TOO_LARGE, fields
    if crc32c(records[21:]) != crc:
        return WRONG_CRC, fields
    if codec > 4:
        return UNKNOWN_CODEC, fields
    if record_count <= 0 or last_offset_delta != record_count - 1:
        return COUNT, fields
    if attributes & 0x20:
        return CONTROL, fields
    if producer_id >= 0 and base_sequence < 0:
        return SEQUENCE, fields
    if attributes & 0x08:
        return TIMESTAMP_TYPE, fields
    if codec == 3 and size > 66 and records[61:65] == b"\x04\x22\x4d\x18" and not records[65] & 0x20:
        return LZ4_BLOCKS, fields
    if not log_append_time and not (
        _timestamp_fits(base_timestamp, now, before_max, after_max)
        and _timestamp_fits(max_timestamp, now, before_max, after_max)
    ):
        return TIMESTAMP, fields
    return PASSED, fields
