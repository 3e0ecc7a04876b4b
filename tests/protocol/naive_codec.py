"""The encoding as the protocol guide states it, one value at a time: slow, but simple enough to trust."""

from __future__ import annotations

import struct
from typing import Any

from ottla.protocol.codec import is_flexible
from ottla.protocol.fields import Array, Fixed, Message, Struct, Text, WireType, fields_of


def naive_encode(message: Message, version: int) -> bytes:
    return _struct(message, version, is_flexible(type(message), version))


def _varint(value: int) -> bytes:
    return bytes((value,)) if value < 128 else bytes((value % 128 + 128,)) + _varint(value // 128)


def _struct(message: Message, version: int, flexible: bool) -> bytes:
    plain = b""
    tagged = {}
    for field in fields_of(type(message)):
        if not field.is_in(version):
            continue
        value = getattr(message, field.name)
        encoded = _value(field.wire, value, field.is_nullable_in(version), version, flexible)
        if field.tag is None:
            plain += encoded
        elif value != field.default:
            tagged[field.tag] = encoded if value is not None or not isinstance(field.wire, Struct) else b"\0"
    if not flexible:
        return plain
    section = b"".join(_varint(tag) + _varint(len(tagged[tag])) + tagged[tag] for tag in sorted(tagged))
    return plain + _varint(len(tagged)) + section


def _value(wire: WireType, value: Any, nullable: bool, version: int, flexible: bool) -> bytes:
    match wire:
        case Fixed(letter, _):
            return struct.pack(">" + letter, value)
        case Struct():
            if value is None:
                return b"\xff"
            return (b"\x01" if nullable else b"") + _struct(value, version, flexible)
        case Array(element):
            items = b"".join(_value(element, item, False, version, flexible) for item in value or ())
            return _length(value, "i", flexible) + items
        case Text():
            encoded = None if value is None else value.encode()
            return _length(encoded, "h", flexible) + (encoded or b"")
    return _length(value, "i", flexible) + (value or b"")


def _length(value: Any, letter: str, flexible: bool) -> bytes:
    if flexible:
        return _varint(0 if value is None else len(value) + 1)
    return struct.pack(">" + letter, -1 if value is None else len(value))
