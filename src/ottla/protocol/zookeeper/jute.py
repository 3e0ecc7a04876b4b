"""Jute, ZooKeeper's serialisation: records are named tuples, and their codecs are compiled from that.

A record is its fields one after the other, big-endian. Texts, buffers and vectors have a length of four bytes
in front, -1 for null; null texts and vectors are read as empty ones, because no operation tells them apart.
What a peer sends can only raise `Malformed`, and every length is compared with the bytes that remain.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Annotated, Any, NoReturn, TypeAlias, TypeVar, get_args, get_type_hints

from ottla.model.limits import ARRAY_ELEMENTS_MAX, REQUEST_ELEMENTS_MAX
from ottla.model.problems import Malformed
from ottla.model.values import NamedTuple
from ottla.protocol.primitives import Buffer
from ottla.protocol.source import Run, Source


class Fixed(NamedTuple):
    letter: str  # of the struct module


class Text(NamedTuple):
    """UTF-8."""


class Bytes(NamedTuple):
    """Any bytes, or None."""


class Vector(NamedTuple):
    element: Any  # a record, or Ustring


Int: TypeAlias = Annotated[int, Fixed("i")]
Long: TypeAlias = Annotated[int, Fixed("q")]
Boolean: TypeAlias = Annotated[bool, Fixed("?")]
Ustring: TypeAlias = Annotated[str, Text()]
Blob: TypeAlias = Annotated[bytes | None, Bytes()]

R = TypeVar("R")
_BYTES_MIN = {"i": 4, "q": 8, "?": 1}


_READERS: dict[tuple[type[Any], Any], Callable[[Buffer, int], tuple[Any, int]]] = {}
_WRITERS: dict[type[Any], Callable[[Any], bytes]] = {}


def reader(record: type[R]) -> Callable[[Buffer, int], tuple[R, int]]:
    """The function that reads a record at a position, and tells the position behind it."""
    return reader_of(record, record)


def reader_of(record: type[Any], make: Callable[..., R]) -> Callable[[Buffer, int], tuple[R, int]]:
    """The same, giving what `make` makes of the record's fields."""
    if (record, make) not in _READERS:
        _READERS[record, make] = _ReaderSource(record, make).compile()
    return _READERS[record, make]


def writer(record: type[R]) -> Callable[[R], bytes]:
    """The function that gives a record's bytes."""
    if record not in _WRITERS:
        _WRITERS[record] = _WriterSource(record).compile()
    return _WRITERS[record]


def decode(record: type[R], data: Buffer, position: int = 0) -> R:
    """The record at `position`; bytes behind it are ignored, as ZooKeeper does."""
    return reader(record)(data, position)[0]


def encode(record: tuple[Any, ...]) -> bytes:
    return writer(type(record))(record)


def _fields(record: type[Any]) -> list[tuple[str, Any]]:
    """Name and kind of each field: one of the kinds above, or another record."""
    hints = get_type_hints(record, include_extras=True)
    return [(name, _kind(hints[name])) for name in record._fields]


def _kind(hint: Any) -> Any:
    arguments = get_args(hint)
    return arguments[-1] if arguments else hint


def _bytes_min(kind: Any) -> int:
    """The fewest bytes a value of that kind has."""
    match kind:
        case Fixed(letter):
            return _BYTES_MIN[letter]
        case Text() | Bytes() | Vector():
            return 4
    return sum(_bytes_min(inner) for _, inner in _fields(kind))


def _refuse_length(length: int, left: int) -> NoReturn:
    raise ValueError(f"a length of {length}, with {left} bytes left")


def _refuse_count(count: int, left: int) -> NoReturn:
    raise ValueError(f"{count} elements, with {left} bytes left")


