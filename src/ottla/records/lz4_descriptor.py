"""The head of an lz4 frame: magic, flags, block size, maybe the content's size, and a checksum of these.

Kafka before 0.10 took the checksum over the magic too, which no lz4 library forgives: messages of format 0
are put right before they are read, and wrong again when they are written (KIP-57).
"""

from __future__ import annotations

from ottla.records.batch import Bytes
from ottla.records.findings import CorruptRecords

_MAGIC_BYTES = 4
_CONTENT_SIZE = 0x08
_CONTENT_SIZE_BYTES = 8
_MASK = 0xFFFFFFFF
_PRIME_1, _PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393


def with_right_checksum(frame: bytes) -> bytes:
    return _with_checksum(frame, _MAGIC_BYTES)


def with_old_checksum(frame: bytes) -> bytes:
    return _with_checksum(frame, 0)


def _with_checksum(frame: Bytes, start: int) -> bytes:
    if len(frame) < 7:
        raise CorruptRecords(f"{len(frame)} bytes are no lz4 frame")
    end = _MAGIC_BYTES + 2 + (_CONTENT_SIZE_BYTES if frame[_MAGIC_BYTES] & _CONTENT_SIZE else 0)
    checksum = _xxh32(bytes(frame[start:end])) >> 8 & 0xFF
    return bytes(frame[:end]) + bytes((checksum,)) + bytes(frame[end + 1 :])


def _xxh32(data: bytes) -> int:
    """XXH32 with seed 0 of fewer than 16 bytes, all that a frame's head has."""
    assert len(data) < 16
    value = _PRIME_5 + len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        value = value + int.from_bytes(data[at : at + 4], "little") * _PRIME_3 & _MASK
        value = _rotated(value, 17) * _PRIME_4 & _MASK
    for byte in data[whole:]:
        value = value + byte * _PRIME_5 & _MASK
        value = _rotated(value, 11) * _PRIME_1 & _MASK
    value = (value ^ value >> 15) * _PRIME_2 & _MASK
    value = (value ^ value >> 13) * _PRIME_3 & _MASK
    return value ^ value >> 16


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK
