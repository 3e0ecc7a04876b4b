"""Members of a consumer group that speak the classic protocol (KIP-848, "online migration").

JoinGroup is their heartbeat of the new protocol: with it they say what they want and have, and move towards
the target. SyncGroup tells them what they may read, Heartbeat when to join again. None of them leads, and
nobody waits for another. Their generation is their member epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ottla.coordinator.classic_formats import encode_slots, named_slots
from ottla.coordinator.consumer_change import Change, subscribed_topics
from ottla.coordinator.consumer_group import ConsumerGroup, Wait
from ottla.coordinator.consumer_members import NO_SLOTS, ClassicTerms, ConsumerMember, MemberState
from ottla.coordinator.group_members import Caller, needs_member_id, plain, rebalance_timeout_ms
from ottla.coordinator.known_topics import Topics, metadata_hash
from ottla.model.errors import ErrorCode, Malformed, Refused
from ottla.model.values import dataclass, replace
from ottla.protocol.consumer_protocol import PROTOCOL_TYPE, Subscription, decode_subscription
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.protocol.messages.leave_group import MemberIdentity, MemberResponse
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


def _any_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    """Refused for who is none."""
    if instance_id is None:
        return group.member(member_id)
    return group.static_member(instance_id, member_id)


def _member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    """Refused also for who speaks the new protocol."""
    member = _any_member(group, member_id, instance_id)
    if member.classic is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id!r} uses the consumer protocol")
    return member


# -- JoinGroup -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class ClassicJoin:
    """One request of a member to join, or to join again."""

    change: Change
    request: JoinGroupRequest
    caller: Caller
    new_member_id: Callable[[str], str]  # from a prefix

    def decide(self) -> JoinGroupResponse:
        """Refused for what the group does not take."""
        request, change = self.request, self.change
        subscription = self._subscription()
        if needs_member_id(request, self.caller):
            given = change.new_member(self.new_member_id(self.caller.client_id))
            return JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=given.id)
        before = self._find_member()
        member = self._with_request(before, subscription)
        owned = named_slots(subscription.owned_partitions, change.topics)
        target_epoch = change.find_target(change.take(before, member))
        after = change.reconcile(member, target_epoch, owned)
        self._set_deadlines(after)
        assert after.classic is not None
        return JoinGroupResponse(
            error_code=ErrorCode.NONE,
            generation_id=after.epoch,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=after.classic.protocol_name,
            member_id=after.id,
        )

    def _subscription(self) -> Subscription:
        request = self.request
        protocols = plain(request.protocols)
        if request.protocol_type != PROTOCOL_TYPE or not self._is_known_to_all(protocols):
            raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        try:
            return decode_subscription(protocols[0][1])
        except Malformed as problem:
            raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, str(problem)) from None

    def _is_known_to_all(self, protocols: Sequence[tuple[str, bytes]]) -> bool:
        """Whether the group could go on with one of them if only classic members were left."""
        terms = [each.classic for each in self.change.group.members.values() if each.classic is not None]
        known = [{name for name, _ in each.protocols} for each in terms]
        return any(all(name in names for names in known) for name, _ in protocols)

    def _find_member(self) -> ConsumerMember:
        request, group = self.request, self.change.group
        if request.group_instance_id is None:
            known = group.members.get(request.member_id)
            if known is not None:
                return known
            return self.change.new_member(request.member_id or self.new_member_id(self.caller.client_id))
        if request.member_id:
            return group.static_member(request.group_instance_id, request.member_id)
        member_id = self.new_member_id(request.group_instance_id)
        known_id = group.static_ids.get(request.group_instance_id)
        if known_id is None:
            return self.change.new_member(member_id)
        return self.change.replace_static(group.members[known_id], member_id)

    def _with_request(self, member: ConsumerMember, subscription: Subscription) -> ConsumerMember:
        request = self.request
        return replace(
            member,
            instance_id=request.group_instance_id,
            rack_id=subscription.rack_id or member.rack_id,
            client_id=self.caller.client_id,
            client_host=self.caller.host,
            topics=tuple(sorted(set(subscription.topics))),
            pattern=None,
            rebalance_timeout_ms=rebalance_timeout_ms(request),
            classic=ClassicTerms(request.session_timeout_ms, plain(request.protocols)),
        )

    def _set_deadlines(self, member: ConsumerMember) -> None:
        group, now_ms = self.change.group, self.change.now.monotonic_ms
        group.end_wait(Wait.JOIN, member.id)
        group.end_wait(Wait.REVOCATION, member.id)
        group.end_wait(Wait.SYNC, member.id)
        group.begin_wait(Wait.SYNC, member.id, now_ms + member.rebalance_timeout_ms)
        group.extend_session(member.id, now_ms + self.request.session_timeout_ms)


# -- SyncGroup -----------------------------------------------------------------------------------------------


def sync(group: ConsumerGroup, request: SyncGroupRequest, topics: Topics, now_ms: int) -> SyncGroupResponse:
    """What the member may read now."""
    member = _member(group, request.member_id, request.group_instance_id)
    assert member.classic is not None
    if request.generation_id != member.epoch:
        raise Refused(ErrorCode.ILLEGAL_GENERATION)
    is_other_type = request.protocol_type not in (None, PROTOCOL_TYPE)
    if is_other_type or request.protocol_name not in (None, member.classic.protocol_name):
        raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    # Who must give up partitions has joined again already; it is told which, and then joins once more.
    if group.epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        group.begin_wait(Wait.JOIN, member.id, now_ms + member.rebalance_timeout_ms)
        raise Refused(ErrorCode.REBALANCE_IN_PROGRESS)
    group.end_wait(Wait.SYNC, member.id)
    group.extend_session(member.id, now_ms + member.classic.session_timeout_ms)
    return SyncGroupResponse(
        error_code=ErrorCode.NONE,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=encode_slots(member.assigned, member.classic.metadata, topics),
    )


# -- Heartbeat -----------------------------------------------------------------------------------------------


def heartbeat(group: ConsumerGroup, request: HeartbeatRequest, topics: Topics, now_ms: int) -> ErrorCode:
    member = _member(group, request.member_id, request.group_instance_id)
    assert member.classic is not None
    if request.generation_id != member.epoch:
        return ErrorCode.ILLEGAL_GENERATION
    group.extend_session(member.id, now_ms + member.classic.session_timeout_ms)
    if not (_must_join(group, member) or _have_changed(group, topics)):
        return ErrorCode.NONE
    group.begin_wait(Wait.JOIN, member.id, now_ms + member.rebalance_timeout_ms)
    return ErrorCode.REBALANCE_IN_PROGRESS


def _must_join(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Because the group has moved on, to say that it has given up partitions, or to get what others have."""
    if member.epoch < group.epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    if member.state is not MemberState.UNRELEASED_PARTITIONS:
        return False
    missing = group.targets.get(member.id, NO_SLOTS) - member.assigned
    return all(group.owners.get(slot) in (None, member.id) for slot in missing)


def _have_changed(group: ConsumerGroup, topics: Topics) -> bool:
    """Its topics: usually a heartbeat of the new protocol finds out, but there may be nobody to send one."""
    if group.topics_version == topics.version:
        return False
    found = subscribed_topics(group.members.values(), group.patterns, topics)
    if metadata_hash(found) != group.metadata_hash:
        return True
    if not group.patterns:
        group.topics_version = topics.version
    return False


# -- LeaveGroup ----------------------------------------------------------------------------------------------


def leave(
    group: ConsumerGroup, identities: Sequence[MemberIdentity]
) -> tuple[list[MemberResponse], list[str]]:
    """What each is told, and who is to be removed. Administrators remove members of both protocols so."""
    results, gone = [], []
    for identity in identities:
        member_id, code = identity.member_id, ErrorCode.NONE
        if not member_id:  # an administrator removes a static member by its instance id
            member_id = group.static_ids.get(identity.group_instance_id or "", "")
        try:
            member = _any_member(group, member_id, identity.group_instance_id)
            if member.id in gone:
                raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
            gone.append(member.id)
        except Refused as refusal:
            code = refusal.code
        results.append(MemberResponse(identity.member_id, identity.group_instance_id, code))
    return results, gone
