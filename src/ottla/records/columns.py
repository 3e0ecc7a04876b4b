"""Records as Arrow columns, without a Python object for each of them.

`Columns` takes the plain bytes of batches (see `kernel_columns`) and gives pyarrow record batches. The names
and types are those of Spark's Kafka source. A timestamp that no column can hold (beyond the year 290,000)
becomes the last one that it can. pyarrow is imported when columns are first asked for: it takes 110 ms and is
no requirement of the package. Buffers come from Arrow's own pool, which keeps freed memory warm: pages that
are new to the process would cost four times the work of filling them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ottla.model.limits import KIB, MIB
from ottla.model.values import NamedTuple
from ottla.records import kernel_choice
from ottla.records.compression import Bytes
from ottla.records.findings import CorruptRecords, Lacking

if TYPE_CHECKING:
    import pyarrow

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")

OFFSET_END = 2**63 - 1

BATCH_BYTES_MAX = 64 * MIB
"""Data of one column in one batch, unless told otherwise."""

_DATA_BYTES_MIN = 64 * KIB
_HEADERS_MIN = 1024
_ROWS_ROOM_MIN = 256
_REPEATS_MAX = 16  # topics, partitions and timestamp types whose columns are kept


class ArrowMissing(ImportError):
    """Columns need pyarrow."""


def arrow() -> Any:
    """The module `pyarrow`."""
    try:
        import pyarrow
    except ModuleNotFoundError as error:
        raise ArrowMissing("columns need pyarrow: pip install 'ottla[arrow]'") from error
    return pyarrow


def schema_of(names: Iterable[str]) -> pyarrow.Schema:
    """The Arrow schema of these columns, in their order."""
    pa = arrow()
    headers = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    types = {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestampType": pa.int32(),
        "headers": pa.list_(headers),
    }
    return pa.schema([pa.field(name, types[name]) for name in names])


def checked_names(names: Sequence[str] | None) -> tuple[str, ...]:
    """The columns asked for; None: all of them."""
    if names is None:
        return COLUMNS
    if isinstance(names, str):
        raise TypeError("columns are a list of names, not one name")
    for name in names:
        if name not in COLUMNS:
            raise ValueError(f"there is no column {name!r}; there are {', '.join(COLUMNS)}")
    if not names or len(set(names)) < len(names):
        raise ValueError(f"columns {list(names)!r}: name at least one, and each once")
    return tuple(names)


class Columns:
    """Rows under construction: filled batch by batch, then taken as one record batch.

    It is full with `rows_max` rows, or where a column would have more than `bytes_max` of data; a record that
    is larger alone is a batch of its own.
    """

    def __init__(self, names: Sequence[str] | None, rows_max: int, bytes_max: int = BATCH_BYTES_MAX) -> None:
        if rows_max < 1:
            raise ValueError(f"{rows_max} rows are no batch")
        self.names = checked_names(names)
        self.schema = schema_of(self.names)
        self.is_full = False
        self.rows_max = rows_max
        self._bytes_max = bytes_max
        self._rows_room = rows_max  # of the batch that is open, or the next
        room = min(_DATA_BYTES_MIN, bytes_max)
        self._sizes = _Sizes(room, room, _HEADERS_MIN, room, room)
        self._open: _Buffers | None = None
        self._repeats: dict[str | int, Any] = {}
        self._runs: list[tuple[str, int, int, int]] = []  # topic, partition, timestamp type, rows

    @property
    def rows(self) -> int:
        return 0 if self._open is None else self._open.reached()[0]

    @property
    def next_offset(self) -> int:
        """Behind the last row's."""
        return 0 if self._open is None else self._open.reached()[1]

    def add(
        self,
        plain: Bytes,
        position: int,
        count: int,
        *,
        origin: tuple[str, int],
        base_offset: int,
        base_timestamp: int,
        append_time: int | None,
        timestamp_type: int,
        first_offset: int = 0,
        end_offset: int = OFFSET_END,
    ) -> tuple[int, int]:
        """Takes `count` records from `position` on, of those between the two offsets, until `is_full`.

        Gives the position of the first that was not looked at, and how many are left. `origin` is topic and
        partition. Raises CorruptRecords behind the last sound one, again and again.
        """
        if self._open is None:
            self._open = _Buffers(self.names, self._rows_room, self._bytes_max, self._sizes)
        before = self.rows
        fault = -1
        while count > 0 and fault < 0 and not self.is_full:
            position, count, fault, lacking, needed = self._open.room.fill(
                plain, position, count, base_offset, base_timestamp, append_time, first_offset, end_offset
            )
            self.is_full = lacking != Lacking.NOTHING and not self._open.grow(lacking, needed)
        self.is_full |= self.rows == self._rows_room
        if self.rows > before:
            self._runs.append((*origin, timestamp_type, self.rows - before))
        elif fault >= 0:
            raise CorruptRecords(f"a record of the batch at {base_offset} breaks at byte {fault}")
        return position, count

    def take(self) -> pyarrow.RecordBatch:
        """All rows; then there are none."""
        opened, runs, was_full = self._open, self._runs, self.is_full
        self._open, self._runs, self.is_full = None, [], False
        pa = arrow()
        if opened is None:
            return pa.RecordBatch.from_pylist([], schema=self.schema)
        self._sizes = opened.sizes()
        if was_full:
            self._rows_room = self._next_rows_room(opened.reached()[0])
        arrays = opened.arrays(self.schema)
        for number, name in enumerate(("topic", "partition", "timestampType")):
            if name in self.names:
                parts = [self._repeated(run[number], run[3]) for run in runs or [("", 0, 0, 0)]]
                arrays[name] = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
        return pa.RecordBatch.from_arrays([arrays[name] for name in self.names], schema=self.schema)

    def _repeated(self, value: str | int, rows: int) -> Any:
        """Kept for the next batch, which most often has the same."""
        known = self._repeats.get(value)
        if known is None or len(known) < rows:
            if len(self._repeats) >= _REPEATS_MAX:
                self._repeats.clear()
            known = self._repeats[value] = _repeat(value, rows * 9 // 8)
        return known.slice(0, rows)

    def _next_rows_room(self, rows: int) -> int:
        """As many as a batch like this one holds, where its bytes have filled it; more, if its rows have."""
        if rows == self._rows_room:
            return min(2 * rows, self.rows_max)
        return min(max(_ROWS_ROOM_MIN, rows * 9 // 8), self.rows_max)


class _Sizes(NamedTuple):
    """What to allocate at first: what the last batch needed."""

    key_bytes: int
    value_bytes: int
    header_count: int
    header_key_bytes: int
    header_value_bytes: int


class _Buffers:
    """Of one record batch, and the kernel's rooms over them."""

    def __init__(self, names: Sequence[str], rows_max: int, bytes_max: int, sizes: _Sizes) -> None:
        self._pa = arrow()
        self._bytes_max = bytes_max
        self._sizes = sizes
        self._keys = _BytesColumn(rows_max, sizes.key_bytes) if "key" in names else None
        self._values = _BytesColumn(rows_max, sizes.value_bytes) if "value" in names else None
        self._offsets = _room_for(8 * rows_max) if "offset" in names else None
        self._timestamps = _room_for(8 * rows_max) if "timestamp" in names else None
        self.room: Any = kernel_choice.columns_kernel.ColumnsRoom(
            rows_max,
            None if self._keys is None else self._keys.room,
            None if self._values is None else self._values.room,
            None if self._offsets is None else _view(self._offsets, "q"),
            None if self._timestamps is None else _view(self._timestamps, "q"),
        )
        self._header_keys: _BytesColumn | None = None
        self._header_values: _BytesColumn | None = None
        if "headers" in names:
            self._header_keys = _BytesColumn(sizes.header_count, sizes.header_key_bytes)
            self._header_values = _BytesColumn(sizes.header_count, sizes.header_value_bytes)
            self._list_ends = _room_for(4 * (rows_max + 1))
            self._list_valid = _all_bits(rows_max)
            self.room.want_headers(
                _view(self._list_ends, "i"),
                _view(self._list_valid),
                self._header_keys.room,
                self._header_values.room,
                sizes.header_count,
            )

    def reached(self) -> tuple[int, int]:
        rows, next_offset = self.room.reached()
        return rows, next_offset

    def grow(self, lacking: int, needed: int) -> bool:
        """Makes the room larger that is too small; false: these rows are enough for one batch."""
        if lacking == Lacking.ROWS:
            return False
        if lacking == Lacking.HEADERS:
            count_max = 2 * needed
            for column in (self._header_keys, self._header_values):
                assert column is not None
                column.grow_rows(count_max)
            self.room.allow_headers(count_max)
            return True
        column = {
            Lacking.KEYS: self._keys,
            Lacking.VALUES: self._values,
            Lacking.HEADER_KEYS: self._header_keys,
            Lacking.HEADER_VALUES: self._header_values,
        }[Lacking(lacking)]
        assert column is not None
        if needed > self._bytes_max and self.reached()[0] > 0:
            return False
        column.grow_data(needed, self._bytes_max)
        return True

    def sizes(self) -> _Sizes:
        """For the next batch, with a little more than this one needed."""
        sizes = self._sizes
        if self._keys is not None:
            sizes = sizes._replace(key_bytes=self._keys.bytes_like_this(self._bytes_max))
        if self._values is not None:
            sizes = sizes._replace(value_bytes=self._values.bytes_like_this(self._bytes_max))
        if self._header_keys is not None and self._header_values is not None:
            sizes = sizes._replace(
                header_count=max(_HEADERS_MIN, self.room.header_counts()[0] * 9 // 8),
                header_key_bytes=self._header_keys.bytes_like_this(self._bytes_max),
                header_value_bytes=self._header_values.bytes_like_this(self._bytes_max),
            )
        return sizes

    def arrays(self, schema: pyarrow.Schema) -> dict[str, Any]:
        """The columns that are made of buffers, by name. The rooms must not be used any more."""
        rows, _ = self.reached()
        counts = None if self._header_keys is None else self.room.header_counts()
        self.room = None  # its pointers end with the buffers' present sizes
        arrays: dict[str, Any] = {}
        if self._keys is not None:
            arrays["key"] = self._keys.array(rows, self._pa.binary())
        if self._values is not None:
            arrays["value"] = self._values.array(rows, self._pa.binary())
        for name, buffer in (("offset", self._offsets), ("timestamp", self._timestamps)):
            if buffer is not None:
                kind = schema.field(name).type
                arrays[name] = self._pa.Array.from_buffers(kind, rows, [None, _cut(buffer, 8 * rows)])
        if counts is not None:
            arrays["headers"] = self._header_lists(schema.field("headers").type, rows, *counts)
        return arrays

    def _header_lists(self, kind: Any, rows: int, count: int, headerless: int, is_ascii: bool) -> Any:
        assert self._header_keys is not None
        assert self._header_values is not None
        keys = self._header_keys.array(count, self._pa.string() if is_ascii else self._pa.binary())
        if not is_ascii:
            texts = [key.decode("utf-8", "replace") for key in keys.to_pylist()]
            keys = self._pa.array(texts, self._pa.string())
        values = self._header_values.array(count, self._pa.binary())
        pairs = self._pa.StructArray.from_arrays([keys, values], fields=list(kind.value_type))
        valid = _cut(self._list_valid, (rows + 7) // 8) if headerless else None
        ends = _cut(self._list_ends, 4 * (rows + 1))
        return self._pa.Array.from_buffers(kind, rows, [valid, ends], headerless, children=[pairs])


class _BytesColumn:
    """The buffers of one column of bytes, and the kernel's room over them."""

    def __init__(self, rows_max: int, data_bytes: int) -> None:
        self._ends = _room_for(4 * (rows_max + 1))
        self._valid = _all_bits(rows_max)
        self._data = _room_for(data_bytes)
        self.room: Any = kernel_choice.columns_kernel.BytesRoom(
            _view(self._ends, "i"), _view(self._valid), _view(self._data)
        )

    def bytes_like_this(self, bytes_max: int) -> int:
        """For the next batch, with a little more than this one needed."""
        filled: int = self.room.counts()[0]
        return min(max(_DATA_BYTES_MIN, filled * 9 // 8), bytes_max)

    def grow_data(self, needed: int, bytes_max: int) -> None:
        data = _room_for(max(needed, min(2 * self._data.size, bytes_max)))
        _view(data)[: self._data.size] = _view(self._data)
        self.room.set_data(_view(data))
        self._data = data

    def grow_rows(self, rows_max: int) -> None:
        ends, valid = _room_for(4 * (rows_max + 1)), _all_bits(rows_max)
        _view(ends)[: self._ends.size] = _view(self._ends)
        _view(valid)[: self._valid.size] = _view(self._valid)
        self.room.set_rows(_view(ends, "i"), _view(valid))
        self._ends, self._valid = ends, valid

    def array(self, rows: int, kind: Any) -> Any:
        """The column. The room must not be used any more."""
        filled, nulls = self.room.counts()
        self.room = None  # its pointers end with the buffers' present sizes
        valid = _cut(self._valid, (rows + 7) // 8) if nulls else None
        buffers = [valid, _cut(self._ends, 4 * (rows + 1)), _cut(self._data, filled)]
        return arrow().Array.from_buffers(kind, rows, buffers, nulls)


def _repeat(value: str | int, rows: int) -> Any:
    """Out of buffers: Arrow's own way imports pandas where it is installed, for most of a second."""
    pa = arrow()
    if isinstance(value, int):
        return pa.Array.from_buffers(pa.int32(), rows, [None, pa.py_buffer(array("i", [value]) * rows)])
    data = value.encode()
    ends = array("i", range(0, len(data) * rows + 1, len(data)) if data else [0] * (rows + 1))
    return pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(ends), pa.py_buffer(data * rows)])


def _room_for(size: int) -> Any:
    """Memory of Arrow's pool, not cleared; never of no bytes, so that it has an address."""
    return arrow().allocate_buffer(max(size, 1), resizable=True)


def _all_bits(rows: int) -> Any:
    buffer = _room_for((rows + 7) // 8)
    _view(buffer)[:] = b"\xff" * buffer.size
    return buffer


def _view(buffer: Any, kind: str = "B") -> memoryview:
    view = memoryview(buffer).cast("B")
    return view if kind == "B" else view.cast(kind)  # type: ignore[call-overload]


def _cut(buffer: Any, size: int) -> Any:
    """The used part of it; memory that a reader would hold for nothing goes back to the pool."""
    buffer.resize(size, shrink_to_fit=2 * size < buffer.size)
    return buffer
