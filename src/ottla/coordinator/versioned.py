"""Keys and values of state records: two bytes of version, then a message of that version."""

from __future__ import annotations

import struct
from typing import TypeVar

from ottla.model.errors import Malformed
from ottla.protocol.codec import decode, encode_bytes
from ottla.protocol.fields import Message

_VERSION = struct.Struct(">h")

M = TypeVar("M", bound=Message)


def encode_versioned(message: Message, version: int) -> bytes:
    return _VERSION.pack(version) + encode_bytes(message, version)


def version_of(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise Malformed(f"{len(data)} bytes have no room for a version")
    version: int = _VERSION.unpack_from(data)[0]
    return version


def decode_versioned(message_type: type[M], data: bytes) -> M:
    version = version_of(data)
    assert message_type.__versions__ is not None
    first, last = message_type.__versions__
    if not first <= version <= last:
        raise Malformed(f"{message_type.__name__} v{version} is not known, only {first} to {last}")
    return decode(message_type, version, data, _VERSION.size)[0]
