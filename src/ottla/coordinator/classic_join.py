"""JoinGroup for classic groups: new members, known ones, and static ones that came back under another id."""

from __future__ import annotations

from collections.abc import Callable

from ottla.coordinator.classic_group import ClassicGroup
from ottla.coordinator.classic_rebalance import Rebalance, joined_response
from ottla.coordinator.group_members import (
    Caller,
    Member,
    Reply,
    needs_member_id,
    plain,
    rebalance_timeout_ms,
)
from ottla.coordinator.group_state import GroupState
from ottla.model.errors import ErrorCode, Refused
from ottla.model.values import dataclass
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

_SKIP_ASSIGNMENT_SINCE = 9  # KIP-814


@dataclass(slots=True)
class Join:
    """One request to join one group."""

    rebalance: Rebalance
    request: JoinGroupRequest
    caller: Caller
    reply: Reply
    new_member_id: Callable[[str], str]  # from a prefix

    @property
    def group(self) -> ClassicGroup:
        return self.rebalance.group

    def decide(self) -> None:
        request = self.request
        if not self._has_room():
            self._turn_away()
        elif not self.group.supports(request.protocol_type, plain(request.protocols)):
            self._refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
        elif request.member_id:
            self._known_member()
        elif request.group_instance_id is not None:
            self._new_static_member(request.group_instance_id)
        else:
            self._new_member()

    def _has_room(self) -> bool:
        group, size_max = self.group, self.rebalance.config.size_max
        member = group.members.get(self.request.member_id)
        match group.state:
            case GroupState.EMPTY:
                return True
            case GroupState.PREPARING_REBALANCE:
                is_in = member is not None and member.awaiting_join is not None
                return is_in or group.awaiting_join_count < size_max
            case _:
                return member is not None or len(group.members) < size_max

    def _turn_away(self) -> None:
        """Also a member of the last generation: others have taken its place in this one."""
        group = self.group
        self._refuse(ErrorCode.GROUP_MAX_SIZE_REACHED, "")
        group.remove(self.request.member_id)
        self.rebalance.maybe_complete_join()

    def _refuse(self, code: ErrorCode, member_id: str) -> None:
        self.rebalance.outcome.answer(self.reply, JoinGroupResponse(error_code=code, member_id=member_id))

    # -- new members ---------------------------------------------------------------------------------------

    def _new_member(self) -> None:
        member_id = self.new_member_id(self.caller.client_id)
        if not needs_member_id(self.request, self.caller):
            self._add(member_id)
            return
        deadline_ms = self.rebalance.now.monotonic_ms + self.request.session_timeout_ms
        self.group.pending[member_id] = deadline_ms
        self.group.wake_by(deadline_ms)
        self._refuse(ErrorCode.MEMBER_ID_REQUIRED, member_id)

    def _new_static_member(self, instance_id: str) -> None:
        member_id = self.new_member_id(instance_id)
        old_id = self.group.static_ids.get(instance_id)
        if old_id is None:
            self._add(member_id)
        else:
            self._replace(old_id, member_id)

    def _add(self, member_id: str) -> None:
        group, rebalance = self.group, self.rebalance
        member = Member.joining(member_id, self.request, self.caller)
        group.add(member, self.request.protocol_type)
        group.set_awaiting_join(member, self.reply)
        member.session_deadline_ms = rebalance.now.monotonic_ms + rebalance.config.new_member_timeout_ms
        group.wake_by(member.session_deadline_ms)
        if group.initial_delay_ms is not None:
            group.joined_in_delay = True
        rebalance.prepare_or_complete(f"{member_id} joins{_because(self.request)}")

    # -- known members -------------------------------------------------------------------------------------

    def _known_member(self) -> None:
        request, group = self.request, self.group
        if request.member_id in group.pending and request.group_instance_id is None:
            self._add(request.member_id)
            return
        try:
            member = group.check_member(request.member_id, request.group_instance_id)
        except Refused as refusal:
            self._refuse(refusal.code, request.member_id)
            return
        is_leader = member.id == group.leader_id
        is_unchanged = member.protocols == plain(request.protocols)
        match group.state:
            case GroupState.PREPARING_REBALANCE:
                self._rejoin(member)
            case GroupState.COMPLETING_REBALANCE if is_unchanged:
                # It did not hear of our answer; the generation it asks for is the current one.
                self._answer(member, with_members=is_leader)
            case GroupState.STABLE if is_unchanged and not is_leader:
                self._answer(member, with_members=False)
            case _:  # a leader joins again because what it must assign has changed
                self._rejoin(member)

    def _rejoin(self, member: Member) -> None:
        self._update(member)
        self.rebalance.prepare_or_complete(f"{member.id} joins again{_because(self.request)}")

    def _update(self, member: Member) -> None:
        request, group = self.request, self.group
        group.update_protocols(member, plain(request.protocols))
        member.rebalance_timeout_ms = rebalance_timeout_ms(request)
        member.session_timeout_ms = request.session_timeout_ms
        before = group.set_awaiting_join(member, self.reply)
        if before is not None:  # a retry over another connection
            again = JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.id)
            self.rebalance.outcome.answer(before, again)

    def _answer(self, member: Member, *, with_members: bool, skip_assignment: bool = False) -> None:
        response = joined_response(
            self.group, member, with_members=with_members, skip_assignment=skip_assignment
        )
        self.rebalance.outcome.answer(self.reply, response)

    # -- static members ------------------------------------------------------------------------------------

    def _replace(self, old_id: str, member_id: str) -> None:
        """The same member, restarted. If it changes nothing, nobody else hears of it."""
        group, rebalance = self.group, self.rebalance
        rebalance.refuse_member(group.members[old_id], ErrorCode.FENCED_INSTANCE_ID)
        leader_before = group.leader_id
        member = group.replace_static(old_id, member_id)
        group.not_synced.discard(old_id)
        member.client_id, member.client_host = self.caller.client_id, self.caller.host
        group.extend_session(member, rebalance.now.monotonic_ms)
        self._update(member)
        if group.state is GroupState.STABLE and group.vote() == group.protocol_name:
            self._stay_stable(member, leader_before)
        else:
            rebalance.prepare_or_complete(f"{member_id} takes the place of {old_id}{_because(self.request)}")

    def _stay_stable(self, member: Member, leader_before: str | None) -> None:
        group, outcome = self.group, self.rebalance.outcome
        group.set_awaiting_join(member, None)
        assignments = {each.id: each.assignment for each in group.members.values()}
        outcome.records.append(group.to_record(group.generation, assignments, self.rebalance.now.wall_ms))
        if self.caller.version >= _SKIP_ASSIGNMENT_SINCE:
            is_leader = member.id == group.leader_id
            self._answer(member, with_members=is_leader, skip_assignment=is_leader)
            return
        # Before 9 a leader cannot be told to leave the assignment alone; so it must not know that it leads.
        response = joined_response(group, member, with_members=False)
        outcome.answer(self.reply, _led_by(response, leader_before))


def _led_by(response: JoinGroupResponse, leader: str | None) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=response.error_code,
        generation_id=response.generation_id,
        protocol_type=response.protocol_type,
        protocol_name=response.protocol_name,
        leader=leader or "",
        member_id=response.member_id,
    )


def _because(request: JoinGroupRequest) -> str:
    return f" ({request.reason})" if request.reason else ""
