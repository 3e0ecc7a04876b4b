"""A heartbeat of a member of a consumer group (KIP-848): all that can happen to the group happens here.

In this order: who is it, what does it want, has the group changed, what does the assignor say, and what of
that can the member have now. Each step gives records; what the log holds of the group changes when these are
applied, not before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple, Protocol

from ottla.coordinator.assignors import ASSIGNORS, Question
from ottla.coordinator.consumer_group import ConsumerGroup
from ottla.coordinator.consumer_members import (
    JOINS,
    LEAVES,
    LEAVES_FOR_A_WHILE,
    NO_SLOTS,
    ConsumerMember,
    MemberState,
    Slot,
    Slots,
    by_topic,
    to_record,
    to_slots,
)
from ottla.coordinator.consumer_reconciliation import reconcile
from ottla.coordinator.consumer_records import (
    ConsumerGroupKey,
    ConsumerGroupValue,
    ConsumerKey,
    ConsumerValue,
    MemberAssignmentKey,
    MemberKey,
    MemberTargetKey,
    MemberTargetValue,
    PatternKey,
    PatternValue,
    TargetKey,
    TargetValue,
    consumer_record,
)
from ottla.coordinator.consumer_removal import forget
from ottla.coordinator.group_config import GroupConfig
from ottla.coordinator.group_members import Caller
from ottla.coordinator.state_log import Now, StateRecord
from ottla.coordinator.topic_patterns import matching_topics
from ottla.model.errors import ErrorCode, Refused
from ottla.model.topics import TopicId
from ottla.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

_OWN_MEMBER_IDS_SINCE = 1


class KnownTopic(NamedTuple):
    id: TopicId
    partitions: int


class Topics(Protocol):
    """The topics of the cluster, as far as the member's principal may know of them."""

    @property
    def version(self) -> int:
        """Another one when topics or their partition counts have changed."""
        ...

    def find(self, name: str) -> KnownTopic | None: ...

    def names(self) -> Iterable[str]:
        """Those that a pattern may stand for."""
        ...


def check_request(request: ConsumerGroupHeartbeatRequest, version: int, config: GroupConfig) -> None:
    """Refused for what no client should send, whatever the group is."""
    epoch = request.member_epoch
    for name, value in (("InstanceId", request.instance_id), ("RackId", request.rack_id)):
        if value is not None and not value.strip():
            raise _invalid(f"{name} must not be empty")
    if not request.member_id and (epoch != JOINS or version >= _OWN_MEMBER_IDS_SINCE):
        raise _invalid("MemberId must not be empty")
    if epoch < LEAVES_FOR_A_WHILE:
        raise _invalid(f"MemberEpoch {epoch} means nothing")
    if epoch == LEAVES_FOR_A_WHILE and request.instance_id is None:
        raise _invalid("only a member with an InstanceId can leave for a while")
    if epoch == JOINS:
        if request.rebalance_timeout_ms < 0:
            raise _invalid("a member that joins must give its RebalanceTimeoutMs")
        if request.topic_partitions is None or request.topic_partitions:
            raise _invalid("a member that joins must give TopicPartitions, and have none")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise _invalid("a member that joins must give SubscribedTopicNames or SubscribedTopicRegex")
    if request.server_assignor is not None and request.server_assignor not in config.consumer_assignors:
        raise Refused(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"{request.server_assignor!r} is none of {', '.join(config.consumer_assignors)}",
        )


def _invalid(text: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, text)


def is_leaving(request: ConsumerGroupHeartbeatRequest) -> bool:
    return request.member_epoch in (LEAVES, LEAVES_FOR_A_WHILE)


