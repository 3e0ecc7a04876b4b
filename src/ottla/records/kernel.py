# mypy: disable-error-code="untyped-decorator,valid-type,name-defined,misc,no-any-return"
"""The loops over records: one source, compiled by Cython where a compiler is, plain Python where none is.

Cython builds it as `ottla.records._kernel`; `kernel_choice` picks. Both must give the same values and
the same faults for every input, which the tests hold against each other. Rules of this file:

- Every read is checked against an end first; a length from the peer is compared with what remains before use.
- A fault is a position, never a value that input could produce: functions below return `(-1, position)`.
- Functions marked `exceptval(check=False)` must not raise: they have no way to tell.
- No integer literal beyond 31 bits inside a function: compiled it would become a Python object.
- Uncompiled, nothing is coerced and nothing overflows, and a slice beyond the end is silently short.

A record: varint size of the rest, int8 attributes (unused), varlong timestamp delta, varint offset delta,
varint-sized key and value (negative: null), varint count of headers, each a varint-sized key and value.
"""

from __future__ import annotations

from typing import Any

from ottla.model.limits import ARRAY_ELEMENTS_MAX
from ottla.records.findings import Finding

try:
    import cython
except ModuleNotFoundError:  # uncompiled, and Cython is not there: its names are only decoration then
    from ottla.model import cython_shim as cython

if not cython.compiled:
    Long = int
    Octets = memoryview  # what is read
    Room = bytearray  # what is written to
else:  # the types, and what `kernel_compaction` uses of this file, are declared in _kernel.pxd
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING, PyByteArray_Resize
    from cython.cimports.libc.string import memcpy

INT32_MAX = cython.declare(cython.longlong, 0x7FFF_FFFF)
INT64_MAX = cython.declare(cython.longlong, 0x7FFF_FFFF_FFFF_FFFF)
INT64_MIN = cython.declare(cython.longlong, ~0x7FFF_FFFF_FFFF_FFFF)
HEADERS_MAX = cython.declare(cython.longlong, ARRAY_ELEMENTS_MAX)  # two bytes of input become 64 in memory
NO_TIMESTAMP = cython.declare(cython.longlong, -1)

MURMUR_SEED = cython.declare(cython.ulonglong, 0x9747B28C)
MURMUR_FACTOR = cython.declare(cython.ulonglong, 0x5BD1E995)
MASK_32 = cython.declare(cython.ulonglong, 0xFFFF_FFFF)

SOUND = cython.declare(cython.longlong, Finding.SOUND)
BROKEN = cython.declare(cython.longlong, Finding.BROKEN)
TRAILING = cython.declare(cython.longlong, Finding.TRAILING)
OFFSET_GAP = cython.declare(cython.longlong, Finding.OFFSET_GAP)
KEYLESS = cython.declare(cython.longlong, Finding.KEYLESS)

_as_tuple = tuple.__new__


