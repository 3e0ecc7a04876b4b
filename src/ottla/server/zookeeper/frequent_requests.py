# mypy: disable-error-code="attr-defined,no-any-return,no-untyped-call,unreachable"
"""The requests that make up nearly all of the traffic, read in C where this module is compiled.

Each function gives what a frame asks for, or None when anything about it is unusual (uncompiled: always).
Then the reader that is made from the record's declaration says what it is, or what is wrong with it.
"""

from __future__ import annotations

from typing import Any

from ottla.coordination.acls import OPEN_ACL
from ottla.coordination.operations import Create, Refusal, SetData, create_of_flags, set_data_of
from ottla.coordination.reads import Exists, GetChildren, GetData, get_data_of
from ottla.protocol.primitives import Buffer
from ottla.protocol.zookeeper.headers import decode_request_header

try:
    import cython
except ModuleNotFoundError:  # uncompiled, and Cython is not there: its names are only decoration then
    from ottla.model import cython_shim as cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
    from cython.cimports.cpython.memoryview import PyMemoryView_GET_BUFFER
    from cython.cimports.cpython.unicode import PyUnicode_DecodeUTF8
    from cython.cimports.libc.string import memcmp

_PATH_LENGTH = 8  # where it stands: behind xid and operation
_PATH = 12
# A list of one line: everything, for everybody. Nearly every create has it.
_OPEN_ACL_BYTES = b"\0\0\0\1\0\0\0\x1f\0\0\0\5world\0\0\0\6anyone"
_OPEN_ACL_SIZE = len(_OPEN_ACL_BYTES)


def xid_of(frame: Buffer) -> int:
    """From its header. Raises Malformed when it has none."""
    if cython.compiled and len(frame) >= _PATH_LENGTH:
        return _int(_start(frame), 0)
    return decode_request_header(frame)[0]


def operation_of(frame: Buffer) -> int:
    """The same for the number behind it."""
    if cython.compiled and len(frame) >= _PATH_LENGTH:
        return _int(_start(frame), 4)
    return decode_request_header(frame)[1]


def get_data(frame: Buffer) -> GetData | None:
    if cython.compiled:
        p, size = _start(frame), len(frame)
        length = _length(p, _PATH_LENGTH, size)
        if length >= 0 and _PATH + length < size and (path := _text(p + _PATH, length)) is not None:
            return get_data_of(path, p[_PATH + length] != 0)
    return None


def exists(frame: Buffer) -> Exists | None:
    if cython.compiled:
        p, size = _start(frame), len(frame)
        length = _length(p, _PATH_LENGTH, size)
        if length >= 0 and _PATH + length < size and (path := _text(p + _PATH, length)) is not None:
            return Exists(path, p[_PATH + length] != 0)
    return None


def get_children(frame: Buffer) -> GetChildren | None:
    if cython.compiled:
        p, size = _start(frame), len(frame)
        length = _length(p, _PATH_LENGTH, size)
        if length >= 0 and _PATH + length < size and (path := _text(p + _PATH, length)) is not None:
            return GetChildren(path, p[_PATH + length] != 0)
    return None


def set_data(frame: Buffer) -> SetData | None:
    if cython.compiled:
        p, size = _start(frame), len(frame)
        length = _length(p, _PATH_LENGTH, size)
        if length < 0 or (path := _text(p + _PATH, length)) is None:
            return None
        data_at = _PATH + length + 4
        length = _length(p, data_at - 4, size)
        if length >= 0 and data_at + length + 4 <= size:
            return set_data_of(path, _octets(p + data_at, length), _int(p, data_at + length))
    return None


def create(frame: Buffer) -> Create | Refusal | None:
    if cython.compiled:
        p, size = _start(frame), len(frame)
        length = _length(p, _PATH_LENGTH, size)
        if length < 0 or (path := _text(p + _PATH, length)) is None:
            return None
        data_at = _PATH + length + 4
        length = _length(p, data_at - 4, size)
        acl_at = data_at + length
        if length < 0 or acl_at + _OPEN_ACL_SIZE + 4 > size:
            return None
        if memcmp(p + acl_at, PyBytes_AS_STRING(_OPEN_ACL_BYTES), _OPEN_ACL_SIZE) == 0:
            flags = _int(p, acl_at + _OPEN_ACL_SIZE)
            return create_of_flags(path, _octets(p + data_at, length), OPEN_ACL, flags)
    return None


def _start(frame: Any) -> Any:
    if type(frame) is bytes:
        return cython.cast(cython.p_uchar, PyBytes_AS_STRING(frame))
    return cython.cast(cython.p_uchar, PyMemoryView_GET_BUFFER(frame).buf)


def _int(p: Any, position: int) -> int:
    return cython.cast(
        cython.int,
        cython.cast(cython.uint, p[position]) << 24
        | p[position + 1] << 16
        | p[position + 2] << 8
        | p[position + 3],
    )


def _length(p: Any, position: int, size: int) -> int:
    """Of the text or buffer whose length stands at `position`; negative unless it is there as a whole."""
    if position + 4 > size:
        return -1
    length = _int(p, position)
    return length if length <= size - position - 4 else -1


def _text(p: Any, length: int) -> Any:
    """None when it is not UTF-8."""
    try:
        return PyUnicode_DecodeUTF8(cython.cast(cython.p_char, p), length, cython.NULL)
    except UnicodeDecodeError:
        return None


def _octets(p: Any, length: int) -> Any:
    return PyBytes_FromStringAndSize(cython.cast(cython.p_char, p), length)
