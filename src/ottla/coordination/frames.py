"""The framing of coordination's files: a versioned header, then records that prove themselves.

A record is a marker, its length, a CRC32C over length and payload, and the payload. The marker lets a reader
find the next whole record behind damage, which tells a torn tail from damage in the middle.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from ottla.model.errors import CorruptData
from ottla.records.crc import crc32c

FORMAT_VERSION = 1
"""Raised when the bytes change their meaning. A newer version than this is refused, never guessed at."""

LOG_MAGIC = b"OttlaLog"
SNAPSHOT_MAGIC = b"OttlaSnp"

_HEADER = struct.Struct(">8sIQI")  # magic, version, zxid, CRC32C of what is before it
HEADER_BYTES = _HEADER.size

_MARKER = b"\xf7\x1eZn"
_FRAME = struct.Struct(">4sII")  # marker, bytes of payload, CRC32C of that length and the payload
FRAME_BYTES = _FRAME.size


def encode_header(magic: bytes, zxid: int) -> bytes:
    head = struct.pack(">8sIQ", magic, FORMAT_VERSION, zxid)
    return head + struct.pack(">I", crc32c(head))


def decode_header(magic: bytes, data: bytes, name: str) -> int | None:
    """The zxid in the header, or None when the header is not whole. CorruptData for a newer version."""
    if len(data) < HEADER_BYTES:
        return None
    found, version, zxid, crc = _HEADER.unpack_from(data)
    if found != magic or crc != crc32c(data[: HEADER_BYTES - 4]):
        return None
    if version > FORMAT_VERSION:
        raise CorruptData(
            f"{name} is of format version {version}, this Ottla reads versions up to {FORMAT_VERSION}: "
            "start it with the Ottla that wrote it, or a newer one"
        )
    return int(zxid)


def encode_frame(payload: bytes) -> bytes:
    size = struct.pack(">I", len(payload))
    return b"".join((_MARKER, size, struct.pack(">I", crc32c(payload, crc32c(size))), payload))


class Frame(NamedTuple):
    position: int
    payload: bytes
    end: int  # position behind it


def frame_at(data: bytes, position: int) -> Frame | None:
    """The whole, undamaged frame at `position`, if there is one."""
    if position + FRAME_BYTES > len(data):
        return None
    marker, size, crc = _FRAME.unpack_from(data, position)
    start = position + FRAME_BYTES
    if marker != _MARKER or start + size > len(data):
        return None
    payload = data[start : start + size]
    if crc32c(payload, crc32c(data[position + 4 : position + 8])) != crc:
        return None
    return Frame(position, payload, start + size)


def frames_behind(data: bytes, position: int) -> Iterator[Frame]:
    """Every whole frame at or behind `position`, found by its marker, whatever lies between them."""
    while (position := data.find(_MARKER, position)) >= 0:
        frame = frame_at(data, position)
        if frame is None:
            position += 1
        else:
            yield frame
            position = frame.end