def is_compiled() -> bool:
    return bool(cython.compiled)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def varint(p: Octets, pos: Long, end: Long) -> tuple[Long, Long]:
    """A zigzag int32 and the position after it, which is -1 for a fault."""
    value: Long = 0
    byte: Long
    shift: cython.int = 0
    while pos < end and shift < 28:
        byte = p[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), pos
        shift += 7
    if pos < end and p[pos] <= 0x0F:  # the fifth byte has four bits left
        byte = p[pos]
        value |= byte << 28
        return (value >> 1) ^ -(value & 1), pos + 1
    return 0, -1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def varlong(p: Octets, pos: Long, end: Long) -> tuple[Long, Long]:
    """A zigzag int64 and the position after it, which is -1 for a fault."""
    value: cython.ulonglong = 0
    byte: cython.ulonglong
    shift: cython.int = 0
    while pos < end and shift < 63:
        byte = p[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), pos
        shift += 7
    if pos < end and p[pos] <= 1:  # the tenth byte has one bit left
        byte = p[pos]
        value |= byte << 63
        return (value >> 1) ^ -(value & 1), pos + 1
    return 0, -1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _skip(p: Octets, pos: Long, end: Long) -> tuple[Long, Long]:
    """Size and position of what a varint says is here (size negative: null); position -1 for a fault."""
    size: Long
    size, pos = varint(p, pos, end)
    if pos < 0 or size > end - pos:
        return 0, -1
    return size, pos


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _headers_end(
    p: Octets,
    pos: Long,
    end: Long,
    count: Long,
) -> tuple[Long, Long]:
    """Position after `count` headers and where a fault is: one of the two is -1."""
    size: Long
    at: Long
    while count > 0:
        size, at = _skip(p, pos, end)
        if at < 0 or size < 0:
            return -1, pos
        pos = at + size
        size, at = _skip(p, pos, end)
        if at < 0:
            return -1, pos
        pos = at + size if size > 0 else at
        count -= 1
    return pos, -1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def record_at(
    p: Octets, pos: Long, end: Long
) -> tuple[
    Long,
    Long,
    Long,
    Long,
    Long,
    Long,
    Long,
    Long,
    Long,
]:
    """The parts of the record at `pos`, all of them inside of it, down to the last header.

    (end, timestamp delta, offset delta, key position, key size, value position, value size,
    position of the first header, count of headers); for a fault (-1, where, 0...).
    """
    timestamp_delta: Long
    offset_delta: Long
    key_at: Long
    key_size: Long
    value_at: Long
    value_size: Long
    headers_at: Long
    header_count: Long
    size: Long
    at: Long
    size, at = _skip(p, pos, end)
    if at < 0 or size < 1:
        return -1, pos, 0, 0, 0, 0, 0, 0, 0
    end = at + size
    pos = at + 1  # attributes: no bit of them has a meaning
    timestamp_delta, at = varlong(p, pos, end)
    if at < 0:
        return -1, pos, 0, 0, 0, 0, 0, 0, 0
    pos = at
    offset_delta, at = varint(p, pos, end)
    if at < 0:
        return -1, pos, 0, 0, 0, 0, 0, 0, 0
    pos = at
    key_size, key_at = _skip(p, pos, end)
    if key_at < 0:
        return -1, pos, 0, 0, 0, 0, 0, 0, 0
    pos = key_at + key_size if key_size > 0 else key_at
    value_size, value_at = _skip(p, pos, end)
    if value_at < 0:
        return -1, pos, 0, 0, 0, 0, 0, 0, 0
    pos = value_at + value_size if value_size > 0 else value_at
    header_count, headers_at = varint(p, pos, end)
    if headers_at < 0 or header_count < 0 or header_count > HEADERS_MAX:
        return -1, pos, 0, 0, 0, 0, 0, 0, 0
    pos, at = _headers_end(p, headers_at, end, header_count)
    if pos < 0:
        return -1, at, 0, 0, 0, 0, 0, 0, 0
    if pos != end:
        return -1, pos, 0, 0, 0, 0, 0, 0, 0
    return (
        end,
        timestamp_delta,
        offset_delta,
        key_at,
        key_size,
        value_at,
        value_size,
        headers_at,
        header_count,
    )


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def sum_fits(base: Long, delta: Long) -> cython.bint:
    """Whether base + delta is an int64 (compiled, the sum itself must not be tried)."""
    if delta >= 0:
        return base <= INT64_MAX - delta
    return base >= INT64_MIN - delta


def check_records(
    data: Any, count: Long, base_timestamp: Long, keys_needed: cython.bint
) -> tuple[int, int, int, int, int]:
    """Whether `data` is exactly `count` sound records with offsets 0, 1, 2 ..., and the range of timestamps.

    (finding, position, number of the record, earliest, latest); a record without a timestamp does not count
    for the range, and without any it is (INT64_MAX, -1).
    """
    view: cython.const[cython.uchar][::1] = memoryview(data)
    end: Long = view.shape[0]
    pos: Long = 0
    index: Long = 0
    earliest: Long = INT64_MAX
    latest: Long = NO_TIMESTAMP
    finding: Long = SOUND
    after: Long
    timestamp: Long
    offset_delta: Long
    key_size: Long
    if end == 0:
        return (BROKEN if count > 0 else SOUND), 0, 0, earliest, latest
    p: Octets = cython.address(view[0]) if cython.compiled else view
    with cython.nogil:
        while index < count:
            after, timestamp, offset_delta, _, key_size, _, _, _, _ = record_at(p, pos, end)
            if after < 0 or not sum_fits(base_timestamp, timestamp):
                finding = BROKEN
                pos = timestamp if after < 0 else pos
                break
            if offset_delta != index:
                finding = OFFSET_GAP
                break
            if keys_needed and key_size < 0:
                finding = KEYLESS
                break
            timestamp = base_timestamp + timestamp
            if timestamp != NO_TIMESTAMP:
                earliest = timestamp if timestamp < earliest else earliest
                latest = timestamp if timestamp > latest else latest
            pos = after
            index += 1
    if finding == SOUND and pos != end:
        finding = TRAILING
    return finding, pos, index, earliest, latest


