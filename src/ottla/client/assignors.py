"""Who of a group reads which partitions: range, round robin, sticky, cooperative sticky. Pure.

A user's own is an object like `Assignor`. The leader of the group computes the assignment for all members;
the broker chose the assignor among those that all of them have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ottla.client.errors import ClientError
from ottla.client.group_formats import TopicPartitions, by_topic, flat
from ottla.model.errors import Malformed
from ottla.model.topics import TopicPartition
from ottla.protocol.codec import decode, encode_bytes
from ottla.protocol.fields import Int32, Message


@dataclass(frozen=True, slots=True)
class Member:
    """What the leader knows of a member."""

    topics: frozenset[str]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1  # in which it owned them
    instance_id: str | None = None
    user_data: bytes | None = None


Assigned = dict[str, list[TopicPartition]]


class Assignor(Protocol):
    name: str
    is_cooperative: bool  # members keep what they have while the group rebalances (KIP-429)

    def user_data(self, owned: Iterable[TopicPartition], generation: int) -> bytes | None:
        """What the leader of the next generation should know of this member."""
        ...

    def assign(self, partition_counts: Mapping[str, int], members: Mapping[str, Member]) -> Assigned: ...


class Range:
    """Of each topic the members get neighbouring partitions, the first ones one more if need be."""

    name = "range"
    is_cooperative = False

    def user_data(self, owned: Iterable[TopicPartition], generation: int) -> bytes | None:
        return None

    def assign(self, partition_counts: Mapping[str, int], members: Mapping[str, Member]) -> Assigned:
        assigned: Assigned = {member_id: [] for member_id in members}
        for topic in sorted(partition_counts):
            readers = [member_id for member_id in _in_order(members) if topic in members[member_id].topics]
            if not readers:
                continue
            share, more = divmod(partition_counts[topic], len(readers))
            first = 0
            for index, member_id in enumerate(readers):
                end = first + share + (index < more)
                assigned[member_id] += [TopicPartition(topic, each) for each in range(first, end)]
                first = end
        return assigned


class RoundRobin:
    """All partitions of all topics in turn, each to the next member that reads its topic."""

    name = "roundrobin"
    is_cooperative = False

    def user_data(self, owned: Iterable[TopicPartition], generation: int) -> bytes | None:
        return None

    def assign(self, partition_counts: Mapping[str, int], members: Mapping[str, Member]) -> Assigned:
        assigned: Assigned = {member_id: [] for member_id in members}
        order = _in_order(members)
        turn = 0
        for target in _partitions(partition_counts, members):
            while target.topic not in members[order[turn % len(order)]].topics:
                turn += 1
            assigned[order[turn % len(order)]].append(target)
            turn += 1
        return assigned


class _StickyUserData(Message, versions=(0, 1)):
    """As Kafka's StickyAssignor writes it, without a version of its own."""

    previous_assignment: Sequence[TopicPartitions] = ()
    generation: Int32 = -1


class Sticky:
    """As even as can be, and every member keeps what it can of what it had."""

    name = "sticky"
    is_cooperative = False

    def user_data(self, owned: Iterable[TopicPartition], generation: int) -> bytes | None:
        return encode_bytes(_StickyUserData(by_topic(owned), generation), 1)

    def assign(self, partition_counts: Mapping[str, int], members: Mapping[str, Member]) -> Assigned:
        return _balanced(partition_counts, {key: self._with_history(each) for key, each in members.items()})

    @staticmethod
    def _with_history(member: Member) -> Member:
        """Members of an eager assignor own nothing when they join: their user data tells what they had."""
        if member.owned or not member.user_data:
            return member
        try:
            history, _ = decode(_StickyUserData, 1, member.user_data)
        except Malformed:
            return member
        return Member(
            member.topics, flat(history.previous_assignment), history.generation, member.instance_id
        )


class CooperativeSticky:
    """The same, in two steps where a partition moves: given up first, given out in the next rebalance."""

    name = "cooperative-sticky"
    is_cooperative = True

    def user_data(self, owned: Iterable[TopicPartition], generation: int) -> bytes | None:
        return encode_bytes(_Generation(generation), 0)

    def assign(self, partition_counts: Mapping[str, int], members: Mapping[str, Member]) -> Assigned:
        owners = _owners(partition_counts, members)
        assigned = _balanced(partition_counts, members)
        return {
            member_id: [target for target in targets if owners.get(target, member_id) == member_id]
            for member_id, targets in assigned.items()
        }


class _Generation(Message, versions=(0, 0)):
    generation: Int32 = -1


BUILT_IN: dict[str, Assignor] = {
    each.name: each for each in (Range(), RoundRobin(), Sticky(), CooperativeSticky())
}


def named(names: Iterable[str | Assignor]) -> list[Assignor]:
    """The assignors of `partition.assignment.strategy`, by name or as they are."""
    found: list[Assignor] = []
    for each in names:
        if not isinstance(each, str):
            found.append(each)
        elif each in BUILT_IN:
            found.append(BUILT_IN[each])
        else:
            raise ClientError(f"there is no assignor {each!r}", f"known are {', '.join(BUILT_IN)}")
    return found


def _in_order(members: Mapping[str, Member]) -> list[str]:
    """Static members first by their names, so that a restart changes nothing; the others by id."""
    return sorted(
        members, key=lambda key: (members[key].instance_id is None, members[key].instance_id or key, key)
    )


def _partitions(partition_counts: Mapping[str, int], members: Mapping[str, Member]) -> list[TopicPartition]:
    read = frozenset().union(*(member.topics for member in members.values()))
    return [
        TopicPartition(topic, index)
        for topic in sorted(partition_counts)
        if topic in read
        for index in range(partition_counts[topic])
    ]


def _owners(partition_counts: Mapping[str, int], members: Mapping[str, Member]) -> dict[TopicPartition, str]:
    """Who has each partition; of several who claim one, the member of the latest generation."""
    claims: dict[TopicPartition, tuple[int, str]] = {}
    for member_id in _in_order(members):
        member = members[member_id]
        for target in member.owned:
            there = target.partition < partition_counts.get(target.topic, 0)
            if there and target.topic in member.topics:
                claims[target] = max(claims.get(target, (-2, "")), (member.generation, member_id))
    return {target: member_id for target, (_, member_id) in claims.items()}


def _balanced(partition_counts: Mapping[str, int], members: Mapping[str, Member]) -> Assigned:
    order = _in_order(members)
    assigned: Assigned = {member_id: [] for member_id in order}
    owners = _owners(partition_counts, members)
    for target, member_id in sorted(owners.items()):
        assigned[member_id].append(target)
    for target in _partitions(partition_counts, members):
        if target not in owners:
            assigned[_least_loaded(order, members, assigned, target)].append(target)
    _level(order, members, assigned)
    return assigned


def _least_loaded(
    order: Sequence[str], members: Mapping[str, Member], assigned: Assigned, target: TopicPartition
) -> str:
    readers = [member_id for member_id in order if target.topic in members[member_id].topics]
    return min(readers, key=lambda member_id: len(assigned[member_id]))


def _level(order: Sequence[str], members: Mapping[str, Member], assigned: Assigned) -> None:
    """Moves partitions from those with most to those with least, as long as that levels anything."""
    moved = True
    while moved:
        moved = False
        for giver in sorted(order, key=lambda member_id: -len(assigned[member_id])):
            for target in reversed(assigned[giver]):
                taker = _least_loaded(order, members, assigned, target)
                if len(assigned[giver]) - len(assigned[taker]) > 1:
                    assigned[giver].remove(target)
                    assigned[taker].append(target)
                    moved = True
                    break
