"""Rows of Arrow columns as records of batches, encoded by the kernel without a Python object for each.

The columns are those that `columns` gives, as far as a record to be has them: key, value, headers, timestamp,
partition (and topic, which is its sender's business).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from ottla.model.limits import DECOMPRESSED_BYTES_MAX
from ottla.model.offsets import NO_LEADER_EPOCH
from ottla.model.spare_rooms import SpareRooms
from ottla.model.values import NamedTuple
from ottla.records import kernel_choice
from ottla.records.batch import HEADER_BYTES, MAGIC, BatchHeader, header_bytes
from ottla.records.columns import arrow
from ottla.records.compression import Codec, compress, decompress
from ottla.records.content import Record
from ottla.records.findings import RowFault

if TYPE_CHECKING:
    import pyarrow

SENDABLE = ("key", "value", "headers", "timestamp", "partition", "topic")

ANY_PARTITION = -1

_FAULTS = {
    RowFault.PARTITION: "there is no such partition",
    RowFault.TIMESTAMP: "its timestamp is before 1970 or beyond what a record can carry",
    RowFault.BUFFERS: "the buffers of its columns are broken",
    RowFault.HEADER_KEY: "a header has no key",
}


class InvalidRows(ValueError):
    """A table cannot become records."""


class Group(NamedTuple):
    """Rows for one partition, by their numbers in the order of groups."""

    partition: int  # ANY_PARTITION: wherever the sender likes
    first: int
    end: int


class EncodedRecords:
    """The records of a batch that waits for its header, as its sender holds them: a sequence of records."""

    def __init__(
        self,
        room: bytearray,
        size: int,
        count: int,
        first_timestamp: int,
        max_timestamp: int,
        spares: SpareRooms | None = None,
    ) -> None:
        """`room` has HEADER_BYTES in front of the records, and `size` bytes of it are used.

        It goes to `spares` in the end.
        """
        self._room = room
        self._spares = spares
        self._data: memoryview | None = memoryview(room)[:size]
        self._codec = int(Codec.NONE)
        self._count = count
        self._timestamps = (first_timestamp, max_timestamp)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> Record: ...
    @overload
    def __getitem__(self, place: slice) -> list[Record]: ...
    def __getitem__(self, place: int | slice) -> Record | list[Record]:
        """Decodes them: for the rare batch that is too large for its topic."""
        plain = decompress(self._codec, self._bytes()[HEADER_BYTES:], DECOMPRESSED_BYTES_MAX)
        records, _, fault = kernel_choice.record_kernel.decode_records(
            plain, 0, self._count, 0, self._timestamps[0], None, Record
        )
        assert fault < 0
        found: Record | list[Record] = records[place]
        return found

    @property
    def size(self) -> int:
        """Bytes of the batch."""
        return 0 if self._data is None else len(self._data)

    def compress(self, codec: int, level: int | None) -> None:
        if codec != Codec.NONE:
            body = compress(codec, self._bytes()[HEADER_BYTES:], level)
            self._give_back()
            self._room = bytearray(HEADER_BYTES + len(body))
            self._data = memoryview(self._room)
            self._data[HEADER_BYTES:] = body
            self._codec = codec
            self._spares = None  # sizes differ from batch to batch

    def batch(self, *, flags: int, producer_id: int, producer_epoch: int, base_sequence: int) -> memoryview:
        """The whole batch. What was given before for another producer or sequence changes with it."""
        data = self._bytes()
        first_timestamp, max_timestamp = self._timestamps
        header = BatchHeader(
            base_offset=0,
            batch_length=0,
            leader_epoch=NO_LEADER_EPOCH,
            magic=MAGIC,
            crc=0,
            attributes=flags | self._codec,
            last_offset_delta=self._count - 1,
            base_timestamp=first_timestamp,
            max_timestamp=max_timestamp,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            record_count=self._count,
        )
        data[:HEADER_BYTES] = header_bytes(header, data[HEADER_BYTES:])
        return data

    def drop(self) -> None:
        """Gives the memory back; only the number of records is left."""
        self._give_back()
        self._room = bytearray()

    def _give_back(self) -> None:
        self._data = None
        if self._spares is not None:
            self._spares.give(self._room)

    def _bytes(self) -> memoryview:
        assert self._data is not None
        return self._data


class Rows:
    """A record batch on its way to become records."""

    def __init__(self, batch: pyarrow.RecordBatch, now_ms: int, spares: SpareRooms | None = None) -> None:
        """`now_ms` is the timestamp of rows without one; `spares` has buffers to encode into."""
        self._spares = spares
        unknown = [name for name in batch.schema.names if name not in SENDABLE]
        if unknown:
            raise InvalidRows(
                f"no column of a record is named {unknown[0]!r}; there are {', '.join(SENDABLE)}"
            )
        self._count = batch.num_rows
        self._batch = batch
        self._kept: list[Any] = []  # whatever owns memory that the kernel reads
        kernel = kernel_choice.rows_kernel
        self._source = kernel.RowsSource(
            self._count, now_ms, self._bytes_source(batch, "key"), self._bytes_source(batch, "value")
        )
        self._take_timestamps(batch)
        self._take_headers(batch)
        self._partitions = _column(batch, "partition")
        self._order: Any = None

    def group(
        self, partition_count: int, chosen: Sequence[int] | None, *, by_key: bool
    ) -> tuple[list[Group], int]:
        """The rows by partition, and how many bytes the largest record may take. Then they can be encoded.

        A row goes where its own `partition` says, else where `chosen` does, else by its key, else anywhere.
        """
        pa = arrow()
        named = self._partitions
        if named is not None:
            named = _cast(named, pa.int32(), "partition")
        if chosen is not None:
            asked = pa.array(chosen, pa.int32())
            named = asked if named is None else _first_of(named, asked)
        partitions = memoryview(kernel_choice.rows_kernel.new_room(4 * max(self._count, 1))).cast("i")
        given, valid = (None, None) if named is None else self._numbers(named, "i", 4)
        if valid is None:
            valid = kernel_choice.rows_kernel.Validity(None, 0)
        fault, row, largest = self._source.survey(partitions, given, valid, partition_count, by_key)
        if fault != RowFault.NONE:
            raise InvalidRows(f"row {row}: {_FAULTS[RowFault(fault)]}")
        ends = array("i", bytes(4 * (partition_count + 1)))
        self._order = memoryview(kernel_choice.rows_kernel.new_room(4 * max(self._count, 1))).cast("i")
        kernel_choice.rows_kernel.group(partitions[: self._count], ends, self._order)
        groups = []
        first = 0
        for index, end in enumerate(ends):
            if end > first:
                groups.append(Group(index - 1, first, end))
                first = end
        return groups, largest

    def octets(self, name: str) -> list[bytes | None]:
        """A column as objects, for who must look at each."""
        column = _column(self._batch, name)
        if column is None:
            return [None] * self._count
        found: list[bytes | None] = _cast(column, arrow().binary(), name).to_pylist()
        return found

    def encode(self, first: int, end: int, bytes_max: int) -> tuple[EncodedRecords, int]:
        """A batch of `bytes_max` at the most, of the rows from `first` on (a single record may be larger).

        Gives the number of the first that found no room.
        """
        kernel = kernel_choice.rows_kernel
        size_max = max(bytes_max, HEADER_BYTES)
        room = None if self._spares is None else self._spares.take(size_max)
        if room is None:
            room = kernel.new_room(size_max)
        encode, order = self._source.encode, self._order
        stop, size, base, latest, needed = encode(order, first, end, room, HEADER_BYTES, size_max)
        if stop == first:
            size_max = HEADER_BYTES + needed
            room = kernel.new_room(size_max)
            stop, size, base, latest, _ = encode(order, first, first + 1, room, HEADER_BYTES, size_max)
        return EncodedRecords(room, size, stop - first, base, latest, self._spares), stop

    # -- buffers -------------------------------------------------------------------------------------------

    def _bytes_source(self, batch: Any, name: str) -> Any:
        column = _column(batch, name)
        return None if column is None else self._source_of(_cast(column, arrow().binary(), name))

    def _source_of(self, column: Any) -> Any:
        valid, ends, data = column.buffers()
        self._kept.append(column)
        return kernel_choice.rows_kernel.BytesSource(
            _octets(ends, 4 * column.offset, 4 * (len(column) + 1)).cast("i"),
            _octets(data),
            self._validity(valid, column.offset),
        )

    @staticmethod
    def _validity(bits: Any, first_bit: int) -> Any:
        return kernel_choice.rows_kernel.Validity(None if bits is None else _octets(bits), first_bit)

    def _numbers(self, column: Any, kind: str, width: int) -> tuple[Any, Any]:
        valid, data = column.buffers()
        self._kept.append(column)
        numbers = _octets(data, width * column.offset, width * max(len(column), 1))
        return numbers.cast(kind), self._validity(valid, column.offset)  # type: ignore[call-overload]

    def _take_timestamps(self, batch: Any) -> None:
        column = _column(batch, "timestamp")
        if column is None or not len(column):
            return
        pa = arrow()
        if not pa.types.is_integer(column.type):
            column = _cast(column, pa.timestamp("ms"), "timestamp")
        self._source.take_timestamps(*self._numbers(_cast(column, pa.int64(), "timestamp"), "q", 8))

    def _take_headers(self, batch: Any) -> None:
        column = _column(batch, "headers")
        if column is None:
            return
        pa = arrow()
        pair = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
        column = _cast(column, pa.list_(pair), "headers")
        valid, ends, *_ = column.buffers()
        keys, values = column.values.flatten()
        self._kept += [column, keys, values]
        self._source.take_headers(
            _octets(ends, 4 * column.offset, 4 * (len(column) + 1)).cast("i"),
            self._validity(valid, column.offset),
            self._source_of(keys),
            self._source_of(values),
            len(keys),
        )


def _column(batch: Any, name: str) -> Any:
    return batch.column(name) if name in batch.schema.names else None


def _cast(column: Any, kind: Any, name: str) -> Any:
    pa = arrow()
    if column.type == kind:
        return column
    try:
        return column.cast(kind, safe=not pa.types.is_timestamp(kind))
    except pa.ArrowException as error:
        raise InvalidRows(f"column {name!r} is {column.type}, and must become {kind}: {error}") from None


def _first_of(named: Any, asked: Any) -> Any:
    import pyarrow.compute

    return pyarrow.compute.coalesce(named, asked)


def _octets(buffer: Any, start: int = 0, size: int | None = None) -> memoryview:
    """Part of a buffer, which may be missing or empty when no row needs it; never of no bytes."""
    view = memoryview(b"" if buffer is None else buffer).cast("B")
    view = view[start:] if size is None else view[start : start + size]
    if size is not None and len(view) < size:
        view = memoryview(bytes(view) + bytes(size - len(view)))
    return view if len(view) else memoryview(b"\0")
