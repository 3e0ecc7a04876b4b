"""What members of a classic group of consumers tell each other: subscriptions and assignments.

A version, then a message of that version (Kafka's ConsumerProtocolSubscription and -Assignment). Versions
newer than ours are read too: they only add fields at the end.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Annotated, TypeVar

from ottla.model.errors import Malformed
from ottla.protocol.codec import decode, encode_bytes
from ottla.protocol.fields import Int32, Message, ignorable, since

PROTOCOL_TYPE = "consumer"
VERSION_MAX = 3

_VERSION = struct.Struct(">h")

M = TypeVar("M", bound=Message)


class TopicPartitions(Message):
    topic: str = ""
    partitions: Sequence[Int32] = ()


class Subscription(Message, versions=(0, VERSION_MAX)):
    topics: Sequence[str] = ()
    user_data: bytes | None = None
    owned_partitions: Annotated[Sequence[TopicPartitions], since(1), ignorable] = ()  # KIP-429
    generation_id: Annotated[Int32, since(2), ignorable] = -1  # in which they were owned
    rack_id: Annotated[str | None, since(3), ignorable] = None


class Assignment(Message, versions=(0, VERSION_MAX)):
    assigned_partitions: Sequence[TopicPartitions] = ()
    user_data: bytes | None = None


def encode_subscription(subscription: Subscription, version: int = VERSION_MAX) -> bytes:
    return _VERSION.pack(version) + encode_bytes(subscription, version)


def encode_assignment(assignment: Assignment, version: int) -> bytes:
    return _VERSION.pack(version) + encode_bytes(assignment, version)


def decode_subscription(data: bytes) -> Subscription:
    """Malformed for what is none; so is an assignment."""
    return _decode(Subscription, data)


def decode_assignment(data: bytes) -> Assignment:
    return _decode(Assignment, data)


def known_version(data: bytes) -> int:
    """The one to read it in, and to answer its sender in."""
    if len(data) < _VERSION.size:
        raise Malformed(f"{len(data)} bytes have no room for a version")
    version: int = _VERSION.unpack_from(data)[0]
    return min(max(version, 0), VERSION_MAX)


def _decode(kind: type[M], data: bytes) -> M:
    return decode(kind, known_version(data), data, _VERSION.size)[0]
