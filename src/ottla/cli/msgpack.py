"""Reads MessagePack (https://msgpack.org) into Python values, as far as JSON can show them."""

from __future__ import annotations

import struct
from typing import Any

_DEPTH_MAX = 100  # deeper than any sane message, far from the interpreter's limit
_NUMBERS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
    0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
_LENGTHS = {
    0xC4: ">B", 0xC5: ">H", 0xC6: ">I",  # binary
    0xD9: ">B", 0xDA: ">H", 0xDB: ">I",  # text
    0xDC: ">H", 0xDD: ">I",  # array
    0xDE: ">H", 0xDF: ">I",  # map
}  # fmt: skip


def decode_msgpack(data: bytes) -> Any:
    """One whole value. Raises ValueError."""
    reader = _Reader(data)
    try:
        value = reader.value(0)
    except (struct.error, IndexError):
        raise ValueError("it ends too early") from None
    if reader.position != len(data):
        raise ValueError(f"{len(data) - reader.position} bytes are behind its end")
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def value(self, depth: int) -> Any:
        if depth > _DEPTH_MAX:
            raise ValueError("it is nested too deeply")
        kind = self._number(">B")
        if kind <= 0x7F:
            return kind
        if kind >= 0xE0:
            return kind - 0x100
        if kind <= 0x8F:
            return self._map(kind & 0x0F, depth)
        if kind <= 0x9F:
            return self._array(kind & 0x0F, depth)
        if kind <= 0xBF:
            return self._text(kind & 0x1F)
        if kind in (0xC0, 0xC2, 0xC3):
            return {0xC0: None, 0xC2: False, 0xC3: True}[kind]
        if kind in _NUMBERS:
            return self._number(_NUMBERS[kind])
        if kind not in _LENGTHS:
            raise ValueError(f"the type {kind:#x} is not shown")
        length = self._number(_LENGTHS[kind])
        if kind <= 0xC6:
            return self._bytes(length).decode("latin-1")
        if kind <= 0xDB:
            return self._text(length)
        return self._array(length, depth) if kind <= 0xDD else self._map(length, depth)

    def _number(self, form: str) -> Any:
        (number,) = struct.unpack_from(form, self.data, self.position)
        self.position += struct.calcsize(form)
        return number

    def _bytes(self, length: int) -> bytes:
        if length > len(self.data) - self.position:
            raise IndexError
        self.position += length
        return self.data[self.position - length : self.position]

    def _text(self, length: int) -> str:
        return self._bytes(length).decode(errors="replace")

    def _array(self, length: int, depth: int) -> list[Any]:
        return [self.value(depth + 1) for _ in range(length)]

    def _map(self, length: int, depth: int) -> dict[str, Any]:
        return {str(self.value(depth + 1)): self.value(depth + 1) for _ in range(length)}
