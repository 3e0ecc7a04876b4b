"""Varints, lengths and chunks: what compiled readers and writers call when a value takes the long way.

Readers raise `ValueError` with a reason; `codec` adds the field and the position and makes it `Malformed`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NoReturn, Protocol, TypeAlias

from ottla.model.limits import STRING_BYTES_MAX, TAGGED_FIELDS_MAX

Buffer: TypeAlias = bytes | memoryview
"""What is decoded: a frame, or bytes from a file."""


class ByteSource(Protocol):
    """Bytes that are not in memory, such as a range of a file; who sends the answer knows how to send it."""

    @property
    def size(self) -> int: ...


Chunk: TypeAlias = bytes | bytearray | memoryview | ByteSource

CHUNK_BYTES_COPIED_MAX = 4096
"""Record data up to this size is copied into the bytes around it; a chunk of its own would cost more."""

SMALL_ARRAY_END = 9
"""Arrays of numbers shorter than this are read with a prepared struct; replica lists nearly always are."""

VARINT_BYTES = tuple(bytes((value,)) for value in range(128))
_IN_MEMORY = (bytes, bytearray, memoryview)
_PACK_2 = struct.Struct("BB").pack
_PACK_3 = struct.Struct("BBB").pack


def read_uvarint(data: Buffer, position: int, first: int) -> tuple[int, int]:
    """The rest of an unsigned varint whose first byte, at `position - 1`, has its high bit set."""
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFF_FFFF:
                break
            return value, position
    raise ValueError("the varint is longer than 32 bits")


def read_string_uvarint(data: Buffer, position: int, first: int) -> tuple[int, int]:
    """As `read_uvarint`, for the length of a compact string plus one."""
    value, position = read_uvarint(data, position, first)
    if value > STRING_BYTES_MAX + 1:
        raise ValueError(f"a string of {value - 1} bytes is longer than {STRING_BYTES_MAX}")
    return value, position


def write_uvarint(value: int) -> bytes:
    if value < 1 << 7:
        return VARINT_BYTES[value]
    if value < 1 << 14:
        return _PACK_2(value & 0x7F | 0x80, value >> 7)
    if value < 1 << 21:
        return _PACK_3(value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14)
    low = _PACK_3(value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14 & 0x7F | 0x80)
    return low + write_uvarint(value >> 21)


def write_string_uvarint(value: int) -> bytes:
    """As `write_uvarint`, for the length of a compact string plus one."""
    if value > STRING_BYTES_MAX + 1:
        raise ValueError(f"a string of {value - 1} bytes is longer than {STRING_BYTES_MAX}")
    return write_uvarint(value)


def refuse_length(length: int, remaining: int) -> NoReturn:
    if length < 0:
        raise ValueError(f"a length of {length} is not valid here")
    raise ValueError(f"a length of {length} is more than the {remaining} bytes that remain")


def refuse_count(count: int, remaining: int) -> NoReturn:
    if count < 0:
        raise ValueError(f"an array of {count} elements is not valid here")
    raise ValueError(
        f"an array of {count} elements does not fit the {remaining} bytes that remain,"
        " or is more than one message may have"
    )


def refuse_tag_end(position: int, end: int) -> NoReturn:
    raise ValueError(f"the tagged field's value ends at byte {position}, its declared length at {end}")


def refuse_absent(version: int) -> NoReturn:
    raise ValueError(f"version {version} cannot carry this field, and its value is not the default")


def refuse_uuid(value: bytes) -> NoReturn:
    raise ValueError(f"an id has 16 bytes, not {len(value)}")


def read_tag_count(data: Buffer, position: int, first: int, left: int) -> tuple[int, int]:
    """How many tagged fields follow, and where; `left` is what the message may still have in all."""
    count = first
    if first > 0x7F:
        count, position = read_uvarint(data, position, first)
    if count > TAGGED_FIELDS_MAX or count > left:
        raise ValueError(f"{count} tagged fields are more than {min(TAGGED_FIELDS_MAX, left)}")
    return count, position


def read_tag(data: Buffer, position: int) -> tuple[int, int, int]:
    """Tag, start and end of the tagged field at `position`."""
    tag = data[position]
    position += 1
    if tag > 0x7F:
        tag, position = read_uvarint(data, position, tag)
    length = data[position]
    position += 1
    if length > 0x7F:
        length, position = read_uvarint(data, position, length)
    if length > len(data) - position:
        refuse_length(length, len(data) - position)
    return tag, position, position + length


def skip_tags(data: Buffer, position: int, first: int, left: int) -> tuple[int, int]:
    """The position after a section of tagged fields none of which is known, and what is then left."""
    count, position = read_tag_count(data, position, first, left)
    for _ in range(count):
        _, _, position = read_tag(data, position)
    return position, left - count


def unpack_array(letter: str, size: int, count: int, data: Buffer, position: int) -> tuple[Any, ...]:
    """`count` values of one struct letter; the caller has checked that they are there."""
    if letter == "16s":
        return tuple(bytes(data[at : at + size]) for at in range(position, position + count * size, size))
    return struct.Struct(f">{count}{letter}").unpack_from(data, position)


def pack_array(letter: str, values: Sequence[Any]) -> bytes:
    if letter == "16s":
        for value in values:
            if len(value) != 16:
                refuse_uuid(value)
        return b"".join(values)
    return struct.Struct(f">{len(values)}{letter}").pack(*values)


@cache
def small_array_unpackers(letter: str) -> tuple[Callable[..., tuple[Any, ...]], ...]:
    return tuple(struct.Struct(f">{letter * count}").unpack_from for count in range(SMALL_ARRAY_END))


def chunk_size(chunk: Chunk) -> int:
    if isinstance(chunk, _IN_MEMORY):
        return len(chunk)
    return chunk.size


def add_records(records: Chunk, size: int, parts: list[bytes], chunks: list[Chunk]) -> None:
    """Put record data behind `parts`: copied when small, else as a chunk of its own."""
    if size <= CHUNK_BYTES_COPIED_MAX and isinstance(records, _IN_MEMORY):
        parts.append(bytes(records))
        return
    chunks.append(b"".join(parts))
    parts.clear()
    chunks.append(records)
