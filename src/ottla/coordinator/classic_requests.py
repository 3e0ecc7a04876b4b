"""SyncGroup, Heartbeat and LeaveGroup for classic groups."""

from __future__ import annotations

import logging

from ottla.coordinator.classic_group import ClassicGroup
from ottla.coordinator.classic_rebalance import Rebalance
from ottla.coordinator.group_members import Member, Reply
from ottla.coordinator.group_state import GroupState
from ottla.model.errors import ErrorCode, Refused
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.leave_group import MemberIdentity, MemberResponse
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

log = logging.getLogger(__name__)


# -- SyncGroup -----------------------------------------------------------------------------------------------


def sync(rebalance: Rebalance, request: SyncGroupRequest, reply: Reply) -> None:
    """Members wait here for the leader's; that one makes the group stable, once the log has it."""
    group, outcome = rebalance.group, rebalance.outcome
    try:
        member = _checked(group, request)
    except Refused as refusal:
        outcome.answer(reply, SyncGroupResponse(error_code=refusal.code))
        return
    group.not_synced.discard(member.id)
    if group.state is GroupState.STABLE:
        outcome.tells_the_log = True
        group.extend_session(member, rebalance.now.monotonic_ms)
        outcome.answer(reply, _assigned(group, member.assignment))
        return
    if member.awaiting_sync is not None:  # a retry over another connection
        again = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        outcome.answer(member.awaiting_sync, again)
    member.awaiting_sync = reply
    if member.id == group.leader_id:
        _assign(rebalance, request)


def _checked(group: ClassicGroup, request: SyncGroupRequest) -> Member:
    member = group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise Refused(ErrorCode.ILLEGAL_GENERATION)
    is_other_type = request.protocol_type is not None and request.protocol_type != group.protocol_type
    is_other_protocol = request.protocol_name is not None and request.protocol_name != group.protocol_name
    if is_other_type or is_other_protocol:
        raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if group.state is GroupState.PREPARING_REBALANCE:
        raise Refused(ErrorCode.REBALANCE_IN_PROGRESS)
    return member


def _assign(rebalance: Rebalance, request: SyncGroupRequest) -> None:
    group, outcome = rebalance.group, rebalance.outcome
    assignments = {each.member_id: bytes(each.assignment) for each in request.assignments}
    forgotten = [member_id for member_id in group.members if member_id not in assignments]
    if forgotten:
        log.warning("group %s: its leader gives nothing to %s", group.id, ", ".join(forgotten))
    outcome.records.append(group.to_record(group.generation, assignments, rebalance.now.wall_ms))
    for member in group.members.values():
        rebalance.answer_sync(member, _assigned(group, assignments.get(member.id, b"")))


def _assigned(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=ErrorCode.NONE,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=assignment,
    )


# -- Heartbeat -----------------------------------------------------------------------------------------------


def heartbeat(group: ClassicGroup, request: HeartbeatRequest, now_ms: int) -> ErrorCode:
    member = group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    group.extend_session(member, now_ms)
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


# -- LeaveGroup ----------------------------------------------------------------------------------------------


def leave(rebalance: Rebalance, identities: list[MemberIdentity]) -> list[MemberResponse]:
    """All that leave do so before the others are asked to join again."""
    results = []
    for identity in identities:
        code = ErrorCode.NONE
        try:
            _leave_one(rebalance, identity)
        except Refused as refusal:
            code = refusal.code
        results.append(MemberResponse(identity.member_id, identity.group_instance_id, code))
    gone = [each.member_id for each in results if each.error_code == ErrorCode.NONE]
    if gone:
        rebalance.after_removal(f"{len(gone)} members left")
    return results


def _leave_one(rebalance: Rebalance, identity: MemberIdentity) -> None:
    group = rebalance.group
    if identity.member_id in group.pending:
        group.remove(identity.member_id)
        return
    member_id = identity.member_id
    if not member_id:  # an administrator removes a static member by its instance id
        member_id = group.static_ids.get(identity.group_instance_id or "", "")
    member = group.check_member(member_id, identity.group_instance_id)
    rebalance.refuse_member(member, ErrorCode.UNKNOWN_MEMBER_ID)
    group.remove(member.id)
