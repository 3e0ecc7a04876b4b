"""What members of a consumer group tell each other through the coordinator: subscriptions and assignments.

A version, then a message of that version (Kafka's ConsumerProtocolSubscription and -Assignment). Versions
newer than ours are read too: they only add fields at the end. Pure.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Annotated, TypeVar

from ottla.client.errors import ClientError
from ottla.model.errors import Malformed
from ottla.model.topics import TopicPartition
from ottla.protocol.codec import decode, encode_bytes
from ottla.protocol.fields import Int32, Message, ignorable, since

PROTOCOL_TYPE = "consumer"

_VERSION = struct.Struct(">h")

M = TypeVar("M", bound=Message)


class TopicPartitions(Message):
    topic: str = ""
    partitions: Sequence[Int32] = ()


class Subscription(Message, versions=(0, 3)):
    topics: Sequence[str] = ()
    user_data: bytes | None = None
    owned_partitions: Annotated[Sequence[TopicPartitions], since(1), ignorable] = ()  # KIP-429
    generation_id: Annotated[Int32, since(2), ignorable] = -1  # in which they were owned
    rack_id: Annotated[str | None, since(3), ignorable] = None


class Assignment(Message, versions=(0, 3)):
    assigned_partitions: Sequence[TopicPartitions] = ()
    user_data: bytes | None = None


def encode_subscription(subscription: Subscription) -> bytes:
    return _VERSION.pack(3) + encode_bytes(subscription, 3)


def decode_subscription(data: bytes) -> Subscription:
    return _decode(Subscription, data)


def encode_assignment(partitions: Iterable[TopicPartition], user_data: bytes | None = None) -> bytes:
    return _VERSION.pack(1) + encode_bytes(Assignment(by_topic(partitions), user_data), 1)


def decode_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """Empty where there is none."""
    return flat(_decode(Assignment, data).assigned_partitions) if data else ()


def by_topic(partitions: Iterable[TopicPartition]) -> list[TopicPartitions]:
    topics: dict[str, list[int]] = {}
    for target in sorted(partitions):
        topics.setdefault(target.topic, []).append(target.partition)
    return [TopicPartitions(topic, indexes) for topic, indexes in topics.items()]


def flat(topics: Iterable[TopicPartitions]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(each.topic, index) for each in topics for index in each.partitions)


def _decode(kind: type[M], data: bytes) -> M:
    try:
        (version,) = _VERSION.unpack_from(data)
        message, _ = decode(kind, min(max(version, 0), 3), data, _VERSION.size)
    except (struct.error, Malformed) as error:
        raise ClientError(f"a member of the group sent no {kind.__name__.lower()}: {error}") from None
    return message
