"""A consumer group (KIP-848): members, what the assignor wants for them, and what they have.

The group's epoch counts changes of members, subscriptions and topics. The assignor follows it: the target's
epoch is the group's of which it was made. Members follow the target one by one: first they give up what they
shall not have, then they get what others have given up. So no partition has two owners at any time.

All of this is in the log, and only `apply` changes it. When members have to be heard of again is not.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import assert_never

from ottla.coordinator.consumer_members import ConsumerMember, MemberState, Slot, Slots, to_slots
from ottla.coordinator.consumer_records import (
    ConsumerGroupKey,
    ConsumerGroupValue,
    ConsumerRecord,
    MemberAssignmentKey,
    MemberAssignmentValue,
    MemberKey,
    MemberTargetKey,
    MemberTargetValue,
    MemberValue,
    PatternKey,
    PatternValue,
    TargetKey,
    TargetValue,
    consumer_record,
)
from ottla.coordinator.group_state import NEVER_MS, GroupState
from ottla.coordinator.state_log import StateRecord
from ottla.model.errors import ErrorCode, Refused
from ottla.protocol.consumer_protocol import PROTOCOL_TYPE


class Wait(Enum):
    """What a member has to do in time."""

    SESSION = "be heard of"
    REVOCATION = "give up partitions"
    JOIN = "join again"  # of members that speak the classic protocol, as the next one
    SYNC = "ask for its assignment"


class ConsumerGroup:
    kind = "consumer"
    protocol_type = PROTOCOL_TYPE
    reads_topics = True
    can_expire = True  # offsets of topics that it does not read
    idle_since_ms = None  # offsets expire by their own age, members or not

    def __init__(self, group_id: str) -> None:
        self.id = group_id
        self.epoch = 0
        self.metadata_hash = 0  # of the topics that the epoch was made with
        self.members: dict[str, ConsumerMember] = {}  # in the order of joining
        self.target_epoch = 0
        self.targets: dict[str, Slots] = {}  # what the assignor wants, by member id
        self.patterns: dict[str, tuple[str, ...]] = {}  # the topics that subscribed patterns stand for
        self.static_ids: dict[str, str] = {}  # member ids by instance id
        self.owners: dict[Slot, str] = {}  # who has a partition, or has not given it up yet
        self.is_logged = False  # its log has a record of it
        # The rest is not in the log.
        self.topics_version = -1  # of the topics that members and patterns were last looked at with
        self.pattern_versions: dict[str, int] = {}
        self._deadlines_ms: dict[Wait, dict[str, int]] = {wait: {} for wait in Wait}  # by member id
        self.wake_ms = NEVER_MS  # nothing happens by itself before; may be too early, never too late

    @property
    def state(self) -> GroupState:
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.target_epoch:
            return GroupState.ASSIGNING
        if all(
            member.state is MemberState.STABLE and member.epoch == self.target_epoch
            for member in self.members.values()
        ):
            return GroupState.STABLE
        return GroupState.RECONCILING

    @property
    def is_vacant(self) -> bool:
        return not self.members

    def member(self, member_id: str) -> ConsumerMember:
        member = self.members.get(member_id)
        if member is None:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id!r} is no member of group {self.id}")
        return member

    def static_member(self, instance_id: str, member_id: str) -> ConsumerMember:
        """The member that must be this one."""
        known_id = self.static_ids.get(instance_id)
        if known_id is None:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"no member of group {self.id} is {instance_id!r}")
        if known_id != member_id:
            raise Refused(ErrorCode.FENCED_INSTANCE_ID, f"{instance_id!r} is {known_id!r} now")
        return self.members[known_id]

    def check_epoch(self, member_id: str, epoch: int) -> None:
        """For commits and for looks at commits, which only members of the latest epoch may do."""
        member = self.member(member_id)
        if epoch != member.epoch:
            raise Refused(
                ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION,
                f"epoch {epoch} of {member_id} is not {member.epoch}, its own",
            )

    def is_subscribed(self, topic: str) -> bool:
        return any(topic in member.subscribed(self.patterns) for member in self.members.values())

    # -- the log -------------------------------------------------------------------------------------------

    def apply(self, record: ConsumerRecord) -> None:
        """After compaction records of one member come in any order."""
        key, value = record
        match key:
            case ConsumerGroupKey():
                assert value is None or isinstance(value, ConsumerGroupValue)
                self.is_logged = value is not None
                self.epoch, self.metadata_hash = (value.epoch, value.metadata_hash) if value else (0, 0)
            case MemberKey(member_id=member_id):
                assert value is None or isinstance(value, MemberValue)
                self._apply_member(member_id, value)
            case TargetKey():
                assert value is None or isinstance(value, TargetValue)
                self.target_epoch = value.assignment_epoch if value else 0
            case MemberTargetKey(member_id=member_id):
                assert value is None or isinstance(value, MemberTargetValue)
                if value is None:
                    self.targets.pop(member_id, None)
                else:
                    self.targets[member_id] = to_slots(value.topic_partitions)
            case MemberAssignmentKey(member_id=member_id):
                assert value is None or isinstance(value, MemberAssignmentValue)
                self._apply_assignment(member_id, value)
            case PatternKey(pattern=pattern):
                assert value is None or isinstance(value, PatternValue)
                if value is None:
                    self.patterns.pop(pattern, None)
                    self.pattern_versions.pop(pattern, None)
                else:
                    self.patterns[pattern] = tuple(value.topics)
            case _:
                assert_never(key)

    def _apply_member(self, member_id: str, value: MemberValue | None) -> None:
        old = self.members.get(member_id)
        if value is None:
            if old is not None:
                self._disown(old)
                del self.members[member_id]
                if old.instance_id is not None and self.static_ids.get(old.instance_id) == member_id:
                    del self.static_ids[old.instance_id]
            for wait in Wait:
                self.end_wait(wait, member_id)
            return
        self.members[member_id] = member = (old or ConsumerMember(member_id)).with_metadata(value)
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member_id

    def _apply_assignment(self, member_id: str, value: MemberAssignmentValue | None) -> None:
        old = self.members.get(member_id)
        if old is not None:
            self._disown(old)
        elif value is None:
            return
        member = (old or ConsumerMember(member_id)).with_assignment(value or MemberAssignmentValue())
        self.members[member_id] = member
        self.owners.update(dict.fromkeys(member.slots, member_id))

    def _disown(self, member: ConsumerMember) -> None:
        for slot in member.slots:
            if self.owners.get(slot) == member.id:
                del self.owners[slot]

    def tombstones(self) -> list[StateRecord]:
        """For everything the log has of the group; readers of it want members to go before the group."""
        return [
            *(consumer_record(MemberAssignmentKey(self.id, each), None) for each in self.members),
            *(consumer_record(MemberTargetKey(self.id, each), None) for each in self.targets),
            consumer_record(TargetKey(self.id), None),
            *(consumer_record(MemberKey(self.id, each), None) for each in self.members),
            *(consumer_record(PatternKey(self.id, pattern), None) for pattern in self.patterns),
            consumer_record(ConsumerGroupKey(self.id), None),
        ]

    def unused_patterns(self, users: Iterable[ConsumerMember]) -> list[StateRecord]:
        """Tombstones for those that none of these members subscribes to."""
        used = {member.pattern for member in users}
        return [
            consumer_record(PatternKey(self.id, pattern), None)
            for pattern in self.patterns
            if pattern not in used
        ]

    # -- time ----------------------------------------------------------------------------------------------

    def extend_session(self, member_id: str, deadline_ms: int) -> None:
        self._deadlines_ms[Wait.SESSION][member_id] = deadline_ms
        if deadline_ms < self.wake_ms:
            self.wake_ms = deadline_ms

    def begin_wait(self, wait: Wait, member_id: str, deadline_ms: int) -> None:
        """One that is under way goes on with the time it has."""
        self._deadlines_ms[wait].setdefault(member_id, deadline_ms)
        self.wake_ms = min(self.wake_ms, deadline_ms)

    def is_awaited(self, wait: Wait, member_id: str) -> bool:
        return member_id in self._deadlines_ms[wait]

    def end_wait(self, wait: Wait, member_id: str) -> None:
        self._deadlines_ms[wait].pop(member_id, None)

    def set_revocation_deadline(self, member: ConsumerMember, now_ms: int) -> None:
        """For a member that was just told to give up partitions, or that has none to give up any more."""
        self.end_wait(Wait.REVOCATION, member.id)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            self.begin_wait(Wait.REVOCATION, member.id, now_ms + max(member.rebalance_timeout_ms, 0))

    def begin_sessions(self, now_ms: int, session_timeout_ms: int) -> None:
        """Of all that have none yet: members were read from the log, or came with a classic group."""
        for member in self.members.values():
            if member.id in self._deadlines_ms[Wait.SESSION]:
                continue
            if member.classic is not None:
                self.extend_session(member.id, now_ms + member.classic.session_timeout_ms)
            else:
                self.extend_session(member.id, now_ms + session_timeout_ms)
                self.set_revocation_deadline(member, now_ms)

    def overdue(self, now_ms: int) -> dict[str, Wait]:
        """Members whose time is up, and what for; also finds when to look again.

        A deadline of nobody is left behind by a first heartbeat whose records did not fit into the log.
        """
        late: dict[str, Wait] = {}
        self.wake_ms = NEVER_MS
        for wait, deadlines in self._deadlines_ms.items():
            for member_id, at_ms in list(deadlines.items()):
                if at_ms > now_ms:
                    self.wake_ms = min(self.wake_ms, at_ms)
                elif member_id in self.members:
                    late.setdefault(member_id, wait)
                else:
                    del deadlines[member_id]
        return late
