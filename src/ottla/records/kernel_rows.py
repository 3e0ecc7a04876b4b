# mypy: disable-error-code="untyped-decorator,valid-type,name-defined,misc,no-any-return,no-redef"
"""Rows of Arrow columns into records: one source, compiled or not, under the rules of `kernel`.

`survey` looks at every row once: whether its buffers hold what they say, which partition it goes to. What it
let through, `encode` may trust. `rows` knows where the buffers come from.
"""

from __future__ import annotations

from typing import Any

from ottla.records.findings import RowFault

try:
    import cython
except ModuleNotFoundError:  # uncompiled, and Cython is not there: its names are only decoration then
    from ottla.model import cython_shim as cython

if not cython.compiled:
    from ottla.records.kernel import Long, Octets, Room, murmur2_at, put_varint, start_of, zigzag_size

    Int32s = memoryview
    Ends = memoryview
    Int64s = memoryview
else:
    from cython.cimports.cpython.bytearray import PyByteArray_Resize
    from cython.cimports.libc.string import memcpy
    from cython.cimports.ottla.records._kernel import (
        Long,
        Octets,
        Room,
        murmur2_at,
        put_varint,
        start_of,
        zigzag_size,
    )

    Int32s = cython.typedef(cython.pointer[cython.int])
    Ends = cython.typedef(cython.pointer[cython.const[cython.int]])
    Int64s = cython.typedef(cython.pointer[cython.const[cython.longlong]])

POSITIVE = cython.declare(cython.longlong, 0x7FFF_FFFF)
INT64_MAX = cython.declare(cython.longlong, 0x7FFF_FFFF_FFFF_FFFF)
NO_PARTITION = cython.declare(cython.longlong, -1)

NONE = cython.declare(cython.longlong, RowFault.NONE)
PARTITION = cython.declare(cython.longlong, RowFault.PARTITION)
TIMESTAMP = cython.declare(cython.longlong, RowFault.TIMESTAMP)
BUFFERS = cython.declare(cython.longlong, RowFault.BUFFERS)
HEADER_KEY = cython.declare(cython.longlong, RowFault.HEADER_KEY)


def is_compiled() -> bool:
    return bool(cython.compiled)


def new_room(size: Long) -> bytearray:
    """Memory to write to; compiled it is not cleared.

    It can grow by a byte without being moved, which `SpareRooms` makes use of.
    """
    out: bytearray = bytearray()
    if cython.compiled:
        PyByteArray_Resize(out, size + 1)
        PyByteArray_Resize(out, size)
    else:
        out.extend(bytes(size))
    return out


@cython.cclass
class Validity:
    """Which rows of a column are not null: a bit for each from `first_bit` on; without bits all are."""

    bits: Octets
    first_bit: Long
    has_bits: cython.bint
    view: cython.const[cython.uchar][::1]

    def __init__(self, bits: Any, first_bit: Long) -> None:
        self.has_bits = bits is not None
        self.first_bit = first_bit
        if bits is not None:
            self.view = bits
            self.bits = cython.address(self.view[0]) if cython.compiled else bits


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_null(validity: Validity, row: Long) -> cython.bint:
    at: Long
    if not validity.has_bits:
        return False
    at = validity.first_bit + row
    return not validity.bits[at >> 3] >> (at & 7) & 1


