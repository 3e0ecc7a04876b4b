"""Subscriptions and assignments (`protocol/consumer_protocol`) in the client's own terms. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from ottla.client.errors import ClientError
from ottla.model.errors import Malformed
from ottla.model.topics import TopicPartition
from ottla.protocol import consumer_protocol
from ottla.protocol.consumer_protocol import PROTOCOL_TYPE, Subscription, TopicPartitions, encode_subscription

__all__ = [
    "PROTOCOL_TYPE",
    "Subscription",
    "TopicPartitions",
    "by_topic",
    "decode_assignment",
    "decode_subscription",
    "encode_assignment",
    "encode_subscription",
    "flat",
]

M = TypeVar("M")


def decode_subscription(data: bytes) -> Subscription:
    return _read(consumer_protocol.decode_subscription, "subscription", data)


def encode_assignment(partitions: Iterable[TopicPartition], user_data: bytes | None = None) -> bytes:
    return consumer_protocol.encode_assignment(
        consumer_protocol.Assignment(by_topic(partitions), user_data), version=1
    )


def decode_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """Empty where there is none."""
    if not data:
        return ()
    return flat(_read(consumer_protocol.decode_assignment, "assignment", data).assigned_partitions)


def by_topic(partitions: Iterable[TopicPartition]) -> list[TopicPartitions]:
    topics: dict[str, list[int]] = {}
    for target in sorted(partitions):
        topics.setdefault(target.topic, []).append(target.partition)
    return [TopicPartitions(topic, indexes) for topic, indexes in topics.items()]


def flat(topics: Iterable[TopicPartitions]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(each.topic, index) for each in topics for index in each.partitions)


def _read(decode: Callable[[bytes], M], what: str, data: bytes) -> M:
    try:
        return decode(data)
    except Malformed as error:
        raise ClientError(f"a member of the group sent no {what}: {error}") from None