@cython.cfunc
@cython.inline
def _piece(p: Octets, pos: Long, size: Long) -> object:
    """The bytes of a key or value, None for null."""
    if size < 0:
        return None
    return p[pos : pos + size] if cython.compiled else bytes(p[pos : pos + size])


@cython.cfunc
def _headers(
    p: Octets,
    pos: Long,
    end: Long,
    count: Long,
) -> object:
    """The headers of a record that record_at has found sound."""
    headers: list[Any] = []
    size: Long
    while count > 0:
        size, pos = varint(p, pos, end)
        key: Any = _piece(p, pos, size)
        pos += size
        size, pos = varint(p, pos, end)
        headers.append((key.decode("utf-8", "surrogateescape"), _piece(p, pos, size)))
        pos += size if size > 0 else 0
        count -= 1
    return tuple(headers)


def decode_records(
    data: Any,
    pos: Long,
    count: Long,
    base_offset: Long,
    base_timestamp: Long,
    append_time: Any,
    record_type: type[Any],
    origin: Any = (),
) -> tuple[list[Any], int, int]:
    """Up to `count` records from `pos`: the records, the position after them, and where a fault is or -1.

    `append_time` is every record's timestamp when it is not None; the fields of `origin` stand before those
    of every record. Records before a fault are returned.
    """
    prefix: tuple[Any, ...] = origin
    records: list[Any] = []
    view: cython.const[cython.uchar][::1] = memoryview(data)
    end: Long = view.shape[0]
    after: Long
    timestamp: Long
    offset_delta: Long
    key_at: Long
    key_size: Long
    value_at: Long
    value_size: Long
    headers_at: Long
    header_count: Long
    if pos >= end:
        return records, pos, (pos if count > 0 else -1)
    p: Octets = cython.address(view[0]) if cython.compiled else view
    while count > 0:
        (
            after,
            timestamp,
            offset_delta,
            key_at,
            key_size,
            value_at,
            value_size,
            headers_at,
            header_count,
        ) = record_at(p, pos, end)
        if after < 0:
            return records, pos, timestamp
        if not sum_fits(base_timestamp, timestamp) or not sum_fits(base_offset, offset_delta):
            return records, pos, pos
        fields: tuple[Any, ...] = (
            base_offset + offset_delta,
            base_timestamp + timestamp if append_time is None else append_time,
            _piece(p, key_at, key_size),
            _piece(p, value_at, value_size),
            () if header_count == 0 else _headers(p, headers_at, after, header_count),
        )
        records.append(_as_tuple(record_type, prefix + fields if prefix else fields))
        pos = after
        count -= 1
    return records, pos, -1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def zigzag_size(value: Long) -> Long:
    left: cython.ulonglong = value if value >= 0 else -(value + 1)
    size: Long = 1
    left >>= 6
    while left > 0:
        left >>= 7
        size += 1
    return size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def put_varint(p: Room, pos: Long, value: Long) -> Long:
    """Writes a zigzag varint; the caller has made room. Returns the position after it."""
    left: cython.ulonglong = value if value >= 0 else -(value + 1)
    left = left << 1 if value >= 0 else left << 1 | 1
    while left > 0x7F:
        p[pos] = left & 0x7F | 0x80
        left >>= 7
        pos += 1
    p[pos] = left
    return pos + 1


@cython.cfunc
@cython.inline
def _put_bytes(p: Room, pos: Long, data: bytes | None) -> Long:
    """Writes a varint size and the bytes; -1 alone for None. Returns the position after it."""
    if data is None:
        return put_varint(p, pos, -1)
    size: Long = len(data)
    pos = put_varint(p, pos, size)
    if cython.compiled:
        memcpy(p + pos, cython.cast(cython.pointer[cython.char], data), size)  # type: ignore[operator]
    else:
        p[pos : pos + size] = data
    return pos + size


@cython.cfunc
@cython.inline
def _sized(data: bytes | None) -> Long:
    """Bytes that _put_bytes writes."""
    if data is None:
        return 1
    return zigzag_size(len(data)) + len(data)


