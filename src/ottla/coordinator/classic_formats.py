"""Partitions as members of the classic protocol name them, by topic, and as consumer groups do."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.coordinator.consumer_members import NO_SLOTS, Slot, Slots, by_topic
from ottla.coordinator.known_topics import Topics
from ottla.model.errors import Malformed
from ottla.protocol.consumer_protocol import (
    Assignment,
    TopicPartitions,
    decode_assignment,
    encode_assignment,
    known_version,
)


def named_slots(partitions: Iterable[TopicPartitions], topics: Topics) -> Slots:
    """Of topics that exist."""
    found = ((topics.find(each.topic), each.partitions) for each in partitions)
    return frozenset(
        Slot(topic.id, partition) for topic, numbers in found if topic is not None for partition in numbers
    )


def assigned_slots(assignment: bytes, topics: Topics) -> Slots:
    """Malformed for what is no assignment, and for one with notes of an assignor: these would be lost."""
    if not assignment:
        return NO_SLOTS  # it has joined, and has not been given any yet
    decoded = decode_assignment(assignment)
    if decoded.user_data:
        raise Malformed("its assignor has notes of its own in assignments")
    return named_slots(decoded.assigned_partitions, topics)


def encode_slots(slots: Slots, metadata: bytes, topics: Topics) -> bytes:
    """The assignment, in the version of what the member said of itself; without topics that are gone."""
    named = ((topics.name(topic_id), partitions) for topic_id, partitions in by_topic(slots).items())
    return encode_assignment(
        Assignment([TopicPartitions(name, partitions) for name, partitions in named if name is not None]),
        known_version(metadata),
    )