@cython.cclass
class BytesSource:
    """A column of bytes: row `i` is the data from `ends[i]` to `ends[i + 1]`."""

    ends: Ends
    data: Octets
    size: Long  # of the data
    valid: Validity
    ends_view: cython.const[cython.int][::1]
    data_view: cython.const[cython.uchar][::1]

    def __init__(self, ends: Any, data: Any, valid: Validity) -> None:
        """`data` has at least a byte, so that it has an address."""
        self.ends_view = ends
        self.data_view = data
        self.ends = cython.address(self.ends_view[0]) if cython.compiled else ends
        self.data = cython.address(self.data_view[0]) if cython.compiled else data
        self.size = len(data)
        self.valid = valid


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _size(source: BytesSource, row: Long) -> Long:
    """Bytes of the row, -1 for null."""
    start: Long = source.ends[row]
    if _is_null(source.valid, row):
        return -1
    return source.ends[row + 1] - start


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_sound(source: BytesSource, row: Long) -> cython.bint:
    start: Long = source.ends[row]
    end: Long = source.ends[row + 1]
    return start >= 0 and start <= end and end <= source.size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _size_bytes(size: Long) -> Long:
    """zigzag_size without a call for what is small."""
    if size < 0:
        return zigzag_size(size)
    return 1 if size < 64 else 2 if size < 8192 else zigzag_size(size)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_size(p: Room, pos: Long, value: Long) -> Long:
    """put_varint without a call for what is small."""
    if value < 0 or value >= 8192:
        return put_varint(p, pos, value)
    if value < 64:
        p[pos] = value << 1
        return pos + 1
    p[pos] = (value << 1) & 0x7F | 0x80
    p[pos + 1] = value >> 6
    return pos + 2


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put(source: BytesSource, row: Long, size: Long, p: Room, pos: Long) -> Long:
    """A varint size and the bytes; the caller has made room. Returns the position after it."""
    start: Long
    pos = _put_size(p, pos, size)
    if size <= 0:
        return pos
    start = source.ends[row]
    if cython.compiled:
        memcpy(p + pos, source.data + start, size)  # type: ignore[operator]
    else:
        p[pos : pos + size] = source.data[start : start + size]
    return pos + size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _sized(size: Long) -> Long:
    """Bytes that _put writes."""
    return 1 if size < 0 else _size_bytes(size) + size


