"""Source of the writer of one message at one version.

Fixed-size fields that stand together are one `pack`, together with the length of what follows them when that
length is a single byte or fixed. Parts are collected in a list and joined once; record data stays by itself.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from ottla.protocol import primitives
from ottla.protocol.fields import (
    UUID,
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

SHORT_ARRAY_END = 4
"""Arrays of numbers shorter than this are packed together with what stands before them; replica lists are."""


class WriterSource:
    """Writes `write(message) -> list of chunks`."""

    def __init__(self, message_type: type[Message], version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.source = Source("def write(message):", self._constants())
        self._pending = Run()  # not packed yet
        # The list that parts go to; tagged values have their own, because their length comes first.
        self._parts = "parts"
        self._write_function(message_type)

    @staticmethod
    def _constants() -> dict[str, Any]:
        return {
            "join": b"".join,
            "struct_error": struct.error,
            "VARINT_BYTES": primitives.VARINT_BYTES,
            "write_uvarint": primitives.write_uvarint,
            "write_string_uvarint": primitives.write_string_uvarint,
            "pack_array": primitives.pack_array,
            "chunk_size": primitives.chunk_size,
            "add_records": primitives.add_records,
            "refuse_absent": primitives.refuse_absent,
            "refuse_uuid": primitives.refuse_uuid,
        }

    def _write_function(self, message_type: type[Message]) -> None:
        source = self.source
        with source.block("try:"):
            source.line("chunks = []; parts = []")
            self._struct("message", message_type)
            self._flush()
            source.line("if parts: chunks.append(join(parts))")
            source.line("return chunks")
        with source.block("except (AttributeError, TypeError, ValueError, struct_error) as error:"):
            source.line("raise unencodable(error) from error")

    def _fixed(self, letter: str, *expressions: str) -> None:
        self._pending = self._pending.plus(letter, expressions, self.source.field)

    def _flush(self) -> None:
        letters, expressions, fields = self._pending
        self._pending = Run()
        if expressions:
            pack = self.source.struct_method(letters, "pack")
            self.source.line(f"{self._parts}.append({pack}({', '.join(expressions)}))", fields)
        elif letters:
            self.source.line(f"{self._parts}.append({bytes(len(letters))!r})")

    def _struct(self, owner: str, message_type: type[Message]) -> None:
        tags = []
        for field in fields_of(message_type):
            with self.source.serving(field.name):
                expression = f"{owner}.{field.name}"
                if not field.is_in(self.version):
                    self._absent(field, expression)
                elif field.tag is not None:
                    tags.append(field)
                else:
                    self._value(field.wire, field.is_nullable_in(self.version), expression)
        if self.flexible:
            self._tags(owner, tags)

    def _absent(self, field: Field, expression: str) -> None:
        if field.ignorable:
            return
        condition = self._differs(field, expression)
        self.source.line(f"if {condition}: refuse_absent({self.version})")

    def _differs(self, field: Field, expression: str) -> str:
        """A condition: the field's value is not its default."""
        if field.default is None:
            return f"{expression} is not None"
        if field.default == () or field.default == "":
            also_null = f" or {expression} is None" if field.nullable_since <= self.version else ""
            return f"{expression}{also_null}"
        default = self.source.literal(field.default)
        if isinstance(field.wire, Struct):
            return f"{expression} is not {default} and {expression} != {default}"
        return f"{expression} != {default}"

    def _value(self, wire: WireType, nullable: bool, expression: str) -> None:
        match wire:
            case Fixed(letter, _):
                if wire == UUID:
                    self.source.line(f"if len({expression}) != 16: refuse_uuid({expression})")
                self._fixed(letter, expression)
            case Struct(inner) if not nullable:
                self._struct(self._variable("inner", expression), inner)
            case Struct(inner):
                self._nullable_struct(inner, expression, "-1")
            case Array(element):
                variable = self._variable("array", expression)
                self._maybe_null(nullable, variable, "i", lambda: self._array(variable, element))
            case Text():
                variable = self._variable("text", expression)
                self._maybe_null(nullable, variable, "h", lambda: self._text(variable))
            case Blob():
                variable = self._variable("blob", expression)
                self._maybe_null(nullable, variable, "i", lambda: self._blob(variable))
            case RecordData():
                variable = self._variable("records", expression)
                self._maybe_null(nullable, variable, "i", lambda: self._records(variable))

    def _variable(self, stem: str, expression: str) -> str:
        name = self.source.name(stem)
        self.source.line(f"{name} = {expression}")
        return name

    def _maybe_null(self, nullable: bool, variable: str, letter: str, write: Callable[[], None]) -> None:
        def write_null() -> None:
            if self.flexible:
                self._fixed("x")
            else:
                self._fixed(letter, "-1")

        if nullable:
            self._either(variable, write_null, write)
        else:
            write()

    def _either(self, variable: str, write_null: Callable[[], None], write: Callable[[], None]) -> None:
        """Two branches, each of which packs what is pending."""
        pending = self._pending
        for head, branch in ((f"if {variable} is None:", write_null), ("else:", write)):
            with self.source.block(head):
                self._pending = pending
                branch()
                self._flush()

    def _length(self, length: str, letter: str, continuation: str = "write_uvarint") -> None:
        """Pack what is pending, with a length or count at its end."""
        source = self.source
        if not self.flexible:
            self._fixed(letter, length)
            self._flush()
            return
        biased = source.name("n")
        source.line(f"{biased} = {length} + 1")
        pending = self._pending
        with source.block(f"if {biased} < 128:"):
            if pending.letters:
                self._fixed("B", biased)
                self._flush()
            else:
                source.line(f"{self._parts}.append(VARINT_BYTES[{biased}])")
        with source.block("else:"):
            self._pending = pending
            self._flush()
            source.line(f"{self._parts}.append({continuation}({biased}))")

    def _text(self, variable: str) -> None:
        encoded = self._variable("encoded", f"{variable}.encode()")
        self._length(f"len({encoded})", "h", "write_string_uvarint")
        self.source.line(f"{self._parts}.append({encoded})")

    def _blob(self, variable: str) -> None:
        self._length(f"len({variable})", "i")
        self.source.line(f"{self._parts}.append({variable})")

    def _records(self, variable: str) -> None:
        assert self._parts == "parts", "record data cannot be tagged"
        size = self._variable("size", f"chunk_size({variable})")
        self._length(size, "i")
        self.source.line(f"add_records({variable}, {size}, parts, chunks)")

    def _array(self, variable: str, element: WireType) -> None:
        count = self._variable("count", f"len({variable})")
        if isinstance(element, Fixed):
            self._fixed_array(variable, count, element)
            return
        self._length(count, "i")
        item = self.source.name("item")
        with self.source.block(f"for {item} in {variable}:"):
            if isinstance(element, Struct):
                self._struct(item, element.type)
            else:
                self._value(element, False, item)
            self._flush()

    def _fixed_array(self, variable: str, count: str, element: Fixed) -> None:
        source = self.source
        pending = self._pending
        for length in range(SHORT_ARRAY_END if element != UUID else 1):
            with source.block(f"{'elif' if length else 'if'} {count} == {length}:"):
                items = [f"item_{index}" for index in range(length)]
                if items:
                    source.line(f"{', '.join(items)}, = {variable}")
                self._pending = pending
                if self.flexible:
                    self._fixed("B", str(length + 1))
                else:
                    self._fixed("i", str(length))
                self._fixed(element.letter * length, *items)
                self._flush()
        with source.block("else:"):
            self._pending = pending
            self._length(count, "i")
            source.line(f"{self._parts}.append(pack_array({element.letter!r}, {variable}))")

    def _nullable_struct(self, inner: type[Message], expression: str, null: str) -> None:
        variable = self._variable("inner", expression)
        self._either(variable, lambda: self._fixed("b", null), lambda: self._present(variable, inner))

    def _tagged_field(self, field: Field, expression: str) -> None:
        """A struct that is null is 0 here and -1 everywhere else."""
        nullable = field.is_nullable_in(self.version)
        if isinstance(field.wire, Struct) and nullable:
            self._nullable_struct(field.wire.type, expression, "0")
        else:
            self._value(field.wire, nullable, expression)

    def _present(self, variable: str, inner: type[Message]) -> None:
        self._fixed("b", "1")
        self._struct(variable, inner)

    def _tags(self, owner: str, tags: list[Field]) -> None:
        if not tags:
            self._fixed("x")
            return
        pending, self._pending = self._pending, Run()
        tagged = self._variable("tagged", "[]")
        for field in sorted(tags, key=lambda field: field.tag or 0):
            with self.source.serving(field.name):
                self._tag(field, f"{owner}.{field.name}", tagged)
        self._pending = pending
        self._fixed("B", f"len({tagged})")
        self._flush()
        self.source.line(f"{self._parts} += {tagged}")

    def _tag(self, field: Field, expression: str, tagged: str) -> None:
        source = self.source
        assert field.tag is not None
        with source.block(f"if {self._differs(field, expression)}:"):
            outer, self._parts = self._parts, self._variable("value_parts", "[]")
            self._tagged_field(field, expression)
            self._flush()
            value = self._variable("value", f"join({self._parts})")
            head = primitives.write_uvarint(field.tag)
            source.line(f"{tagged}.append({head!r} + write_uvarint(len({value})) + {value})")
            self._parts = outer
