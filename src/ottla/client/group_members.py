"""What the leader of a group knows of its members, and the order in which they are served. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.model.topics import TopicPartition


@dataclass(frozen=True, slots=True)
class Member:
    """What the leader knows of a member."""

    topics: frozenset[str]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1  # in which it owned them
    instance_id: str | None = None
    user_data: bytes | None = None
    rack: str | None = None  # where it is (client.rack)


Members = Mapping[str, Member]
Assigned = dict[str, list[TopicPartition]]


def in_order(members: Members) -> list[str]:
    """Static members first by their names, so that a restart changes nothing; the others by id."""
    return sorted(
        members, key=lambda key: (members[key].instance_id is None, members[key].instance_id or key, key)
    )


def racks_of(members: Members) -> dict[str, str]:
    """Of those that told theirs."""
    return {member_id: member.rack for member_id, member in members.items() if member.rack}


def all_partitions(partition_counts: Mapping[str, int], members: Members) -> list[TopicPartition]:
    """Those that somebody reads, in order."""
    read = frozenset().union(*(member.topics for member in members.values()))
    return [
        TopicPartition(topic, index)
        for topic in sorted(partition_counts)
        if topic in read
        for index in range(partition_counts[topic])
    ]
