"""A classic group: its members, generation and protocol, and which of that its log holds.

    Empty → PreparingRebalance (members join) → CompletingRebalance (the leader assigns) → Stable → …

In the log are generation, protocol, leader and members with their assignments, as of the last time the group
was Stable or Empty; `apply` alone sets these states. A rebalance under way, sessions and waiting members are
not: after a restart the group is as it was before the rebalance, and its members join again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ottla.coordinator.group_members import Member, Reply
from ottla.coordinator.group_records import GroupMetadataValue, group_record
from ottla.coordinator.group_state import AT_ONCE_MS, NEVER_MS, GroupState
from ottla.coordinator.state_log import StateRecord
from ottla.coordinator.subscriptions import subscribed_topics
from ottla.model.errors import ErrorCode, Refused
from ottla.protocol.consumer_protocol import PROTOCOL_TYPE


class ClassicGroup:
    kind = "classic"

    def __init__(self, group_id: str) -> None:
        self.id = group_id
        self.state = GroupState.EMPTY
        self.state_since_ms: int | None = None  # wall time; None for what was only made by commits
        self.generation = 0
        self.protocol_type: str | None = None  # None until somebody has joined
        self.protocol_name: str | None = None  # what the members of this generation voted for
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}  # in the order of joining
        self.subscribed: frozenset[str] | None = None  # None: not known
        self.is_logged = False  # its log has a record of it
        # The rest is not in the log.
        self.is_unsettled = False  # it was a consumer group, and members may have less than the log says
        self.static_ids: dict[str, str] = {}  # member ids by instance id
        self.pending: dict[str, int] = {}  # ids given out (KIP-394) and when they expire
        self.not_synced: set[str] = set()  # members of this generation that have not asked for their part
        self.join_deadline_ms: int | None = None  # when a rebalance goes on without those that are missing
        self.sync_deadline_ms: int | None = None  # when those that are not synced are removed
        self.initial_delay_ms: int | None = None  # the current round of waiting of a group's first rebalance
        self.initial_left_ms = 0  # and how much longer it may wait after this round
        self.joined_in_delay = False  # somebody came in this round, so more may follow
        self.wake_ms = NEVER_MS  # nothing happens by itself before; may be too early, never too late
        self._awaiting_join = 0  # members that wait for the answer to their join
        self._supporters: Counter[str] = Counter()  # how many members know a protocol

    @property
    def is_vacant(self) -> bool:
        """There is nobody in it or about to be."""
        return self.state is GroupState.EMPTY and not self.members and not self.pending

    @property
    def can_expire(self) -> bool:
        """Whether offsets can, of topics that it is not known to read."""
        if self.protocol_type is None or self.state is GroupState.EMPTY:
            return True
        return self.reads_topics and self.subscribed is not None and self.state is GroupState.STABLE

    @property
    def idle_since_ms(self) -> int | None:
        """Wall time since which it has no members; None while it has some, and if it never had."""
        is_left = self.protocol_type is not None and self.state is GroupState.EMPTY
        return self.state_since_ms if is_left else None

    # -- members -------------------------------------------------------------------------------------------

    @property
    def awaiting_join_count(self) -> int:
        return self._awaiting_join

    @property
    def has_all_joined(self) -> bool:
        return len(self.members) == self._awaiting_join and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def add(self, member: Member, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader_id is None:
            self.leader_id = member.id
        self.pending.pop(member.id, None)
        self._insert(member)

    def _insert(self, member: Member) -> None:
        assert member.id not in self.members
        self.members[member.id] = member
        self._supporters.update(name for name, _ in member.protocols)
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member.id

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        self.pending.pop(member_id, None)
        self.not_synced.discard(member_id)
        if member is None:
            return
        assert not member.is_waiting(), member_id
        self._supporters.subtract(name for name, _ in member.protocols)
        if member.instance_id is not None and self.static_ids.get(member.instance_id) == member_id:
            del self.static_ids[member.instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)

    def replace_static(self, old_id: str, new_id: str) -> Member:
        """A static member came back under a new id (KIP-345); it takes the place of the old one."""
        member = self.members[old_id]
        assert not member.is_waiting(), old_id
        self.members = {
            (new_id if member_id == old_id else member_id): each for member_id, each in self.members.items()
        }
        member.id = new_id
        assert member.instance_id is not None
        self.static_ids[member.instance_id] = new_id
        if self.leader_id == old_id:
            self.leader_id = new_id
        return member

    def update_protocols(self, member: Member, protocols: tuple[tuple[str, bytes], ...]) -> None:
        self._supporters.subtract(name for name, _ in member.protocols)
        member.protocols = protocols
        self._supporters.update(name for name, _ in member.protocols)

    def set_awaiting_join(self, member: Member, reply: Reply | None) -> Reply | None:
        """Returns who waited until now."""
        before, member.awaiting_join = member.awaiting_join, reply
        self._awaiting_join += (reply is not None) - (before is not None)
        return before

    def check_member(self, member_id: str, instance_id: str | None) -> Member:
        """Refused for who is no member, and for a static member that was replaced."""
        if instance_id is not None:
            known_id = self.static_ids.get(instance_id)
            if known_id is None:
                raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
            if known_id != member_id:
                raise Refused(ErrorCode.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    # -- protocols -----------------------------------------------------------------------------------------

    def supports(self, protocol_type: str, protocols: tuple[tuple[str, bytes], ...]) -> bool:
        """Whether a member with these can be part of the group."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type and protocols)
        return protocol_type == self.protocol_type and any(
            self._supporters[name] == len(self.members) for name, _ in protocols
        )

    def vote(self) -> str:
        """Of what all members know, the one that most like best; among equals, what earlier members like."""
        everybody = len(self.members)
        candidates = {name for name, count in self._supporters.items() if count == everybody}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return max(votes, key=votes.__getitem__)

    @property
    def reads_topics(self) -> bool:
        return self.protocol_type == PROTOCOL_TYPE

    def is_subscribed(self, topic: str) -> bool:
        """When it is not known what a group of consumers reads, it may be anything."""
        return self.reads_topics if self.subscribed is None else topic in self.subscribed

    def find_subscribed(self) -> frozenset[str] | None:
        if not self.reads_topics:
            return None
        topics: frozenset[str] = frozenset()
        for member in self.members.values():
            of_member = subscribed_topics(member.metadata(self.protocol_name))
            if of_member is None:
                return None
            topics |= of_member
        return topics

    # -- the log -------------------------------------------------------------------------------------------

    def to_record(self, generation: int, assignments: Mapping[str, bytes], wall_ms: int) -> StateRecord:
        """The group with these assignments, or without members."""
        value = GroupMetadataValue(
            self.protocol_type or "",
            generation,
            self.protocol_name if self.members else None,
            self.leader_id,
            wall_ms,
            [
                member.to_record(self.protocol_name, assignments.get(member.id, b""))
                for member in self.members.values()
            ],
        )
        return group_record(self.id, value)

    def tombstones(self) -> list[StateRecord]:
        return [group_record(self.id, None)]

    def apply(self, value: GroupMetadataValue) -> None:
        """Live, the members are those that the record names, and only their assignments are news."""
        self.is_logged = True
        self.is_unsettled = False
        self.protocol_type = value.protocol_type or None
        self.generation = value.generation
        self.protocol_name = value.protocol
        self.leader_id = value.leader
        self.state_since_ms = (
            value.current_state_timestamp_ms if value.current_state_timestamp_ms >= 0 else None
        )
        self.state = GroupState.STABLE if value.members else GroupState.EMPTY
        members: dict[str, Member] = {}
        for record in value.members:
            member = self.members.get(record.member_id)
            if member is None or member.to_record(value.protocol, record.assignment) != record:
                member = Member.from_record(record, value.protocol)
            member.assignment = record.assignment
            members[member.id] = member
        self.members = members
        self.static_ids = {
            each.instance_id: each.id for each in members.values() if each.instance_id is not None
        }
        self._supporters = Counter(name for each in members.values() for name, _ in each.protocols)
        self.subscribed = self.find_subscribed()

    def mark_unsettled(self) -> None:
        """To be woken at once, for a rebalance."""
        self.is_unsettled = True
        self.wake_ms = AT_ONCE_MS

    # -- time ----------------------------------------------------------------------------------------------

    def wake_by(self, deadline_ms: int) -> None:
        if deadline_ms < self.wake_ms:
            self.wake_ms = deadline_ms

    def extend_session(self, member: Member, now_ms: int) -> None:
        member.session_deadline_ms = deadline_ms = now_ms + member.session_timeout_ms
        if deadline_ms < self.wake_ms:
            self.wake_ms = deadline_ms

    def find_wake_ms(self) -> None:
        """After the deadlines up to now were dealt with."""
        deadlines = [member.session_deadline_ms for member in self.members.values()]
        deadlines += [self.join_deadline_ms, self.sync_deadline_ms, *self.pending.values()]
        self.wake_ms = min((each for each in deadlines if each is not None), default=NEVER_MS)