class _ReaderSource:
    """Writes `read(data, pos) -> (record, pos)`. Neighbours of fixed size are one `unpack_from`."""

    def __init__(self, record: type[Any], make: Callable[..., Any]) -> None:
        self._record = record
        is_response = record.__name__.endswith("Response")
        self._elements_max = ARRAY_ELEMENTS_MAX if is_response else REQUEST_ELEMENTS_MAX  # of each vector
        self._source = Source("def read(data, pos):", {"refuse_length": _refuse_length})
        self._source.line("if type(data) is not bytes: data = bytes(data)")
        self._source.line("size = len(data)")
        with self._source.block("try:"):
            self._pending = Run()
            result = self._read_record(record, make)
            self._flush()
            self._source.line(f"return {result}, pos")
        with self._source.block("except (ValueError, struct_error) as error:"):
            self._source.line("raise malformed(error, pos) from None")

    def _read_record(self, record: type[Any], make: Callable[..., Any]) -> str:
        """Reads its fields; the expression for what is made of them."""
        source = self._source
        values = []
        for name, kind in _fields(record):
            with source.serving(name):
                values.append(self._read(name, kind))
        return f"{source.constant('make', make)}({', '.join(values)})"

    def _read(self, name: str, kind: Any) -> str:
        target = self._source.name(name)
        match kind:
            case Fixed(letter):
                self._pending = self._pending.plus(letter, (target,), self._source.field)
            case Text():
                self._read_sized(target, "data[pos:end].decode()", "''")
            case Bytes():
                self._read_sized(target, "data[pos:end]", "b''", null="None")
            case Vector(element):
                self._read_vector(target, element)
            case _:
                return self._read_record(kind, kind)
        return target

    def _read_length(self) -> None:
        self._pending = self._pending.plus("i", ("length",), self._source.field)
        self._flush()

    def _read_sized(self, target: str, value: str, empty: str, null: str | None = None) -> None:
        source = self._source
        self._read_length()
        with source.block("if length > 0:"):
            source.line("end = pos + length")
            source.line("if end > size: refuse_length(length, size - pos)")
            source.line(f"{target} = {value}; pos = end")
        with source.block("else:"):
            source.line("if length < -1: refuse_length(length, size - pos)")
            source.line(f"{target} = {empty}" + (f" if length == 0 else {null}" if null else ""))

    def _read_vector(self, target: str, element: Any) -> None:
        source = self._source
        kind = _kind(element)
        refuse = source.constant("refuse_count", _refuse_count)
        self._read_length()
        count = source.name("count")
        source.line(f"{count} = length")
        source.line(
            f"if {count} < -1 or {count} > {self._elements_max} or "
            f"{count} * {_bytes_min(kind)} > size - pos: {refuse}({count}, size - pos)"
        )
        source.line(f"{target} = []")
        with source.block(f"for _ in range({count}):"):
            value = self._read("element", kind)
            self._flush()
            source.line(f"{target}.append({value})")

    def _flush(self) -> None:
        letters, targets, fields = self._pending
        self._pending = Run()
        if letters:
            unpack = self._source.struct_method(letters, "unpack_from")
            self._source.line(f"{', '.join(targets)}, = {unpack}(data, pos)", fields)
            self._source.line(f"pos += {struct.calcsize('>' + letters)}", fields)

    def compile(self) -> Any:
        name, source = self._record.__name__, self._source

        def malformed(error: Exception, position: int) -> Malformed:
            traceback = error.__traceback__
            field = source.field_by_line.get(traceback.tb_lineno) if traceback else None
            reason = "the bytes end before the value does" if isinstance(error, struct.error) else error
            return Malformed(f"{name}{f', {field}' if field else ''} at byte {position}: {reason}")

        return source.compile(
            f"<jute reader of {name}>", "read", malformed=malformed, struct_error=struct.error
        )


class _WriterSource:
    """Writes `write(record) -> bytes`: one join of packed runs, texts and buffers."""

    def __init__(self, record: type[Any]) -> None:
        self._record = record
        self._source = Source("def write(record):", {})
        self._pending = Run()
        self._parts: list[str] = []
        self._write_record("record", record)
        self._flush()
        if len(self._parts) == 1:
            self._source.line(f"return {self._parts[0]}")
        else:
            self._source.line(f"return b''.join(({', '.join(self._parts)}))")

    def _write_record(self, value: str, record: type[Any]) -> None:
        fields = _fields(record)
        targets = [self._source.name(name) for name, _ in fields]
        if targets:
            self._source.line(f"{', '.join(targets)}, = {value}")
        for target, (_, kind) in zip(targets, fields, strict=True):
            self._write(target, kind)

    def _write(self, value: str, kind: Any) -> None:
        source = self._source
        match kind:
            case Fixed(letter):
                self._pack(letter, value)
            case Text():
                source.line(f"{value} = {value}.encode()")
                self._write_sized(value, f"len({value})")
            case Bytes():
                length = source.name("length")
                source.line(f"{length} = -1 if {value} is None else len({value})")
                self._write_sized(f"({value} or b'')", length)
            case Vector(element):
                self._write_vector(value, _kind(element))
            case _:
                self._write_record(value, kind)

    def _write_vector(self, value: str, kind: Any) -> None:
        write = self._source.constant("write", _write_text if isinstance(kind, Text) else writer(kind))
        self._write_sized(f"b''.join(map({write}, {value}))", f"len({value})")

    def _write_sized(self, value: str, length: str) -> None:
        self._pack("i", length)
        self._flush()
        self._parts.append(value)

    def _pack(self, letter: str, value: str) -> None:
        self._pending = self._pending.plus(letter, (value,), "")

    def _flush(self) -> None:
        letters, values, _ = self._pending
        self._pending = Run()
        if letters:
            self._parts.append(f"{self._source.struct_method(letters, 'pack')}({', '.join(values)})")
        elif not self._parts:
            self._parts.append("b''")

    def compile(self) -> Any:
        return self._source.compile(f"<jute writer of {self._record.__name__}>", "write")


_pack_length = struct.Struct(">i").pack


def _write_text(text: str) -> bytes:
    data = text.encode()
    return _pack_length(len(data)) + data
