# mypy: disable-error-code="no-any-return"
"""Reads the values of a frame one after the other, for the requests that a busy broker gets most.

It knows the usual only. What it cannot read (too few bytes, lengths that are not valid, tagged fields, text
that is not UTF-8) makes it `is_broken`, and what it gives from then on means nothing: its caller leaves such
a frame to `codec`, which reads everything, and says what is wrong with the rest. So nothing here raises for
what a peer sent. Compiled it reads memory by position: each read is checked against the end of the frame.
"""

from __future__ import annotations

from ottla.model.limits import STRING_BYTES_MAX
from ottla.protocol.primitives import Buffer

try:
    import cython
except ModuleNotFoundError:  # uncompiled, and Cython is not there: its names are only decoration then
    from ottla.model import cython_shim as cython

if cython.compiled:
    from cython.cimports.cpython.buffer import Py_buffer, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
    from cython.cimports.cpython.unicode import PyUnicode_DecodeUTF8


class FrameReader:
    __slots__ = ("_end", "_frame", "_octets", "is_broken", "position")

    def __init__(self, frame: Buffer, position: int) -> None:
        """`frame` is immutable, or a view of something that nobody changes: it is not asked again."""
        self._frame = frame
        if cython.compiled:
            buffer = cython.declare(Py_buffer)
            PyObject_GetBuffer(frame, cython.address(buffer), PyBUF_SIMPLE)
            self._octets = cython.cast("const unsigned char *", buffer.buf)
            self._end = buffer.len
            PyBuffer_Release(cython.address(buffer))  # the reference to the frame keeps its bytes in place
        else:
            self._octets = frame
            self._end = len(frame)
        self.position = position
        self.is_broken = position > self._end

    def _has(self, size: int) -> bool:
        if size <= self._end - self.position:
            return True
        self.is_broken = True
        return False

    # -- numbers -------------------------------------------------------------------------------------------

    def int8(self) -> int:
        at = self.position
        if not self._has(1):
            return 0
        self.position = at + 1
        value = self._octets[at]
        return value - ((value & 0x80) << 1)

    def int16(self) -> int:
        at = self.position
        if not self._has(2):
            return 0
        self.position = at + 2
        value = self._octets[at]
        value = value << 8 | self._octets[at + 1]
        return value - ((value & 0x8000) << 1)

    def int32(self) -> int:
        at = self.position
        if not self._has(4):
            return 0
        self.position = at + 4
        value = self._octets[at]
        value = value << 8 | self._octets[at + 1]
        value = value << 8 | self._octets[at + 2]
        value = value << 8 | self._octets[at + 3]
        return value - ((value >> 31) << 32)

    def int64(self) -> int:
        high = self.int32()
        return high * 65536 * 65536 + (self.int32() & 0xFFFF_FFFF)

    def uvarint(self) -> int:
        value = 0
        shift = 0
        while shift < 28 and self._has(1):
            byte = self._octets[self.position]
            self.position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        self.is_broken = True  # no length of ours has more than 28 bits
        return 0

    def count(self, compact: bool, limit: int) -> int:
        """Of the elements of an array that is not null; at most `limit` of them."""
        value = self.uvarint() - 1 if compact else self.int32()
        if 0 <= value <= limit:
            return value
        self.is_broken = True
        return 0

    # -- text and bytes ------------------------------------------------------------------------------------

    def string(self, compact: bool) -> str:
        size = self.uvarint() - 1 if compact else self.int16()
        if size < 0:
            self.is_broken = True
            return ""
        return self._text(size)

    def nullable_string(self, compact: bool) -> str | None:
        size = self.uvarint() - 1 if compact else self.int16()
        if size == -1:
            return None
        return self._text(size)

    def _text(self, size: int) -> str:
        if self.is_broken or not 0 <= size <= STRING_BYTES_MAX or not self._has(size):
            self.is_broken = True
            return ""
        at = self.position
        self.position = at + size
        try:
            if cython.compiled:
                text = PyUnicode_DecodeUTF8(cython.cast("const char *", self._octets) + at, size, "strict")
            else:
                text = str(self._frame[at : at + size], "utf-8")
        except UnicodeDecodeError:
            self.is_broken = True
            return ""
        return text

    def uuid(self) -> bytes:
        at = self.position
        if not self._has(16):
            return b""
        self.position = at + 16
        if cython.compiled:
            return PyBytes_FromStringAndSize(cython.cast("const char *", self._octets) + at, 16)
        return bytes(self._frame[at : at + 16])

    def nullable_view(self, compact: bool) -> Buffer | None:
        """Bytes where they are, where the frame is a view; else a copy."""
        size = self.uvarint() - 1 if compact else self.int32()
        if size == -1:
            return None
        if self.is_broken or size < 0 or not self._has(size):
            self.is_broken = True
            return None
        at = self.position
        self.position = at + size
        if cython.compiled and type(self._frame) is bytes:
            return PyBytes_FromStringAndSize(cython.cast("const char *", self._octets) + at, size)
        return self._frame[at : at + size]

    def no_tags(self, compact: bool) -> None:
        """The end of a struct: where it could have tagged fields there are none, as nearly always."""
        if compact and self.uvarint() != 0:
            self.is_broken = True
