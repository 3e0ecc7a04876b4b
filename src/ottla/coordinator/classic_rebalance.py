"""How a classic group gets from one generation to the next, and what time does to it.

A rebalance begins (`prepare`) when members come, go or change; it ends (`complete_join`) when all members
have joined again or the longest of their rebalance timeouts is over. Then the leader is told who takes part,
and its assignment (`classic_requests.sync`) makes the group stable.
"""

from __future__ import annotations

import logging

from ottla.coordinator.classic_group import ClassicGroup
from ottla.coordinator.group_config import GroupConfig
from ottla.coordinator.group_members import Member
from ottla.coordinator.group_state import GroupState
from ottla.coordinator.outcome import Outcome
from ottla.coordinator.state_log import Now
from ottla.model.errors import ErrorCode
from ottla.model.values import dataclass
from ottla.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from ottla.protocol.messages.sync_group import SyncGroupResponse

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Rebalance:
    """The steps of one decision about one group."""

    group: ClassicGroup
    config: GroupConfig
    now: Now
    outcome: Outcome

    # -- beginning -----------------------------------------------------------------------------------------

    def prepare_or_complete(self, reason: str) -> None:
        """A change that every member must hear of."""
        if self.group.state is GroupState.PREPARING_REBALANCE:
            self.maybe_complete_join()
        else:
            self.prepare(reason)

    def prepare(self, reason: str) -> None:
        group = self.group
        if group.state is GroupState.COMPLETING_REBALANCE:
            self.refuse_syncs(ErrorCode.REBALANCE_IN_PROGRESS)
        group.not_synced.clear()
        group.sync_deadline_ms = None
        group.is_unsettled = False
        is_initial = group.state is GroupState.EMPTY
        group.state = GroupState.PREPARING_REBALANCE
        log.info("group %s leaves generation %d: %s", group.id, group.generation, reason)
        if is_initial:
            self._begin_initial_delay()
        elif group.has_all_joined:
            self.complete_join()
        else:
            self._set_join_deadline(group.rebalance_timeout_ms)

    def _begin_initial_delay(self) -> None:
        """More members are likely to follow the first one: one rebalance for all of them (KIP-134)."""
        group, delay_ms = self.group, self.config.initial_rebalance_delay_ms
        group.initial_delay_ms = delay_ms
        group.initial_left_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        group.joined_in_delay = False
        self._set_join_deadline(delay_ms)

    def _set_join_deadline(self, delay_ms: int) -> None:
        self.group.join_deadline_ms = self.now.monotonic_ms + delay_ms
        self.group.wake_by(self.group.join_deadline_ms)

    # -- the join phase ends -------------------------------------------------------------------------------

    def maybe_complete_join(self) -> None:
        group = self.group
        if group.state is not GroupState.PREPARING_REBALANCE or group.initial_delay_ms is not None:
            return
        if group.has_all_joined:
            self.complete_join()

    def complete_join(self) -> None:
        group = self.group
        group.join_deadline_ms = group.initial_delay_ms = None
        missing = [each for each in group.members.values() if each.awaiting_join is None]
        for member in missing:
            if member.instance_id is None:  # a static member may be away for as long as its session lasts
                log.info("group %s goes on without %s, which did not join again", group.id, member.id)
                group.remove(member.id)
        if not group.members:
            generation = group.generation + 1
            self.outcome.records.append(group.to_record(generation, {}, self.now.wall_ms))
            return
        if not self._elect_leader():
            self._set_join_deadline(group.rebalance_timeout_ms)
            return
        group.generation += 1
        group.protocol_name = group.vote()
        group.subscribed = group.find_subscribed()
        group.state = GroupState.COMPLETING_REBALANCE
        log.info("group %s has %d members in generation %d", group.id, len(group.members), group.generation)
        self._answer_joins()
        group.not_synced = set(group.members)
        group.sync_deadline_ms = self.now.monotonic_ms + group.rebalance_timeout_ms
        group.wake_by(group.sync_deadline_ms)

    def _elect_leader(self) -> bool:
        """The leader must have joined; else the first that has takes over."""
        group = self.group
        leader = group.members.get(group.leader_id or "")
        if leader is not None and leader.awaiting_join is not None:
            return True
        joined = next((each.id for each in group.members.values() if each.awaiting_join is not None), None)
        if joined is not None:
            group.leader_id = joined
        return joined is not None

    def _answer_joins(self) -> None:
        group = self.group
        for member in group.members.values():
            self.answer_join(
                member, joined_response(group, member, with_members=member.id == group.leader_id)
            )
            group.extend_session(member, self.now.monotonic_ms)
            member.is_new = False

    # -- answers to those that wait ------------------------------------------------------------------------

    def answer_join(self, member: Member, response: JoinGroupResponse) -> None:
        reply = self.group.set_awaiting_join(member, None)
        if reply is not None:
            self.outcome.answer(reply, response)

    def answer_sync(self, member: Member, response: SyncGroupResponse) -> None:
        if member.awaiting_sync is not None:
            self.outcome.answer(member.awaiting_sync, response)
            member.awaiting_sync = None
            self.group.extend_session(member, self.now.monotonic_ms)

    def refuse_syncs(self, code: ErrorCode) -> None:
        for member in self.group.members.values():
            self.answer_sync(member, SyncGroupResponse(error_code=code))

    def refuse_member(self, member: Member, code: ErrorCode) -> None:
        """It is about to go; whoever waits for it hears that."""
        self.answer_join(member, JoinGroupResponse(error_code=code))
        self.answer_sync(member, SyncGroupResponse(error_code=code))

    # -- members go ----------------------------------------------------------------------------------------

    def remove(self, member: Member, reason: str) -> None:
        """One member goes, and the others share what it had."""
        self.refuse_member(member, ErrorCode.UNKNOWN_MEMBER_ID)
        self.group.remove(member.id)
        self.after_removal(reason)

    def after_removal(self, reason: str) -> None:
        match self.group.state:
            case GroupState.STABLE | GroupState.COMPLETING_REBALANCE:
                self.prepare(reason)
            case GroupState.PREPARING_REBALANCE:
                self.maybe_complete_join()
            case _:
                pass

    # -- time ----------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Does what is due."""
        group, now_ms = self.group, self.now.monotonic_ms
        if group.is_unsettled:
            self._settle()
        expired = [each for each, deadline_ms in group.pending.items() if deadline_ms <= now_ms]
        for member_id in expired:
            group.remove(member_id)
        if expired:
            self.maybe_complete_join()
        for member in list(group.members.values()):
            if member.session_deadline_ms is not None and member.session_deadline_ms <= now_ms:
                self._session_over(member)
        if group.join_deadline_ms is not None and group.join_deadline_ms <= now_ms:
            self._join_time_over()
        if group.sync_deadline_ms is not None and group.sync_deadline_ms <= now_ms:
            self._sync_time_over()
        group.find_wake_ms()

    def _settle(self) -> None:
        """Its members were those of a consumer group a moment ago, or before the coordinator started."""
        for member in self.group.members.values():
            self.group.extend_session(member, self.now.monotonic_ms)
        self.prepare("it is no consumer group any more")

    def _session_over(self, member: Member) -> None:
        if member.is_waiting() and not member.is_new:
            member.session_deadline_ms = None  # it is our turn; it begins anew with our answer
        elif member.id in self.group.members:
            self.remove(member, f"{member.id} was not heard of for {member.session_timeout_ms} ms")

    def _join_time_over(self) -> None:
        group = self.group
        if group.initial_delay_ms is None or not group.joined_in_delay or group.initial_left_ms == 0:
            self.complete_join()
            return
        delay_ms = min(self.config.initial_rebalance_delay_ms, group.initial_left_ms)
        group.initial_left_ms = max(group.initial_left_ms - group.initial_delay_ms, 0)
        group.initial_delay_ms = delay_ms
        group.joined_in_delay = False
        self._set_join_deadline(delay_ms)

    def _sync_time_over(self) -> None:
        """Members that took part in the join but never asked for their assignment are gone."""
        group = self.group
        group.sync_deadline_ms = None
        late = [group.members[member_id] for member_id in group.members if member_id in group.not_synced]
        for member in late:
            self.refuse_member(member, ErrorCode.UNKNOWN_MEMBER_ID)
            group.remove(member.id)
        if late:
            self.prepare(f"{len(late)} members did not ask for their assignment in time")


def refuse_all(
    group: ClassicGroup, code: ErrorCode, outcome: Outcome, join_code: ErrorCode | None = None
) -> None:
    """Whoever waits in the group hears that it is in vain; who joins, by another code if one is given."""
    for member in group.members.values():
        join = group.set_awaiting_join(member, None)
        if join is not None:
            outcome.answer(join, JoinGroupResponse(error_code=join_code or code, member_id=member.id))
        sync, member.awaiting_sync = member.awaiting_sync, None
        if sync is not None:
            outcome.answer(sync, SyncGroupResponse(error_code=code))


def joined_response(
    group: ClassicGroup, member: Member, *, with_members: bool, skip_assignment: bool = False
) -> JoinGroupResponse:
    """The answer to a member of the current generation."""
    members = [
        JoinGroupResponseMember(each.id, each.instance_id, each.metadata(group.protocol_name))
        for each in (group.members.values() if with_members else ())
    ]
    return JoinGroupResponse(
        error_code=ErrorCode.NONE,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        skip_assignment=skip_assignment,
        member_id=member.id,
        members=members,
    )
