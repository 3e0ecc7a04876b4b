"""Source of the reader of one message at one version.

Fixed-size fields that stand together are one `unpack_from`, and so is the first byte of a length behind them.
Nested structs are inlined. Every length and count of the peer is compared with the bytes that remain.
"""

from __future__ import annotations

import codecs
import struct
from typing import Any

from ottla.model.limits import ARRAY_ELEMENTS_MAX, REQUEST_ELEMENTS_MAX
from ottla.protocol import primitives
from ottla.protocol.fields import (
    Array,
    Blob,
    Field,
    Fixed,
    Message,
    RecordData,
    Struct,
    Text,
    WireType,
    fields_of,
)
from ottla.protocol.source import Run, Source


def has_records(message_type: type[Message], version: int) -> bool:
    """Whether the message carries record data, which must not be copied."""

    def carries(wire: WireType) -> bool:
        match wire:
            case RecordData():
                return True
            case Array(element):
                return carries(element)
            case Struct(inner):
                return has_records(inner, version)
        return False

    return any(carries(field.wire) for field in fields_of(message_type) if field.is_in(version))


def elements_max(message_type: type[Message]) -> int:
    """How many elements all arrays of a message may have together."""
    return REQUEST_ELEMENTS_MAX if message_type.__name__.endswith("Request") else ARRAY_ELEMENTS_MAX


def bytes_min(wire: WireType, version: int, flexible: bool) -> int:
    """The fewest bytes that a value, not null, can have."""
    match wire:
        case Fixed(_, size):
            return size
        case Text():
            return 1 if flexible else 2
        case Struct(inner):
            total = 1 if flexible else 0
            for field in fields_of(inner):
                if field.is_in(version) and field.tag is None:
                    is_flag = isinstance(field.wire, Struct) and field.is_nullable_in(version)
                    total += 1 if is_flag else bytes_min(field.wire, version, flexible)
            return total
    return 1 if flexible else 4


