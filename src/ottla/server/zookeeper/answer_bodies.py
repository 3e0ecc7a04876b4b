# mypy: disable-error-code="attr-defined,no-any-return,no-untyped-call,unreachable"
"""The bytes of answers that make up nearly all of the traffic, written in C where this module is compiled.

Uncompiled, the writers that are made from the records' declarations do it; both give the same bytes.
"""

from __future__ import annotations

from typing import Any

from ottla.coordination.client import Answer
from ottla.coordination.operations import Result
from ottla.coordination.stat import Stat
from ottla.protocol.zookeeper import headers
from ottla.protocol.zookeeper.jute import writer
from ottla.protocol.zookeeper.records import ChildrenResponse, DataResponse, StatResponse

try:
    import cython
except ModuleNotFoundError:  # uncompiled, and Cython is not there: its names are only decoration then
    from ottla.model import cython_shim as cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
    from cython.cimports.libc.string import memcpy
    from cython.cimports.ottla.model._big_endian import put_int, put_long

_STAT_BYTES = 68
_HEADER_BYTES = 20  # length, xid, zxid, error


def encode_reply(xid: int, zxid: int, error: int, body: bytes = b"") -> bytes:
    """In a frame."""
    if cython.compiled:
        size = len(body)
        reply = PyBytes_FromStringAndSize(cython.NULL, _HEADER_BYTES + size)
        p = _start(reply)
        put_int(p, _HEADER_BYTES - 4 + size)
        put_int(p + 4, xid)
        put_long(p + 8, zxid)
        put_int(p + 16, error)
        memcpy(p + _HEADER_BYTES, PyBytes_AS_STRING(body), size)
        return reply
    return headers.encode_reply(xid, zxid, error, body)


def of_exists(answer: Answer) -> bytes:
    return encode_stat(answer.value)


def of_get_data(answer: Answer) -> bytes:
    data, stat = answer.value
    return encode_data(data, stat)


def of_get_children2(answer: Answer) -> bytes:
    names, stat = answer.value
    return encode_children(names, stat)


def of_set_data(result: Result) -> bytes:
    stat = result.steps[0].stat
    assert stat is not None
    return encode_stat(stat)


def encode_stat(stat: Stat) -> bytes:
    if cython.compiled:
        body = PyBytes_FromStringAndSize(cython.NULL, _STAT_BYTES)
        _put_stat(_start(body), stat)
        return body
    return _declared(StatResponse, stat)


def encode_data(data: bytes | None, stat: Stat) -> bytes:
    if cython.compiled:
        size = 0 if data is None else len(data)
        body = PyBytes_FromStringAndSize(cython.NULL, 4 + size + _STAT_BYTES)
        p = _start(body)
        if data is None:
            put_int(p, -1)
        else:
            put_int(p, size)
            memcpy(p + 4, PyBytes_AS_STRING(data), size)
        _put_stat(p + 4 + size, stat)
        return body
    return _declared(DataResponse, data, stat)


def encode_children(names: list[str], stat: Stat) -> bytes:
    if cython.compiled:
        encoded = [name.encode() for name in names]
        size = 4 + _STAT_BYTES
        for name_bytes in encoded:
            size += 4 + len(name_bytes)
        body = PyBytes_FromStringAndSize(cython.NULL, size)
        p = _start(body)
        put_int(p, len(encoded))
        p += 4
        for name_bytes in encoded:
            length = len(name_bytes)
            put_int(p, length)
            memcpy(p + 4, PyBytes_AS_STRING(name_bytes), length)
            p += 4 + length
        _put_stat(p, stat)
        return body
    return _declared(ChildrenResponse, names, stat)


def _declared(record: type[Any], *fields: Any) -> bytes:
    return writer(record)(fields)


def _start(reply: Any) -> Any:
    return cython.cast(cython.p_uchar, PyBytes_AS_STRING(reply))


def _put_stat(p: Any, stat: Stat) -> None:
    put_long(p, stat.czxid)
    put_long(p + 8, stat.mzxid)
    put_long(p + 16, stat.ctime_ms)
    put_long(p + 24, stat.mtime_ms)
    put_int(p + 32, stat.version)
    put_int(p + 36, stat.cversion)
    put_int(p + 40, stat.aversion)
    put_long(p + 44, stat.ephemeral_owner)
    put_int(p + 52, stat.data_length)
    put_int(p + 56, stat.num_children)
    put_long(p + 60, stat.pzxid)
