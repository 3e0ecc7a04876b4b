"""Who of a group reads which partitions: range, round robin, sticky, cooperative sticky. Pure.

A user's own is an object like `Assignor`, or like `RackAwareAssignor` if it wants to know where replicas are.
The leader of the group computes the assignment for all members; the broker chose the assignor among those
that all of them have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from ottla.client.errors import ClientError
from ottla.client.group_formats import TopicPartitions, by_topic, flat
from ottla.client.group_members import Assigned, Member, Members, all_partitions, in_order
from ottla.client.nearness import ReplicaRacks
from ottla.client.range_shares import range_shares
from ottla.client.sticky_shares import owners_of, sticky_shares
from ottla.model.errors import Malformed
from ottla.model.topics import TopicPartition
from ottla.protocol.codec import decode, encode_bytes
from ottla.protocol.fields import Int32, Message

__all__ = [
    "BUILT_IN",
    "Assigned",
    "Assignor",
    "CooperativeSticky",
    "Member",
    "Members",
    "RackAwareAssignor",
    "Range",
    "RoundRobin",
    "Sticky",
    "named",
]


class Assignor(Protocol):
    name: str
    is_cooperative: bool  # members keep what they have while the group rebalances (KIP-429)

    def user_data(self, owned: Iterable[TopicPartition], generation: int) -> bytes | None:
        """What the leader of the next generation should know of this member."""
        ...

    def assign(self, partition_counts: Mapping[str, int], members: Members) -> Assigned: ...


@runtime_checkable
class RackAwareAssignor(Assignor, Protocol):
    def assign_near(
        self, partition_counts: Mapping[str, int], members: Members, racks: ReplicaRacks
    ) -> Assigned:
        """The same, where members should read from replicas in their racks (KIP-881)."""
        ...


class Range:
    """Of each topic the members get neighbouring partitions, the first ones one more if need be."""

    name = "range"
    is_cooperative = False

    def user_data(self, owned: Iterable[TopicPartition], generation: int) -> bytes | None:
        return None

    def assign(self, partition_counts: Mapping[str, int], members: Members) -> Assigned:
        return self.assign_near(partition_counts, members, {})

    def assign_near(
        self, partition_counts: Mapping[str, int], members: Members, racks: ReplicaRacks
    ) -> Assigned:
        return range_shares(partition_counts, members, racks)


class RoundRobin:
    """All partitions of all topics in turn, each to the next member that reads its topic."""

    name = "roundrobin"
    is_cooperative = False

    def user_data(self, owned: Iterable[TopicPartition], generation: int) -> bytes | None:
        return None

    def assign(self, partition_counts: Mapping[str, int], members: Members) -> Assigned:
        assigned: Assigned = {member_id: [] for member_id in members}
        order = in_order(members)
        turn = 0
        for target in all_partitions(partition_counts, members):
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

    def assign(self, partition_counts: Mapping[str, int], members: Members) -> Assigned:
        return self.assign_near(partition_counts, members, {})

    def assign_near(
        self, partition_counts: Mapping[str, int], members: Members, racks: ReplicaRacks
    ) -> Assigned:
        known = {member_id: self._with_history(each) for member_id, each in members.items()}
        return sticky_shares(partition_counts, known, racks)

    @staticmethod
    def _with_history(member: Member) -> Member:
        """Members of an eager assignor own nothing when they join: their user data tells what they had."""
        if member.owned or not member.user_data:
            return member
        try:
            history, _ = decode(_StickyUserData, 1, member.user_data)
        except Malformed:
            return member
        return replace(member, owned=flat(history.previous_assignment), generation=history.generation)


class CooperativeSticky:
    """The same, in two steps where a partition moves: given up first, given out in the next rebalance."""

    name = "cooperative-sticky"
    is_cooperative = True

    def user_data(self, owned: Iterable[TopicPartition], generation: int) -> bytes | None:
        return encode_bytes(_Generation(generation), 0)

    def assign(self, partition_counts: Mapping[str, int], members: Members) -> Assigned:
        return self.assign_near(partition_counts, members, {})

    def assign_near(
        self, partition_counts: Mapping[str, int], members: Members, racks: ReplicaRacks
    ) -> Assigned:
        owners = owners_of(partition_counts, members)
        assigned = sticky_shares(partition_counts, members, racks)
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