@cython.cclass
class RowsSource:
    """The columns of records to be; those that are not there are None."""

    rows: Long
    now_ms: Long  # the timestamp of rows without one
    keys: BytesSource
    values: BytesSource
    has_keys: cython.bint
    has_values: cython.bint
    has_timestamps: cython.bint
    timestamps: Int64s
    timestamps_valid: Validity
    timestamps_view: cython.const[cython.longlong][::1]
    # Headers: row `i` has the pairs from `list_ends[i]` to `list_ends[i + 1]`.
    has_headers: cython.bint
    list_ends: Ends
    list_valid: Validity
    list_ends_view: cython.const[cython.int][::1]
    header_keys: BytesSource
    header_values: BytesSource
    header_count: Long

    def __init__(self, rows: Long, now_ms: Long, keys: Any, values: Any) -> None:
        self.rows = rows
        self.now_ms = now_ms
        self.has_keys = keys is not None
        self.has_values = values is not None
        self.has_timestamps = False
        self.has_headers = False
        self.keys = keys
        self.values = values

    def take_timestamps(self, timestamps: Any, valid: Validity) -> None:
        """In milliseconds, an int64 for each row."""
        self.has_timestamps = True
        self.timestamps_view = timestamps
        self.timestamps = cython.address(self.timestamps_view[0]) if cython.compiled else timestamps
        self.timestamps_valid = valid

    def take_headers(self, ends: Any, valid: Validity, keys: Any, values: Any, count: Long) -> None:
        self.has_headers = True
        self.list_ends_view = ends
        self.list_ends = cython.address(self.list_ends_view[0]) if cython.compiled else ends
        self.list_valid = valid
        self.header_keys = keys
        self.header_values = values
        self.header_count = count

    def survey(
        self, partitions: Any, given: Any, given_valid: Any, count: Long, by_key: cython.bint
    ) -> tuple[int, int, int]:
        """Fills `partitions` (int32 for each row) with where each row goes, -1 for those that may go
        anywhere.

        `given` has what the rows themselves say, where they say it (int32, or None). Gives the fault and the
        row of it, and how many bytes the largest record may take.
        """
        chosen: cython.int[::1] = partitions
        fault: Long = NONE
        row: Long = 0
        size: Long
        largest: Long = 0
        named: cython.const[cython.int][::1]
        has_named: cython.bint = given is not None
        named_valid: Validity = given_valid
        chosen_at: Int32s
        named_at: Ends
        if self.rows == 0:
            return NONE, 0, 0
        chosen_at = cython.address(chosen[0]) if cython.compiled else partitions
        if has_named:
            named = given
            named_at = cython.address(named[0]) if cython.compiled else given
        else:
            named_at = chosen_at
        with cython.nogil:
            while row < self.rows:
                fault = _fault_of(self, row)
                if fault != NONE:
                    break
                if has_named and not _is_null(named_valid, row):
                    chosen_at[row] = named_at[row]
                    if named_at[row] < 0 or named_at[row] >= count:
                        fault = PARTITION
                        break
                elif count == 1:
                    chosen_at[row] = 0
                elif by_key and self.has_keys and not _is_null(self.keys.valid, row):
                    size = _size(self.keys, row)
                    chosen_at[row] = (
                        murmur2_at(self.keys.data, self.keys.ends[row], size) & POSITIVE
                    ) % count
                else:
                    chosen_at[row] = NO_PARTITION
                size = _size_bound(self, row)
                largest = size if size > largest else largest
                row += 1
        return fault, row, largest

    def encode(
        self, order: Any, first: Long, end: Long, out: bytearray, pos: Long, pos_max: Long
    ) -> tuple[int, int, int, int, int]:
        """Writes the rows `order[first]` to `order[end - 1]` to `out` from `pos` to `pos_max`, if they fit.

        Gives the number of the first that was not written, the position after the last one, the first
        timestamp and the largest, and what the first one that had no room needs.
        """
        numbers: cython.const[cython.int][::1] = order
        encoded: tuple[Long, Long, Long, Long, Long]
        size: Long = min(len(out), pos_max)
        p: Room = start_of(out)
        at: Ends
        if first >= end:
            return first, pos, -1, -1, 0
        at = cython.address(numbers[0]) if cython.compiled else numbers
        with cython.nogil:
            if _has_values_only(self):
                encoded = _encode_values(self, at, first, end, p, pos, size)
            else:
                encoded = _encode(self, at, first, end, p, pos, size)
        return encoded


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _fault_of(source: RowsSource, row: Long) -> Long:
    """Whether the row can become a record."""
    first: Long
    end: Long
    timestamp: Long
    if source.has_keys and not _is_sound(source.keys, row):
        return BUFFERS
    if source.has_values and not _is_sound(source.values, row):
        return BUFFERS
    if source.has_timestamps and not _is_null(source.timestamps_valid, row):
        timestamp = source.timestamps[row]
        if timestamp < 0 or timestamp == INT64_MAX:
            return TIMESTAMP
    if source.has_headers and not _is_null(source.list_valid, row):
        first = source.list_ends[row]
        end = source.list_ends[row + 1]
        if first < 0 or end < first or end > source.header_count:
            return BUFFERS
        while first < end:
            if not _is_sound(source.header_keys, first) or not _is_sound(source.header_values, first):
                return BUFFERS
            if _is_null(source.header_keys.valid, first):
                return HEADER_KEY
            first += 1
    return NONE


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _headers_of(source: RowsSource, row: Long) -> tuple[Long, Long]:
    """The first header of the row, and how many it has."""
    first: Long
    if not source.has_headers or _is_null(source.list_valid, row):
        return 0, 0
    first = source.list_ends[row]
    return first, source.list_ends[row + 1] - first


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _size_bound(source: RowsSource, row: Long) -> Long:
    """Bytes that the record may take at the most."""
    header: Long
    count: Long
    size: Long = 36  # attributes, ten bytes of timestamp, and five varints of five bytes
    if source.has_keys and not _is_null(source.keys.valid, row):
        size += _size(source.keys, row)
    if source.has_values and not _is_null(source.values.valid, row):
        size += _size(source.values, row)
    if source.has_headers:
        header, count = _headers_of(source, row)
        while count > 0:
            size += _sized(_size(source.header_keys, header)) + _sized(_size(source.header_values, header))
            header += 1
            count -= 1
    return size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _record_size(source: RowsSource, row: Long, timestamp_delta: Long, offset_delta: Long) -> Long:
    """Bytes of the record behind its own size."""
    header: Long
    count: Long
    size: Long = 1 + _size_bytes(timestamp_delta) + _size_bytes(offset_delta)
    size += _sized(_size(source.keys, row)) if source.has_keys else 1
    size += _sized(_size(source.values, row)) if source.has_values else 1
    header, count = _headers_of(source, row)
    size += _size_bytes(count)
    while count > 0:
        size += _sized(_size(source.header_keys, header)) + _sized(_size(source.header_values, header))
        header += 1
        count -= 1
    return size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _has_values_only(source: RowsSource) -> cython.bint:
    """Whether every row is a value, and nothing else."""
    if source.has_keys or source.has_timestamps or source.has_headers or not source.has_values:
        return False
    return not source.values.valid.has_bits


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _encode_values(
    source: RowsSource, order: Ends, index: Long, end: Long, p: Room, pos: Long, room: Long
) -> tuple[Long, Long, Long, Long, Long]:
    """The same as `_encode` for rows that are values only, without asking each for what it does not have."""
    first: Long = index
    start: Long
    value_size: Long
    size: Long
    while index < end:
        start = source.values.ends[order[index]]
        value_size = source.values.ends[order[index] + 1] - start
        size = 4 + _size_bytes(index - first) + _size_bytes(value_size) + value_size
        if size + _size_bytes(size) > room - pos:
            return (
                index,
                pos,
                source.now_ms,
                -1 if index == first else source.now_ms,
                size + _size_bytes(size),
            )
        pos = _put_size(p, pos, size)
        p[pos] = 0  # attributes
        p[pos + 1] = 0  # the timestamp is the first one
        pos = _put_size(p, pos + 2, index - first)
        p[pos] = 1  # no key: -1 as zigzag
        pos = _put_size(p, pos + 1, value_size)
        if cython.compiled:
            memcpy(p + pos, source.values.data + start, value_size)  # type: ignore[operator]
        else:
            p[pos : pos + value_size] = source.values.data[start : start + value_size]
        pos += value_size
        p[pos] = 0  # no headers
        pos += 1
        index += 1
    return index, pos, source.now_ms, source.now_ms, 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _encode(
    source: RowsSource, order: Ends, index: Long, end: Long, p: Room, pos: Long, room: Long
) -> tuple[Long, Long, Long, Long, Long]:
    base_timestamp: Long = -1
    max_timestamp: Long = -1
    first: Long = index
    row: Long
    timestamp: Long
    size: Long
    header: Long
    count: Long
    while index < end:
        row = order[index]
        timestamp = source.now_ms
        if source.has_timestamps and not _is_null(source.timestamps_valid, row):
            timestamp = source.timestamps[row]
        if index == first:
            base_timestamp = timestamp
        size = _record_size(source, row, timestamp - base_timestamp, index - first)
        if size + _size_bytes(size) > room - pos:
            return index, pos, base_timestamp, max_timestamp, size + _size_bytes(size)
        max_timestamp = timestamp if timestamp > max_timestamp else max_timestamp
        pos = _put_size(p, pos, size)
        p[pos] = 0
        pos = _put_size(p, pos + 1, timestamp - base_timestamp)
        pos = _put_size(p, pos, index - first)
        pos = (
            _put(source.keys, row, _size(source.keys, row), p, pos)
            if source.has_keys
            else put_varint(p, pos, -1)
        )
        pos = (
            _put(source.values, row, _size(source.values, row), p, pos)
            if source.has_values
            else put_varint(p, pos, -1)
        )
        header, count = _headers_of(source, row)
        pos = _put_size(p, pos, count)
        while count > 0:
            pos = _put(source.header_keys, header, _size(source.header_keys, header), p, pos)
            pos = _put(source.header_values, header, _size(source.header_values, header), p, pos)
            header += 1
            count -= 1
        index += 1
    return index, pos, base_timestamp, max_timestamp, 0


def group(partitions: Any, counts: Any, order: Any) -> None:
    """Row numbers by partition, in their order within each; -1 counts as the first partition of all.

    `counts` (int32, one more than partitions, zeros) gets the end of each group in `order` (int32).
    """
    where: cython.const[cython.int][::1] = partitions
    ends: cython.int[::1] = counts
    numbers: cython.int[::1] = order
    rows: Long = len(partitions)
    groups: Long = len(counts)
    row: Long = 0
    index: Long
    total: Long = 0
    size: Long
    if rows == 0:
        return
    where_at: Ends = cython.address(where[0]) if cython.compiled else partitions
    ends_at: Int32s = cython.address(ends[0]) if cython.compiled else counts
    numbers_at: Int32s = cython.address(numbers[0]) if cython.compiled else order
    with cython.nogil:
        while row < rows:
            ends_at[where_at[row] + 1] += 1
            row += 1
        index = 0
        while index < groups:
            size = ends_at[index]
            ends_at[index] = total
            total += size
            index += 1
        row = 0
        while row < rows:
            index = where_at[row] + 1
            numbers_at[ends_at[index]] = row
            ends_at[index] += 1
            row += 1
