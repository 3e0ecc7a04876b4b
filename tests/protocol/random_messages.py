"""Seeded random messages of any declared type and version."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from typing import Any

from ottla.protocol.apis import APIS
from ottla.protocol.fields import (
    UUID,
    Array,
    Blob,
    Fixed,
    Message,
    RecordData,
    Struct,
    Text,
    WireType,
    fields_of,
)

KNOWN_ERROR_CODES = range(-1, 120)  # those that kio of today has names for
TIMESTAMP_S_MAX = 253_402_300_799  # the end of the year 9999; kio reads dates, through floats

ALPHABET = "abcdefghij.-_ßé日本🦦 "


def declared_messages() -> Iterator[tuple[type[Message], int]]:
    """Every request and response at every version."""
    for api in APIS.values():
        first, last = api.versions
        for version in range(first, last + 1):
            yield api.request, version
            yield api.response, version


def random_message(rng: random.Random, message_type: type[Message], version: int) -> Message:
    """A message whose fields are those of the version, the others at their defaults."""
    values = {}
    for field in fields_of(message_type):
        if not field.is_in(version):
            continue
        if field.tag is not None and rng.random() < 0.4:
            continue
        if field.is_nullable_in(version) and rng.random() < 0.3:
            values[field.name] = None
        else:
            values[field.name] = _random_value(rng, field.name, field.wire, version)
    return message_type(**values)


def _random_value(rng: random.Random, name: str, wire: WireType, version: int) -> Any:
    match wire:
        case Fixed():
            return _random_fixed(rng, name, wire)
        case Text():
            return "".join(rng.choices(ALPHABET, k=_random_length(rng, 140)))
        case Blob() | RecordData():
            return rng.randbytes(_random_length(rng, 300))
        case Array(element):
            count = _random_length(rng, 130 if isinstance(element, Fixed) else 3)
            return tuple(_random_value(rng, name, element, version) for _ in range(count))
        case Struct(inner):
            return random_message(rng, inner, version)
    raise AssertionError(wire)


def _random_length(rng: random.Random, length_max: int) -> int:
    """Mostly short; now and then long enough for a varint of two bytes."""
    return rng.randint(0, length_max) if rng.random() < 0.2 else rng.randint(0, min(5, length_max))


def _random_fixed(rng: random.Random, name: str, wire: Fixed) -> Any:
    if wire == UUID:
        return rng.choice((bytes(16), rng.randbytes(16)))
    if name.endswith("error_code"):
        return rng.choice(KNOWN_ERROR_CODES)
    if name in ("retention_time_ms", "session_lifetime_ms"):  # kio reads a span of time, through floats
        return rng.randint(-1, TIMESTAMP_S_MAX)
    if name == "transaction_start_time_ms":  # kio knows no transaction without one
        return 1000 * rng.randint(0, TIMESTAMP_S_MAX)
    if name == "log_append_time_ms":
        return rng.choice((-1, 1000 * rng.randint(0, TIMESTAMP_S_MAX)))
    corners = bytes(wire.size), b"\xff" * wire.size, b"\x7f" + b"\xff" * (wire.size - 1)
    return struct.unpack(">" + wire.letter, rng.choice((*corners, rng.randbytes(wire.size))))[0]
