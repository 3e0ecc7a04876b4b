"""A heartbeat of a member of a consumer group (KIP-848): all that can happen to the group happens here.

In this order: who is it, what does it want, has the group changed, what does the assignor say, and what of
that can the member have now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ottla.coordinator.consumer_change import Change
from ottla.coordinator.consumer_group import Wait
from ottla.coordinator.consumer_members import (
    JOINS,
    LEAVES,
    LEAVES_FOR_A_WHILE,
    ConsumerMember,
    Slots,
    by_topic,
    to_slots,
)
from ottla.coordinator.group_config import GroupConfig
from ottla.coordinator.group_members import Caller
from ottla.model.errors import ErrorCode, Refused
from ottla.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

_OWN_MEMBER_IDS_SINCE = 1

VisibleTopics = Callable[[], Iterable[str]]
"""Those that a pattern may stand for: what the member's principal may know of."""


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
        change: Change,
        request: ConsumerGroupHeartbeatRequest,
        caller: Caller,
        visible_topics: VisibleTopics,
    ) -> None:
        self._change = change
        self._group = change.group
        self._request = request
        self._caller = caller
        self._visible_topics = visible_topics
        self._owned = None if request.topic_partitions is None else to_slots(request.topic_partitions)

    def decide(self, new_member_id: Callable[[str], str]) -> ConsumerGroupHeartbeatResponse:
        request, change = self._request, self._change
        before = self._find_member(request.member_id or new_member_id("consumer"))
        member = before.with_request(request, self._caller.client_id, self._caller.host)
        is_changed = change.take(before, member)
        if member.pattern is not None:
            is_changed |= change.resolve_pattern(member.pattern, self._visible_topics())
        after = change.reconcile(member, change.find_target(is_changed), self._owned)
        self._set_deadlines(before, after)
        return ConsumerGroupHeartbeatResponse(
            member_id=after.id,
            member_epoch=after.epoch,
            heartbeat_interval_ms=change.config.consumer_heartbeat_interval_ms,
            assignment=_assignment(after.assigned) if self._is_told(before, after) else None,
        )

    def _set_deadlines(self, before: ConsumerMember, after: ConsumerMember) -> None:
        group, now_ms = self._group, self._change.now.monotonic_ms
        if before.classic is not None:
            group.end_wait(Wait.JOIN, after.id)
            group.end_wait(Wait.SYNC, after.id)
        if (after.state, after.pending_revocation) != (before.state, before.pending_revocation):
            group.set_revocation_deadline(after, now_ms)
        group.extend_session(after.id, now_ms + self._change.config.consumer_session_timeout_ms)

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
                return self._change.new_member(member_id)
            member = group.member(member_id)
        elif joins:
            return self._joining_static_member(request.instance_id, member_id)
        else:
            member = group.static_member(request.instance_id, member_id)
        if not joins:
            self._check_epoch(member)
        return member

    def _joining_static_member(self, instance_id: str, member_id: str) -> ConsumerMember:
        group = self._group
        known_id = group.static_ids.get(instance_id)
        if known_id is None:
            return self._change.new_member(member_id)
        known = group.members[known_id]
        if known_id == member_id:
            return known
        # One that speaks the classic protocol does not say that it will be back, so it is replaced as there.
        if known.classic is None and known.epoch != LEAVES_FOR_A_WHILE:
            raise Refused(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"{known_id!r} uses {instance_id!r}, and has neither left nor run out of time",
            )
        return self._change.replace_static(known, member_id)

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


def _assignment(slots: Slots) -> Assignment:
    return Assignment([TopicPartitions(*each) for each in by_topic(slots).items()])