class ReaderSource:
    """Writes `read(data, pos) -> (message, pos)`."""

    def __init__(self, message_type: type[Message], version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.keeps_view = has_records(message_type, version)
        self.source = Source("def read(data, pos):", self._constants())
        self._pending = Run()  # not unpacked yet
        self._write_function(message_type)

    @staticmethod
    def _constants() -> dict[str, Any]:
        return {
            "new": object.__new__,
            "struct_error": struct.error,
            "utf_8_decode": codecs.utf_8_decode,
            "read_uvarint": primitives.read_uvarint,
            "read_string_uvarint": primitives.read_string_uvarint,
            "read_tag_count": primitives.read_tag_count,
            "read_tag": primitives.read_tag,
            "skip_tags": primitives.skip_tags,
            "unpack_array": primitives.unpack_array,
            "refuse_length": primitives.refuse_length,
            "refuse_count": primitives.refuse_count,
            "refuse_tag_end": primitives.refuse_tag_end,
        }

    def _write_function(self, message_type: type[Message]) -> None:
        source = self.source
        with source.block("try:"):
            if self.keeps_view:
                source.line("view = data if type(data) is memoryview else memoryview(data)")
            else:
                # One copy makes every string that follows cheaper, and lets go of the frame.
                source.line("if type(data) is not bytes: data = bytes(data)")
            source.line("size = len(data)")
            source.line(f"left = {elements_max(message_type)}")
            message = self._struct(message_type)
            self._flush()
            source.line(f"return {message}, pos")
        with source.block("except (ValueError, IndexError, struct_error) as error:"):
            source.line("raise malformed(error, pos) from None")

    def _fixed(self, letter: str, target: str) -> None:
        self._pending = self._pending.plus(letter, (target,), self.source.field)

    def _flush(self) -> None:
        letters, targets, fields = self._pending
        self._pending = Run()
        if letters == "B":
            self.source.line(f"{targets[0]} = data[pos]; pos += 1", fields)
        elif letters:
            unpack = self.source.struct_method(letters, "unpack_from")
            size = struct.calcsize(">" + letters)
            self.source.line(f"{', '.join(targets)}, = {unpack}(data, pos); pos += {size}", fields)

    def _struct(self, message_type: type[Message]) -> str:
        """Read a struct; the variable that holds it. Values go straight into its slots."""
        struct_name = self.source.name("struct")
        self.source.line(f"{struct_name} = new({self.source.constant('T', message_type)})")
        tags = []
        for field in fields_of(message_type):
            if field.is_in(self.version) and field.tag is None:
                self._field(field, struct_name)
            else:
                self.source.line(f"{struct_name}.{field.name} = {self.source.literal(field.default)}")
                if field.is_in(self.version):
                    tags.append(field)
        if self.flexible:
            self._tags(tags, struct_name)
        return struct_name

    def _field(self, field: Field, struct_name: str) -> None:
        with self.source.serving(field.name):
            self._value(field.wire, field.is_nullable_in(self.version), f"{struct_name}.{field.name}")

    def _value(self, wire: WireType, nullable: bool, target: str) -> None:
        """Read a value into `target`, where it is once the run it belongs to is unpacked."""
        match wire:
            case Fixed(letter, _):
                self._fixed(letter, target)
            case Struct(inner) if not nullable:
                self.source.line(f"{target} = {self._struct(inner)}")
            case Struct(inner):
                self._nullable_struct(inner, target)
            case Array(element):
                self._array(element, nullable, target)
            case Text():
                decoded = "utf_8_decode(data[pos:end], None, True)[0]"
                string = decoded if self.keeps_view else "data[pos:end].decode()"
                self._sized(target, nullable, "h", "read_string_uvarint", string)
            case Blob():
                self._sized(target, nullable, "i", "read_uvarint", "bytes(data[pos:end])")
            case RecordData():
                self._sized(target, nullable, "i", "read_uvarint", "view[pos:end]")

    def _length(self, letter: str, continuation: str) -> tuple[str, int]:
        """Read a length or count: the variable, and what is to be subtracted from it."""
        length = self.source.name("n")
        if not self.flexible:
            self._fixed(letter, length)
            self._flush()
            return length, 0
        self._fixed("B", length)
        self._flush()
        self.source.line(f"if {length} > 127: {length}, pos = {continuation}(data, pos, {length})")
        return length, 1

    def _sized(self, target: str, nullable: bool, letter: str, continuation: str, value: str) -> None:
        source = self.source
        length, bias = self._length(letter, continuation)

        def read() -> None:
            source.line(f"end = pos + {length}" + (" - 1" if bias else ""))
            source.line("if not pos <= end <= size: refuse_length(end - pos, size - pos)")
            source.line(f"{target} = {value}; pos = end")

        if not nullable:
            read()
            return
        source.line(f"if {length} == {bias - 1}: {target} = None")
        with source.block("else:"):
            read()

    def _nullable_struct(self, inner: type[Message], target: str, present_from: int = 0) -> None:
        flag = self.source.name("flag")
        self._fixed("b", flag)
        self._flush()
        self.source.line(f"if {flag} < {present_from}: {target} = None")
        with self.source.block("else:"):
            self.source.line(f"{target} = {self._struct(inner)}")
            self._flush()

    def _array(self, element: WireType, nullable: bool, target: str) -> None:
        count, bias = self._length("i", "read_uvarint")
        if bias:
            self.source.line(f"{count} -= 1")
        if not nullable:
            self._elements(element, count, target)
            return
        self.source.line(f"if {count} == -1: {target} = None")
        with self.source.block("else:"):
            self._elements(element, count, target)

    def _elements(self, element: WireType, count: str, target: str) -> None:
        source = self.source
        source.line(f"left -= {count}")
        least = max(1, bytes_min(element, self.version, self.flexible))
        needed = count if least == 1 else f"{count} * {least}"
        source.line(f"if {count} < 0 or left < 0 or {needed} > size - pos: refuse_count({count}, size - pos)")
        if isinstance(element, Fixed):
            small = source.constant("unpackers", primitives.small_array_unpackers(element.letter))
            source.line(
                f"{target} = {small}[{count}](data, pos) if {count} < {primitives.SMALL_ARRAY_END}"
                f" else unpack_array({element.letter!r}, {element.size}, {count}, data, pos)"
            )
            source.line(f"pos += {needed}")
            return
        source.line(f"if not {count}: {target} = ()")
        with source.block("else:"):
            elements, item = source.name("list"), source.name("item")
            source.line(f"{elements} = []")
            with source.block(f"for _ in range({count}):"):
                if isinstance(element, Struct):
                    item = self._struct(element.type)
                else:
                    self._value(element, False, item)
                self._flush()
                source.line(f"{elements}.append({item})")
            source.line(f"{target} = tuple({elements})")

    def _tags(self, tags: list[Field], struct_name: str) -> None:
        source = self.source
        first = source.name("tags")
        self._fixed("B", first)
        self._flush()
        if not tags:
            source.line(f"if {first}: pos, left = skip_tags(data, pos, {first}, left)")
            return
        with source.block(f"if {first}:"):
            source.line(f"{first}, pos = read_tag_count(data, pos, {first}, left); left -= {first}")
            with source.block(f"for _ in range({first}):"):
                self._tagged_value(tags, struct_name)

    def _tagged_value(self, tags: list[Field], struct_name: str) -> None:
        source = self.source
        tag, end = source.name("tag"), source.name("tag_end")
        source.line(f"{tag}, pos, {end} = read_tag(data, pos)")
        branch = "if"
        for field in tags:
            with source.serving(field.name), source.block(f"{branch} {tag} == {field.tag}:"):
                self._tagged_field(field, f"{struct_name}.{field.name}")
                self._flush()
            branch = "elif"
        source.line(f"else: pos = {end}")
        source.line(f"if pos != {end}: refuse_tag_end(pos, {end})")

    def _tagged_field(self, field: Field, target: str) -> None:
        """A struct that is null is 0 here and -1 everywhere else."""
        nullable = field.is_nullable_in(self.version)
        if isinstance(field.wire, Struct) and nullable:
            self._nullable_struct(field.wire.type, target, present_from=1)
        else:
            self._value(field.wire, nullable, target)
