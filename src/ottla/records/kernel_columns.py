# mypy: disable-error-code="untyped-decorator,valid-type,name-defined,misc,no-any-return,no-redef"
"""Records into columns as Arrow lays them out: one source, compiled or not, under the rules of `kernel`.

A column of bytes is three buffers: where each row ends in the data (int32, the first one 0), the data, and a
bit for each row that is not null. `columns` owns the buffers, sees to their size, and knows what they mean;
here they are only filled.
"""

from __future__ import annotations

from typing import Any

from ottla.records.findings import Lacking

try:
    import cython
except ModuleNotFoundError:  # uncompiled, and Cython is not there: its names are only decoration then
    from ottla.model import cython_shim as cython

if not cython.compiled:
    from ottla.records.kernel import Long, Octets, Room, record_at, sum_fits, varint

    Int32s = memoryview
    Int64s = memoryview
else:
    from cython.cimports.libc.string import memcpy
    from cython.cimports.ottla.records._kernel import Long, Octets, Room, record_at, sum_fits, varint

    Int32s = cython.typedef(cython.pointer[cython.int])
    Int64s = cython.typedef(cython.pointer[cython.longlong])

MICROSECONDS = cython.declare(cython.longlong, 1000)  # of a millisecond
MILLISECONDS_MAX = cython.declare(cython.longlong, 0x7FFF_FFFF_FFFF_FFFF // 1000)

NOTHING = cython.declare(cython.longlong, Lacking.NOTHING)
ROWS = cython.declare(cython.longlong, Lacking.ROWS)
KEYS = cython.declare(cython.longlong, Lacking.KEYS)
VALUES = cython.declare(cython.longlong, Lacking.VALUES)
HEADERS = cython.declare(cython.longlong, Lacking.HEADERS)
HEADER_KEYS = cython.declare(cython.longlong, Lacking.HEADER_KEYS)
HEADER_VALUES = cython.declare(cython.longlong, Lacking.HEADER_VALUES)


def is_compiled() -> bool:
    return bool(cython.compiled)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _copy(p: Octets, pos: Long, size: Long, data: Room, at: Long) -> Long:
    """Into `data`, where there is room; the position after it."""
    if cython.compiled:
        memcpy(data + at, p + pos, size)  # type: ignore[operator]
    else:
        data[at : at + size] = p[pos : pos + size]
    return at + size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _clear(bits: Room, index: Long) -> cython.void:
    """Row `index` is null."""
    bits[index >> 3] = bits[index >> 3] & ~(1 << (index & 7)) & 0xFF


@cython.cclass
class BytesRoom:
    """A column of bytes under construction."""

    ends: Int32s
    data: Room
    valid: Room
    size: Long  # of the data
    filled: Long
    nulls: Long
    ends_view: cython.int[::1]
    data_view: cython.uchar[::1]
    valid_view: cython.uchar[::1]

    def __init__(self, ends: Any, valid: Any, data: Any) -> None:
        """`ends` of int32, one more than rows; `valid` has all bits set."""
        self.filled = 0
        self.nulls = 0
        self.set_rows(ends, valid)
        self.set_data(data)
        self.ends[0] = 0

    def set_rows(self, ends: Any, valid: Any) -> None:
        """Other memory, which begins with what is there already."""
        self.ends_view = ends
        self.valid_view = valid
        self.ends = cython.address(self.ends_view[0]) if cython.compiled else ends
        self.valid = cython.address(self.valid_view[0]) if cython.compiled else valid

    def set_data(self, data: Any) -> None:
        """Other memory, which begins with what is there already."""
        self.data_view = data
        self.data = cython.address(self.data_view[0]) if cython.compiled else data
        self.size = len(data)

    def counts(self) -> tuple[int, int]:
        """Bytes of data, and nulls."""
        return self.filled, self.nulls


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put(room: BytesRoom, row: Long, p: Octets, pos: Long, size: Long) -> cython.void:
    """The caller has made sure of the room."""
    if size > 0:
        room.filled = _copy(p, pos, size, room.data, room.filled)
    elif size < 0:
        _clear(room.valid, row)
        room.nulls += 1
    room.ends[row + 1] = room.filled


@cython.cclass
class ColumnsRoom:
    """Columns under construction; those that nobody wants are None."""

    rows: Long
    rows_max: Long
    next_offset: Long  # behind the last row's
    keys: BytesRoom
    values: BytesRoom
    offsets: Int64s
    timestamps: Int64s
    offsets_view: cython.longlong[::1]
    timestamps_view: cython.longlong[::1]
    has_keys: cython.bint
    has_values: cython.bint
    has_offsets: cython.bint
    has_timestamps: cython.bint
    # Headers: a list of pairs for each row, null where there is none.
    has_headers: cython.bint
    header_count: Long  # in all rows
    header_count_max: Long
    headerless: Long  # rows
    is_ascii: cython.bint  # whether all keys of headers are
    list_ends: Int32s
    list_valid: Room
    list_ends_view: cython.int[::1]
    list_valid_view: cython.uchar[::1]
    header_keys: BytesRoom
    header_values: BytesRoom

    def __init__(self, rows_max: Long, keys: Any, values: Any, offsets: Any, timestamps: Any) -> None:
        self.rows = 0
        self.rows_max = rows_max
        self.next_offset = 0
        self.has_keys = keys is not None
        self.has_values = values is not None
        self.has_offsets = offsets is not None
        self.has_timestamps = timestamps is not None
        self.has_headers = False
        self.keys = keys
        self.values = values
        if offsets is not None:
            self.offsets_view = offsets
            self.offsets = cython.address(self.offsets_view[0]) if cython.compiled else offsets
        if timestamps is not None:
            self.timestamps_view = timestamps
            self.timestamps = cython.address(self.timestamps_view[0]) if cython.compiled else timestamps

    def want_headers(self, ends: Any, valid: Any, keys: Any, values: Any, count_max: Long) -> None:
        """`ends` of int32, one more than rows; `valid` has all bits set; the rooms have `count_max` rows."""
        self.has_headers = True
        self.header_count = 0
        self.headerless = 0
        self.is_ascii = True
        self.list_ends_view = ends
        self.list_valid_view = valid
        self.list_ends = cython.address(self.list_ends_view[0]) if cython.compiled else ends
        self.list_valid = cython.address(self.list_valid_view[0]) if cython.compiled else valid
        self.list_ends[0] = 0
        self.header_keys = keys
        self.header_values = values
        self.header_count_max = count_max

    def allow_headers(self, count_max: Long) -> None:
        """The two rooms have so many rows now."""
        self.header_count_max = count_max

    def reached(self) -> tuple[int, int]:
        """Rows, and the offset behind the last one's (0: there is none)."""
        return self.rows, self.next_offset

    def header_counts(self) -> tuple[int, int, bool]:
        """Headers, rows without any, and whether all their keys are ASCII."""
        return self.header_count, self.headerless, self.is_ascii

    def fill(
        self,
        data: Any,
        pos: Long,
        count: Long,
        base_offset: Long,
        base_timestamp: Long,
        append_time: Any,
        first_offset: Long,
        end_offset: Long,
    ) -> tuple[int, int, int, int, int]:
        """Rows from `count` records at `pos`, of those with `first_offset` ≤ offset < `end_offset`.

        Gives the position of the first record that was not taken, how many are left, where a fault is or -1,
        which room is too small, and what it needs. `append_time` is every record's timestamp when it is not
        None.
        """
        view: cython.const[cython.uchar][::1] = memoryview(data)
        end: Long = view.shape[0]
        stamped: cython.bint = append_time is not None
        stamp: Long = append_time if append_time is not None else 0
        filled: tuple[Long, Long, Long, Long, Long]
        if pos >= end:
            return pos, count, (pos if count > 0 else -1), NOTHING, 0
        p: Octets = cython.address(view[0]) if cython.compiled else view
        with cython.nogil:
            filled = _fill(
                self,
                p,
                pos,
                end,
                count,
                base_offset,
                base_timestamp,
                stamped,
                stamp,
                first_offset,
                end_offset,
            )
        return filled


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _fill(
    room: ColumnsRoom,
    p: Octets,
    pos: Long,
    end: Long,
    count: Long,
    base_offset: Long,
    base_timestamp: Long,
    stamped: cython.bint,
    stamp: Long,
    first_offset: Long,
    end_offset: Long,
) -> tuple[Long, Long, Long, Long, Long]:
    after: Long
    timestamp: Long
    offset: Long
    key_at: Long
    key_size: Long
    value_at: Long
    value_size: Long
    headers_at: Long
    header_count: Long
    row: Long
    short: Long
    needed: Long
    while count > 0:
        (
            after,
            timestamp,
            offset,
            key_at,
            key_size,
            value_at,
            value_size,
            headers_at,
            header_count,
        ) = record_at(p, pos, end)
        if after < 0:
            return pos, count, timestamp, NOTHING, 0
        if not sum_fits(base_timestamp, timestamp) or not sum_fits(base_offset, offset):
            return pos, count, pos, NOTHING, 0
        offset += base_offset
        if first_offset <= offset and offset < end_offset:
            row = room.rows
            if row == room.rows_max:
                return pos, count, -1, ROWS, row + 1
            if room.has_keys and key_size > room.keys.size - room.keys.filled:
                return pos, count, -1, KEYS, room.keys.filled + key_size
            if room.has_values and value_size > room.values.size - room.values.filled:
                return pos, count, -1, VALUES, room.values.filled + value_size
            if room.has_headers:
                short, needed = _put_headers(room, row, p, headers_at, after, header_count)
                if short != NOTHING:
                    return pos, count, -1, short, needed
            if room.has_keys:
                _put(room.keys, row, p, key_at, key_size)
            if room.has_values:
                _put(room.values, row, p, value_at, value_size)
            if room.has_offsets:
                room.offsets[row] = offset
            if room.has_timestamps:
                timestamp = stamp if stamped else base_timestamp + timestamp
                if timestamp > MILLISECONDS_MAX:
                    timestamp = MILLISECONDS_MAX
                elif timestamp < -MILLISECONDS_MAX:
                    timestamp = -MILLISECONDS_MAX
                room.timestamps[row] = timestamp * MICROSECONDS
            room.rows = row + 1
            room.next_offset = offset + 1
        pos = after
        count -= 1
    return pos, 0, -1, NOTHING, 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _put_headers(
    room: ColumnsRoom, row: Long, p: Octets, pos: Long, end: Long, count: Long
) -> tuple[Long, Long]:
    """The headers of a record that record_at has found sound; which room is too small, and what it needs.

    Nothing has changed when one is.
    """
    size: Long
    at: Long
    index: Long
    left: Long
    keys: Long = room.header_keys.filled
    values: Long = room.header_values.filled
    if count == 0:
        _clear(room.list_valid, row)
        room.headerless += 1
        room.list_ends[row + 1] = room.header_count
        return NOTHING, 0
    if count > room.header_count_max - room.header_count:
        return HEADERS, room.header_count + count
    at = pos
    left = count
    while left > 0:
        size, at = varint(p, at, end)
        keys += size
        at += size
        size, at = varint(p, at, end)
        if size > 0:
            values += size
            at += size
        left -= 1
    if keys > room.header_keys.size:
        return HEADER_KEYS, keys
    if values > room.header_values.size:
        return HEADER_VALUES, values
    index = room.header_count
    while count > 0:
        size, pos = varint(p, pos, end)
        _put(room.header_keys, index, p, pos, size)
        while size > 0:
            if p[pos] > 0x7F:
                room.is_ascii = False
            pos += 1
            size -= 1
        size, pos = varint(p, pos, end)
        _put(room.header_values, index, p, pos, size)
        if size > 0:
            pos += size
        index += 1
        count -= 1
    room.header_count = index
    room.list_ends[row + 1] = index
    return NOTHING, 0
