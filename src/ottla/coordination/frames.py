# mypy: disable-error-code="attr-defined,no-any-return"
"""The framing of coordination's files: a versioned header, then records that prove themselves.

A record is a marker, the file's tag, its length, a CRC32C over length and payload, and the payload. The
marker lets a reader find the next whole record behind damage, which tells a torn tail from damage in the
middle. The tag is drawn at random, so that no client can store bytes that look like a record of ours.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache

from ottla.model.crc import crc32c
from ottla.model.problems import CorruptData
from ottla.model.values import NamedTuple

try:
    import cython
except ModuleNotFoundError:  # uncompiled, and Cython is not there: its names are only decoration then
    from ottla.model import cython_shim as cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
    from cython.cimports.libc.string import memcpy
    from cython.cimports.ottla.model._big_endian import put_int

FORMAT_VERSION = 2
"""Raised when the bytes change their meaning. Another version than this is refused, never guessed at."""

LOG_MAGIC = b"OttlaLog"
SNAPSHOT_MAGIC = b"OttlaSnp"

_HEADER = struct.Struct(">8sIQII")  # magic, version, zxid, tag, CRC32C of what is before it
HEADER_BYTES = _HEADER.size

_MARKER = b"\xf7\x1eZn"
_FRAME = struct.Struct(">4sIII")  # marker, tag, bytes of payload, CRC32C of that length and the payload
FRAME_BYTES = _FRAME_BYTES = _FRAME.size
_LENGTHS_KEPT = 64  # of payloads, with the checksum that begins with them


class Header(NamedTuple):
    zxid: int  # of a log: the first transaction in it; of a snapshot: the last one that it holds
    tag: int


def encode_header(magic: bytes, header: Header) -> bytes:
    head = struct.pack(">8sIQI", magic, FORMAT_VERSION, header.zxid, header.tag)
    return head + struct.pack(">I", crc32c(head))


def decode_header(magic: bytes, data: bytes, name: str) -> Header | None:
    """None when the header is not whole. CorruptData for another version."""
    if len(data) < HEADER_BYTES:
        return None
    found, version, zxid, tag, crc = _HEADER.unpack_from(data)
    if found != magic or crc != crc32c(data[: HEADER_BYTES - 4]):
        return None
    if version != FORMAT_VERSION:
        raise CorruptData(
            f"{name} is of format version {version}, this Ottla reads version {FORMAT_VERSION}: "
            "start it with the Ottla that wrote it"
        )
    return Header(zxid, tag)


@lru_cache(_LENGTHS_KEPT)
def _crc_of_length(size: int) -> int:
    return crc32c(struct.pack(">I", size))


def encode_frame(payload: bytes, tag: int) -> bytes:
    size = len(payload)
    crc = crc32c(payload, _crc_of_length(size))
    if cython.compiled:
        frame = PyBytes_FromStringAndSize(cython.NULL, _FRAME_BYTES + size)
        p = cython.cast(cython.p_uchar, PyBytes_AS_STRING(frame))
        memcpy(p, PyBytes_AS_STRING(_MARKER), 4)
        put_int(p + 4, tag)
        put_int(p + 8, size)
        put_int(p + 12, crc)
        memcpy(p + _FRAME_BYTES, PyBytes_AS_STRING(payload), size)
        return frame
    return _FRAME.pack(_MARKER, tag, size, crc) + payload


class Frame(NamedTuple):
    payload: bytes
    end: int  # position behind it


def frame_at(data: bytes, position: int, tag: int | None) -> Frame | None:
    """The whole, undamaged frame at `position`, if there is one; of any tag when the file's is not known."""
    if position + FRAME_BYTES > len(data):
        return None
    marker, frame_tag, size, crc = _FRAME.unpack_from(data, position)
    start = position + FRAME_BYTES
    if marker != _MARKER or (tag is not None and tag != frame_tag) or start + size > len(data):
        return None
    payload = data[start : start + size]
    if crc32c(payload, crc32c(data[position + 8 : position + 12])) != crc:
        return None
    return Frame(payload, start + size)


def frames_behind(data: bytes, position: int, tag: int | None) -> Iterator[Frame]:
    """Every whole frame at or behind `position`, found by its marker, whatever lies between them."""
    while (position := data.find(_MARKER, position)) >= 0:
        frame = frame_at(data, position, tag)
        if frame is None:
            position += 1
        else:
            yield frame
            position = frame.end