@cython.cfunc
@cython.inline
def start_of(out: bytearray) -> Room:
    """Where to write; only good until `out` grows."""
    return cython.cast(Room, PyByteArray_AS_STRING(out)) if cython.compiled else out


def encode_records(records: Any, base_offset: Long) -> tuple[bytearray, int, int, int]:
    """The bytes of `records` (tuples of offset, timestamp, key, value, headers), counted from `base_offset`.

    (bytes, last offset delta, first timestamp, largest one). Offsets must grow; a timestamp is -1 or more,
    and less than INT64_MAX, so that the difference of any two is an int64.
    """
    if base_offset < 0:
        raise ValueError(f"no batch starts at offset {base_offset}")
    out: bytearray = bytearray(256)
    capacity: Long = 256
    p: Room = start_of(out)
    pos: Long = 0
    base_timestamp: Long = NO_TIMESTAMP
    max_timestamp: Long = NO_TIMESTAMP
    last_delta: Long = -1
    offset: Long
    timestamp: Long
    delta: Long
    size: Long
    key: bytes | None
    value: bytes | None
    flat: list[Any] = []
    for offset, timestamp, key, value, headers in records:
        if offset < base_offset or timestamp < NO_TIMESTAMP or timestamp == INT64_MAX:
            raise ValueError(
                f"offset {offset}, timestamp {timestamp} in a batch that starts at {base_offset}"
            )
        delta = offset - base_offset
        if delta <= last_delta or delta > INT32_MAX:
            raise ValueError(f"offset {offset} does not fit behind {base_offset + last_delta}")
        if last_delta < 0:
            base_timestamp = timestamp
        last_delta = delta
        max_timestamp = timestamp if timestamp > max_timestamp else max_timestamp
        size = 1 + zigzag_size(timestamp - base_timestamp) + zigzag_size(delta) + _sized(key) + _sized(value)
        if headers or flat:
            flat = []
            for name, content in headers:
                flat.append(name.encode("utf-8", "surrogateescape"))
                flat.append(content)
            for part in flat:
                size += _sized(part)
        size += zigzag_size(len(flat) // 2)
        if size > INT32_MAX:
            raise ValueError(f"the record at offset {offset} has {size} bytes")
        if pos + 5 + size > capacity:
            capacity += capacity + size
            if cython.compiled:
                PyByteArray_Resize(out, capacity)  # fills nothing with zeros
            else:
                out.extend(bytes(capacity - len(out)))
            p = start_of(out)
        pos = put_varint(p, pos, size)
        p[pos] = 0
        pos = put_varint(p, pos + 1, timestamp - base_timestamp)
        pos = put_varint(p, pos, delta)
        pos = _put_bytes(p, pos, key)
        pos = _put_bytes(p, pos, value)
        pos = put_varint(p, pos, len(flat) // 2)
        for part in flat:
            pos = _put_bytes(p, pos, part)
    del out[pos:]
    return out, last_delta, base_timestamp, max_timestamp


def murmur2(key: bytes) -> int:
    """The hash by which Kafka's clients choose a partition, as unsigned 32 bits."""
    if cython.compiled:
        p: Octets = cython.cast(Octets, cython.cast(cython.pointer[cython.char], key))
    else:
        p = memoryview(key)
    return murmur2_at(p, 0, len(key))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def murmur2_at(p: Octets, pos: Long, size: Long) -> Long:
    """The same of `size` bytes from `pos`, which are there."""
    end: Long = pos + size
    hashed: cython.ulonglong = MURMUR_SEED ^ size
    part: cython.ulonglong
    first: cython.ulonglong
    second: cython.ulonglong
    third: cython.ulonglong
    fourth: cython.ulonglong
    while end - pos >= 4:
        first = p[pos]
        second = p[pos + 1]
        third = p[pos + 2]
        fourth = p[pos + 3]
        part = (first | second << 8 | third << 16 | fourth << 24) * MURMUR_FACTOR & MASK_32
        part = (part ^ part >> 24) * MURMUR_FACTOR & MASK_32
        hashed = (hashed * MURMUR_FACTOR & MASK_32) ^ part
        pos += 4
    if pos < end:
        part = 0
        while end > pos:
            end -= 1
            first = p[end]
            part = part << 8 | first
        hashed = (hashed ^ part) * MURMUR_FACTOR & MASK_32
    hashed = (hashed ^ hashed >> 13) * MURMUR_FACTOR & MASK_32
    return hashed ^ hashed >> 15
