# mypy: disable-error-code="no-any-return"
"""Writes the values of a frame one after the other, for the answers that a busy broker gives most.

What it writes is what `codec` would: the tests compare them.
"""

from __future__ import annotations

from typing import Any

try:
    import cython
except ModuleNotFoundError:  # uncompiled, and Cython is not there: its names are only decoration then
    from ottla.model import cython_shim as cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING, PyByteArray_Resize
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
    from cython.cimports.libc.string import memcpy

_ROOM_BYTES = 256  # most answers are shorter


class FrameWriter:
    __slots__ = ("_capacity", "_octets", "_room", "position")

    _start: Any  # compiled: room within the object, enough for most answers

    def __init__(self, correlation_id: int, flexible: bool) -> None:
        """Begins with the size, which `frame` knows, and the response's header."""
        self._room = bytearray()  # compiled: for what does not fit there
        self._capacity = 0
        if cython.compiled:
            self._octets = self._start
            self._capacity = 256
        self.position = 4
        self._reserve(16)
        self.int32(correlation_id)
        if flexible:
            self.int8(0)

    def _reserve(self, size: int) -> None:
        """`size` more bytes fit."""
        if self.position + size > self._capacity:
            self._grow(size)

    def _grow(self, size: int) -> None:
        self._capacity = max(_ROOM_BYTES, (self.position + size) * 2)
        if cython.compiled:
            is_first = len(self._room) == 0
            PyByteArray_Resize(self._room, self._capacity)
            self._octets = cython.cast("unsigned char *", PyByteArray_AS_STRING(self._room))
            if is_first:
                memcpy(self._octets, self._start, self.position)
        else:
            self._room += bytes(self._capacity - len(self._room))
            self._octets = self._room

    def int8(self, value: int) -> None:
        self._reserve(1)
        self._octets[self.position] = value & 0xFF
        self.position += 1

    def int16(self, value: int) -> None:
        self._reserve(2)
        at = self.position
        self._octets[at] = value >> 8 & 0xFF
        self._octets[at + 1] = value & 0xFF
        self.position = at + 2

    def int32(self, value: int) -> None:
        self._reserve(4)
        at = self.position
        self._octets[at] = value >> 24 & 0xFF
        self._octets[at + 1] = value >> 16 & 0xFF
        self._octets[at + 2] = value >> 8 & 0xFF
        self._octets[at + 3] = value & 0xFF
        self.position = at + 4

    def int64(self, value: int) -> None:
        self.int32(value >> 32)
        self.int32(value)

    def uvarint(self, value: int) -> None:
        while value > 0x7F:
            self.int8(value & 0x7F | 0x80)
            value >>= 7
        self.int8(value)

    def raw(self, value: bytes) -> None:
        size = len(value)
        self._reserve(size)
        at = self.position
        if cython.compiled:
            memcpy(self._octets + at, cython.cast("const unsigned char *", value), size)
        else:
            self._room[at : at + size] = value
        self.position = at + size

    def string(self, value: str, compact: bool) -> None:
        encoded = value.encode()
        if compact:
            self.uvarint(len(encoded) + 1)
        else:
            self.int16(len(encoded))
        self.raw(encoded)

    def count(self, value: int, compact: bool) -> None:
        """Of an array's elements."""
        if compact:
            self.uvarint(value + 1)
        else:
            self.int32(value)

    def frame(self, behind: int = 0) -> bytes:
        """All of it; `behind` bytes of the frame follow from elsewhere."""
        end = self.position
        self.position = 0
        self.int32(end - 4 + behind)
        self.position = end
        if cython.compiled:
            return PyBytes_FromStringAndSize(cython.cast("const char *", self._octets), end)
        return bytes(self._room[:end])