class Heartbeat:
    """One heartbeat of a member that stays or joins."""

    def __init__(
        self,
        group: ConsumerGroup,
        request: ConsumerGroupHeartbeatRequest,
        caller: Caller,
        topics: Topics,
        config: GroupConfig,
        now: Now,
    ) -> None:
        self.records: list[StateRecord] = []
        self._group = group
        self._request = request
        self._caller = caller
        self._topics = topics
        self._config = config
        self._now = now
        self._owned = None if request.topic_partitions is None else to_slots(request.topic_partitions)
        self._replaced: ConsumerMember | None = None  # the static member whose place this one takes
        # What the group will be when the records are applied.
        self._members: Mapping[str, ConsumerMember] = group.members
        self._targets: Mapping[str, Slots] = group.targets
        self._patterns: dict[str, tuple[str, ...]] = group.patterns

    def decide(self, new_member_id: Callable[[str], str]) -> ConsumerGroupHeartbeatResponse:
        group, request = self._group, self._request
        before = self._find_member(request.member_id or new_member_id("consumer"))
        member = before.with_request(request, self._caller.client_id, self._caller.host)
        is_changed = self._take_subscription(before, member)
        target_epoch = self._find_target(is_changed)
        after = reconcile(
            member, self._targets.get(member.id, NO_SLOTS), target_epoch, self._owned, self._is_free
        )
        if after != member or self._replaced is not None:
            self._record(MemberAssignmentKey(group.id, member.id), after.assignment())
        if (after.state, after.pending_revocation) != (before.state, before.pending_revocation):
            group.set_revocation_deadline(after, self._now.monotonic_ms)
        group.extend_session(member.id, self._now.monotonic_ms + self._config.consumer_session_timeout_ms)
        return ConsumerGroupHeartbeatResponse(
            member_id=after.id,
            member_epoch=after.epoch,
            heartbeat_interval_ms=self._config.consumer_heartbeat_interval_ms,
            assignment=_assignment(after.assigned) if self._is_told(before, after) else None,
        )

    def _record(self, key: ConsumerKey, value: ConsumerValue | None) -> None:
        self.records.append(consumer_record(key, value))

    def _is_told(self, before: ConsumerMember, after: ConsumerMember) -> bool:
        """What it has: when that is news, when it asks for all, and when it has missed the last answer."""
        request = self._request
        is_whole = (
            request.rebalance_timeout_ms != -1
            and self._owned is not None
            and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        )
        return is_whole or after.assigned != before.assigned or request.member_epoch != before.epoch

    # -- who is it -----------------------------------------------------------------------------------------

    def _find_member(self, member_id: str) -> ConsumerMember:
        group, request = self._group, self._request
        joins = request.member_epoch == JOINS
        if request.instance_id is None:
            if joins and member_id not in group.members:
                return self._new_member(member_id)
            member = group.member(member_id)
        elif joins:
            return self._joining_static_member(request.instance_id, member_id)
        else:
            member = group.static_member(request.instance_id, member_id)
        if not joins:
            self._check_epoch(member)
        return member

    def _new_member(self, member_id: str) -> ConsumerMember:
        size_max = self._config.consumer_size_max
        if len(self._group.members) >= size_max:
            raise Refused(
                ErrorCode.GROUP_MAX_SIZE_REACHED, f"group {self._group.id} has {size_max} members already"
            )
        return ConsumerMember(member_id)

    def _joining_static_member(self, instance_id: str, member_id: str) -> ConsumerMember:
        group = self._group
        known_id = group.static_ids.get(instance_id)
        if known_id is None:
            return self._new_member(member_id)
        known = group.members[known_id]
        if known_id == member_id:
            return known
        if known.epoch != LEAVES_FOR_A_WHILE:
            raise Refused(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"{known_id!r} uses {instance_id!r}, and has neither left nor run out of time",
            )
        self._replaced = known
        target = group.targets.get(known_id, NO_SLOTS)
        self.records += forget(group.id, known_id)
        self._record(MemberTargetKey(group.id, member_id), MemberTargetValue(to_record(target)))
        self._members = {each: member for each, member in group.members.items() if each != known_id}
        self._targets = {
            **{each: slots for each, slots in group.targets.items() if each != known_id},
            member_id: target,
        }
        return replace(known, id=member_id, epoch=JOINS, previous_epoch=JOINS, state=MemberState.STABLE)

    def _check_epoch(self, member: ConsumerMember) -> None:
        epoch = self._request.member_epoch
        if epoch == member.epoch:
            return
        if epoch == member.previous_epoch and self._owned is not None and self._owned <= member.assigned:
            return  # the answer that told it of its epoch was lost
        raise Refused(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"epoch {epoch} of {member.id} is not {member.epoch}; it must join again",
        )

    def _is_free(self, slot: Slot) -> bool:
        owner = self._group.owners.get(slot)
        return owner in (None, self._request.member_id) or (
            self._replaced is not None and owner == self._replaced.id
        )

    # -- what does it want ---------------------------------------------------------------------------------

    def _take_subscription(self, before: ConsumerMember, member: ConsumerMember) -> bool:
        """Whether the assignor has to look at it."""
        group = self._group
        known = group.members.get(member.id)
        if member != before or known is None:
            self._record(MemberKey(group.id, member.id), member.metadata())
            self._members = {**self._members, member.id: member}
        is_changed = self._resolve_pattern(member)
        if before.pattern not in (None, member.pattern):
            self.records += group.unused_patterns(self._members.values())
        is_new = known is None and self._replaced is None
        return is_changed or is_new or not member.has_same_subscription(before)

    def _resolve_pattern(self, member: ConsumerMember) -> bool:
        """Only when the topics have changed since, or the pattern is new: it costs time for every topic."""
        group, version, pattern = self._group, self._topics.version, member.pattern
        if pattern is None or group.pattern_versions.get(pattern) == version:
            return False
        found = matching_topics(pattern, self._topics.names())
        group.pattern_versions[pattern] = version
        if found == group.patterns.get(pattern):
            return False
        self._record(PatternKey(group.id, pattern), PatternValue(found, max(version, 0), self._now.wall_ms))
        self._patterns = {**group.patterns, pattern: found}
        return True

    # -- has the group changed, and what does the assignor say ---------------------------------------------

    def _find_target(self, is_changed: bool) -> int:
        """The epoch of the target that the member follows, after a look at the topics if that is due."""
        group, version = self._group, self._topics.version
        is_behind = is_changed or group.epoch > group.target_epoch
        if not is_behind and group.topics_version == version:
            return group.target_epoch
        group.topics_version = version
        topics = self._subscribed_topics()
        topics_hash = _hash(topics)
        epoch = group.epoch
        if is_changed or (topics_hash != group.metadata_hash and not is_behind):
            epoch += 1
        if (epoch, topics_hash) != (group.epoch, group.metadata_hash):
            self._record(ConsumerGroupKey(group.id), ConsumerGroupValue(epoch, topics_hash))
        if epoch > group.target_epoch:
            self._assign(topics)
            self._record(TargetKey(group.id), TargetValue(epoch))
        return epoch

    def _subscribed_topics(self) -> dict[str, KnownTopic]:
        names = frozenset[str]().union(
            *(member.subscribed(self._patterns) for member in self._members.values())
        )
        found = ((name, self._topics.find(name)) for name in sorted(names))
        return {name: topic for name, topic in found if topic is not None}

    def _assign(self, topics: Mapping[str, KnownTopic]) -> None:
        group = self._group
        in_order = sorted(
            self._members.values(), key=lambda each: (each.instance_id is None, each.instance_id or each.id)
        )
        question = Question(
            {
                each.id: frozenset(
                    topics[name].id for name in each.subscribed(self._patterns) if name in topics
                )
                for each in in_order
            },
            {topic.id: topic.partitions for topic in topics.values()},
            self._targets,
        )
        answer = ASSIGNORS[assignor_of(self._members.values(), self._config)](question)
        for member_id, slots in answer.items():
            if slots != self._targets.get(member_id):
                self._record(MemberTargetKey(group.id, member_id), MemberTargetValue(to_record(slots)))
        self._targets = answer


def assignor_of(members: Iterable[ConsumerMember], config: GroupConfig) -> str:
    """What most members want and the broker offers; of equals, what earlier members want."""
    votes: dict[str, int] = {}
    for member in members:
        if member.assignor in config.consumer_assignors:
            assert member.assignor is not None
            votes[member.assignor] = votes.get(member.assignor, 0) + 1
    return max(votes, key=votes.__getitem__, default=config.consumer_assignors[0])


def _assignment(slots: Slots) -> Assignment:
    return Assignment([TopicPartitions(*each) for each in by_topic(slots).items()])


def _hash(topics: Mapping[str, KnownTopic]) -> int:
    """Tells whether topics or partition counts have changed; zero for none, as in Kafka.

    Kafka takes another function. A group that moves between the two is assigned once more, nothing else.
    """
    if not topics:
        return 0
    digest = hashlib.blake2b(digest_size=8)
    for name, topic in topics.items():  # sorted by name
        digest.update(topic.id + topic.partitions.to_bytes(4, "big") + name.encode() + b"\0")
    return int.from_bytes(digest.digest(), "big", signed=True)
