# mypy: disable-error-code="untyped-decorator,valid-type,name-defined,misc,no-any-return,no-redef"
"""Passing over batches that need no attention: one source, compiled or not, under the rules of `kernel`.

Who reads a file of small batches spends its time on them one by one. These functions go on from batch to
batch of format 2 as long as there is nothing to do about one, and stop before the first that somebody must
look at: because it is due for it, or because anything about it is not as it should be. They judge nothing.
"""

from __future__ import annotations

from typing import Any

from ottla.records.crc import crc32c

try:
    import cython
except ModuleNotFoundError:  # uncompiled, and Cython is not there: its names are only decoration then
    from ottla.model import cython_shim as cython

if not cython.compiled:
    from ottla.records.kernel_header import Long, Octets, int32, int64, uint32
else:
    from cython.cimports.cpython.buffer import Py_buffer, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
    from cython.cimports.ottla.records._kernel_header import Long, Octets, int32, int64, uint32

CRC_BYTES_MAX = cython.declare(cython.longlong, 2048)  # above it the library is faster, call and all

if cython.compiled:
    # What each byte of eight adds to the checksum of those before it.
    _TABLE = cython.declare(cython.uint[2048])

    def _fill_table() -> None:
        index: cython.int
        value: cython.uint
        polynomial: cython.uint = 0x82F63B78
        for index in range(256):
            value = index
            for _ in range(8):
                value = (value >> 1) ^ polynomial if value & 1 else value >> 1
            _TABLE[index] = value
        for index in range(256, 2048):
            value = _TABLE[index - 256]
            _TABLE[index] = _TABLE[value & 0xFF] ^ (value >> 8)

    _fill_table()


def is_compiled() -> bool:
    return bool(cython.compiled)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _crc32c(p: Octets, pos: Long, end: Long) -> cython.uint:
    if not cython.compiled:
        return crc32c(p[pos:end])
    crc: cython.uint = 0xFFFFFFFF
    low: cython.uint
    while end - pos >= 8:
        low = crc ^ (p[pos] | p[pos + 1] << 8 | p[pos + 2] << 16 | cython.cast(cython.uint, p[pos + 3]) << 24)
        crc = (
            _TABLE[1792 + (low & 0xFF)]
            ^ _TABLE[1536 + (low >> 8 & 0xFF)]
            ^ _TABLE[1280 + (low >> 16 & 0xFF)]
            ^ _TABLE[1024 + (low >> 24)]
            ^ _TABLE[768 + p[pos + 4]]
            ^ _TABLE[512 + p[pos + 5]]
            ^ _TABLE[256 + p[pos + 6]]
            ^ _TABLE[p[pos + 7]]
        )
        pos += 8
    while pos < end:
        crc = _TABLE[(crc ^ p[pos]) & 0xFF] ^ (crc >> 8)
        pos += 1
    return ~crc


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _size_at(p: Octets, pos: Long, end: Long) -> Long:
    """Bytes of the batch of format 2 at `pos`, or -1: it is none, or not all of it is there."""
    if end - pos < 61 or p[pos + 16] != 2:
        return -1
    size: Long = int32(p, pos + 8) + 12
    return size if 61 <= size <= end - pos else -1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _pass_valid(
    p: Octets,
    pos: Long,
    last_pos: Long,
    end: Long,
    next_offset: Long,
    end_offset: Long,
    checked_offset: Long,
    epoch_max: Long,
) -> tuple[Long, Long, Long, Long]:
    """Position and offset behind the last batch passed; the largest timestamp of them, and where it is."""
    max_timestamp: Long = -1
    max_offset: Long = -1
    size: Long
    base: Long
    last: Long
    while pos <= last_pos:
        size = _size_at(p, pos, end)
        if size < 0 or size > CRC_BYTES_MAX or int32(p, pos + 12) > epoch_max:
            break
        base = int64(p, pos)
        last = int32(p, pos + 23)
        if base < next_offset or last < 0 or last >= end_offset - base:
            break
        last += base
        if last >= checked_offset and _crc32c(p, pos + 21, pos + size) != uint32(p, pos + 17):
            break
        if int64(p, pos + 35) > max_timestamp and int32(p, pos + 57) != 0:  # it may have been emptied
            max_timestamp = int64(p, pos + 35)
            max_offset = last
        next_offset = last + 1
        pos += size
    return pos, next_offset, max_timestamp, max_offset


def pass_valid(
    data: Any,
    position: Long,
    last_position: Long,
    next_offset: Long,
    end_offset: Long,
    checked_offset: Long,
    epoch_max: Long,
) -> tuple[int, int, int, int]:
    """Over batches that begin at `last_position` or before, are whole, in order from `next_offset`, below
    `end_offset`, not of an epoch above `epoch_max`, and right by their checksum if they reach to
    `checked_offset`.

    Gives the position and the offset behind them, the largest timestamp among them or -1, and the last offset
    of its batch.
    """
    if not cython.compiled:
        octets = memoryview(data)
        return _pass_valid(
            octets,
            position,
            last_position,
            len(octets),
            next_offset,
            end_offset,
            checked_offset,
            epoch_max,
        )
    buffer = cython.declare(Py_buffer)
    PyObject_GetBuffer(data, cython.address(buffer), PyBUF_SIMPLE)
    p: Octets = cython.cast(Octets, buffer.buf)
    end: Long = buffer.len
    passed: tuple[Long, Long, Long, Long]
    with cython.nogil:
        passed = _pass_valid(
            p, position, last_position, end, next_offset, end_offset, checked_offset, epoch_max
        )
    PyBuffer_Release(cython.address(buffer))
    return passed


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _pass_unnamed(p: Octets, pos: Long, end: Long) -> Long:
    size: Long
    while pos < end:
        size = _size_at(p, pos, end)
        if size < 0 or int64(p, pos + 43) >= 0:
            break
        pos += size
    return pos


def pass_unnamed(data: Any, position: Long) -> int:
    """Over whole batches that no idempotent producer has written; the position behind them."""
    if not cython.compiled:
        return _pass_unnamed(memoryview(data), position, len(data))
    buffer = cython.declare(Py_buffer)
    PyObject_GetBuffer(data, cython.address(buffer), PyBUF_SIMPLE)
    passed: Long = _pass_unnamed(cython.cast(Octets, buffer.buf), position, buffer.len)
    PyBuffer_Release(cython.address(buffer))
    return passed
