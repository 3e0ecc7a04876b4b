"""The groups of one partition of `__consumer_offsets`: who is in them and how far they have read.

Requests come in with the time and give an Outcome; its records must be applied at once and appended before
its answers leave. Groups are made by joining or committing, and go when they are empty and their last
offset is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence

from ottla.coordinator import classic_requests, consumer_removal, expiry
from ottla.coordinator.classic_group import ClassicGroup
from ottla.coordinator.classic_join import Join
from ottla.coordinator.classic_rebalance import Rebalance
from ottla.coordinator.consumer_group import ConsumerGroup
from ottla.coordinator.consumer_heartbeat import Heartbeat, Topics, check_request, is_leaving
from ottla.coordinator.consumer_members import JOINS
from ottla.coordinator.consumer_records import ConsumerGroupKey, ConsumerRecord
from ottla.coordinator.group_config import GroupConfig
from ottla.coordinator.group_members import Caller, Reply
from ottla.coordinator.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    GroupRecord,
    OffsetCommitKey,
    OffsetRecord,
    group_record,
    offset_record,
    read_record,
)
from ottla.coordinator.group_state import GroupState
from ottla.coordinator.groups import Group
from ottla.coordinator.offset_commits import Commit, commit_records
from ottla.coordinator.offsets import Offsets, Place
from ottla.coordinator.outcome import Outcome
from ottla.coordinator.state_log import Now, StateRecord
from ottla.model.errors import ErrorCode, Malformed, Refused
from ottla.model.offsets import NO_PRODUCER_ID
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

log = logging.getLogger(__name__)

_MEMBER_EPOCHS_SINCE = 9  # of OffsetCommit


class GroupMachine:
    def __init__(self, config: GroupConfig, new_member_id: Callable[[str], str]) -> None:
        self.groups: dict[str, Group] = {}
        self.offsets = Offsets()
        self._config = config
        self._new_member_id = new_member_id

    # -- the log -------------------------------------------------------------------------------------------

    def apply(self, record: StateRecord, producer_id: int = NO_PRODUCER_ID) -> None:
        try:
            read = read_record(record)
        except Malformed as problem:
            log.warning("skipped a record that no coordinator wrote: %s", problem)
            return
        match read:
            case OffsetRecord(key, value):
                if key.group not in self.groups:
                    self.groups[key.group] = ClassicGroup(key.group)
                if producer_id != NO_PRODUCER_ID:
                    self.offsets.apply_open(key, value, producer_id)
                else:
                    self.offsets.apply(key, value)
                self._drop_if_nothing_is_left(key.group)
            case GroupRecord(key, value):
                self._apply_group(key, value)
            case ConsumerRecord():
                self._apply_consumer(read)
            case None:
                log.warning("skipped a record of kind %s, which is not known here", record.key[:2].hex())

    def _apply_group(self, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
        group = self.groups.get(key.group)
        if value is not None:
            self._classic_group(key.group).apply(value)
        elif isinstance(group, ClassicGroup):
            group.is_logged = False
            self._drop_if_nothing_is_left(key.group)

    def _apply_consumer(self, record: ConsumerRecord) -> None:
        """After compaction the records of a group come in any order, so each of them can be its first."""
        group_id = record.key.group
        group = self.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            if record.value is None:
                return
            group = self.groups[group_id] = ConsumerGroup(group_id)
        group.apply(record)
        if isinstance(record.key, ConsumerGroupKey) and record.value is None:
            self.groups[group_id] = ClassicGroup(group_id)  # its offsets may stay
            self._drop_if_nothing_is_left(group_id)

    def apply_marker(self, producer_id: int, committed: bool) -> None:
        self.offsets.apply_marker(producer_id, committed)

    def _classic_group(self, group_id: str) -> ClassicGroup:
        group = self.groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            group = self.groups[group_id] = ClassicGroup(group_id)
        return group

    def _drop_if_nothing_is_left(self, group_id: str) -> None:
        group = self.groups.get(group_id)
        if group is None or group.is_logged or not group.is_vacant:
            return
        if not self.offsets.has_any(group_id):
            del self.groups[group_id]

    def loaded(self, now: Now) -> Outcome:
        """The log was read: members have a session's time to be heard of again."""
        outcome = Outcome()
        for group in self.groups.values():
            if isinstance(group, ConsumerGroup):
                group.loaded(now.monotonic_ms, self._config.consumer_session_timeout_ms)
                continue
            for member in group.members.values():
                group.extend_session(member, now.monotonic_ms)
            if len(group.members) > self._config.size_max:
                Rebalance(group, self._config, now, outcome).prepare(
                    "it has more members than group.max.size"
                )
        return outcome

    def unload(self, code: ErrorCode) -> Outcome:
        """The state is given up; whoever waits is told to look for the coordinator."""
        outcome = Outcome()
        for group in self.groups.values():
            if isinstance(group, ConsumerGroup):
                continue  # nobody waits in it
            for member in group.members.values():
                join, member.awaiting_join = member.awaiting_join, None
                if join is not None:
                    outcome.answer(join, JoinGroupResponse(error_code=code, member_id=member.id))
                sync, member.awaiting_sync = member.awaiting_sync, None
                if sync is not None:
                    outcome.answer(sync, SyncGroupResponse(error_code=code))
        return outcome

    # -- membership ----------------------------------------------------------------------------------------

    def join(self, request: JoinGroupRequest, caller: Caller, reply: Reply, now: Now) -> Outcome:
        outcome = Outcome()
        group = self.groups.get(request.group_id)
        code = ErrorCode.NONE
        config = self._config
        if not config.session_timeout_ms_min <= request.session_timeout_ms <= config.session_timeout_ms_max:
            code = ErrorCode.INVALID_SESSION_TIMEOUT
        elif group is None and request.member_id:
            code = ErrorCode.UNKNOWN_MEMBER_ID
        elif isinstance(group, ConsumerGroup):
            if group.is_vacant:
                outcome.records += group.tombstones()
            else:
                code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if code is not ErrorCode.NONE:
            outcome.answer(reply, JoinGroupResponse(error_code=code, member_id=request.member_id))
            return outcome
        group = self._classic_group(request.group_id)
        Join(Rebalance(group, config, now, outcome), request, caller, reply, self._new_member_id).decide()
        self._drop_if_nothing_is_left(group.id)
        return outcome

    def sync(self, request: SyncGroupRequest, reply: Reply, now: Now) -> Outcome:
        outcome = Outcome()
        group = self.groups.get(request.group_id)
        if not isinstance(group, ClassicGroup):
            outcome.answer(reply, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        else:
            classic_requests.sync(Rebalance(group, self._config, now, outcome), request, reply)
        return outcome

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> ErrorCode:
        group = self.groups.get(request.group_id)
        if not isinstance(group, ClassicGroup):
            return ErrorCode.UNKNOWN_MEMBER_ID
        try:
            return classic_requests.heartbeat(group, request, now_ms)
        except Refused as refusal:
            return refusal.code

    def leave(self, group_id: str, members: Sequence[MemberIdentity], reply: Reply, now: Now) -> Outcome:
        outcome = Outcome()
        group = self.groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            results = [
                MemberResponse(each.member_id, each.group_instance_id, ErrorCode.UNKNOWN_MEMBER_ID)
                for each in members
            ]
        else:
            results = classic_requests.leave(Rebalance(group, self._config, now, outcome), list(members))
            self._drop_if_nothing_is_left(group_id)
        outcome.answer(reply, LeaveGroupResponse(members=results))
        return outcome

    def tick(self, group_id: str, now: Now) -> Outcome:
        """To be called when the group's `wake_ms` has come."""
        outcome = Outcome()
        group = self.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            late = group.overdue(now.monotonic_ms)
            if late:
                log.info("group %s: members %s were not heard of in time", group_id, ", ".join(late))
                outcome.records += consumer_removal.remove(group, late)
        elif group is not None:
            Rebalance(group, self._config, now, outcome).tick()
            self._drop_if_nothing_is_left(group_id)
        return outcome

    # -- membership of consumer groups (KIP-848) -----------------------------------------------------------

    def consumer_heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        caller: Caller,
        topics: Topics,
        reply: Reply,
        now: Now,
    ) -> Outcome:
        """Refused for what a member must not ask; then nothing has changed."""
        outcome = Outcome()
        check_request(request, caller.version, self._config)
        group, converted = self._consumer_group(request)
        if is_leaving(request):
            outcome.records += consumer_removal.leave(group, request)
            response = ConsumerGroupHeartbeatResponse(
                member_id=request.member_id, member_epoch=request.member_epoch
            )
        else:
            heartbeat = Heartbeat(group, request, caller, topics, self._config, now)
            response = heartbeat.decide(self._new_member_id)
            outcome.records += [*converted, *heartbeat.records]
            outcome.tells_the_log = response.assignment is not None
            self.groups[group.id] = group
        outcome.answer(reply, response)
        return outcome

    def _consumer_group(
        self, request: ConsumerGroupHeartbeatRequest
    ) -> tuple[ConsumerGroup, list[StateRecord]]:
        """With the records that end a classic group without members, whose place it takes."""
        group_id = request.group_id
        group = self.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group, []
        if request.member_epoch != JOINS or (group is not None and not group.is_vacant):
            reason = "there is none" if group is None else "it has members that use the classic protocol"
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"{group_id} is no consumer group: {reason}")
        is_logged = group is not None and group.is_logged
        return ConsumerGroup(group_id), [group_record(group_id, None)] if is_logged else []

    # -- offsets -------------------------------------------------------------------------------------------

    def commit(self, commit: Commit, now: Now, *, in_transaction: bool = False) -> list[StateRecord]:
        """The records of a commit; Refused when the group does not take it at all."""
        group = self.groups.get(commit.group_id)
        if group is None and commit.generation >= 0:
            raise Refused(
                ErrorCode.GROUP_ID_NOT_FOUND
                if commit.version >= _MEMBER_EPOCHS_SINCE
                else ErrorCode.ILLEGAL_GENERATION
            )
        if group is not None:
            self._check_commit(group, commit, now, in_transaction)
        return commit_records(commit, now.wall_ms)

    def _check_commit(self, group: Group, commit: Commit, now: Now, in_transaction: bool) -> None:
        if commit.generation < 0 and group.state is GroupState.EMPTY:
            return  # a consumer that assigns partitions to itself, or an administrator
        is_by_member = commit.generation >= 0 or commit.member_id or commit.instance_id is not None
        if not is_by_member:
            if in_transaction:
                return  # an old producer, which does not say who it is in the group (KIP-447)
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
        if isinstance(group, ConsumerGroup):
            _check_member_epoch(group, commit, in_transaction)
            return
        member = group.check_member(commit.member_id, commit.instance_id)
        if commit.generation != group.generation:
            raise Refused(ErrorCode.ILLEGAL_GENERATION)
        if group.state is GroupState.COMPLETING_REBALANCE and not in_transaction:
            raise Refused(ErrorCode.REBALANCE_IN_PROGRESS)  # which would be the end of a Java producer
        group.extend_session(member, now.monotonic_ms)

    def check_fetch(self, group_id: str, member_id: str | None, epoch: int) -> None:
        """Members of consumer groups must not go on from an offset that the next owner may have moved."""
        group = self.groups.get(group_id)
        if isinstance(group, ConsumerGroup) and (member_id or epoch >= 0):
            group.check_epoch(member_id or "", epoch)

    def is_metadata_too_large(self, metadata: str | None) -> bool:
        return metadata is not None and len(metadata) > self._config.offset_metadata_bytes_max

    def delete_offsets(
        self, group_id: str, places: Iterable[tuple[str, int]]
    ) -> tuple[list[StateRecord], list[ErrorCode]]:
        """OffsetDelete: tombstones, and one code for each place."""
        group = self.groups.get(group_id)
        if group is None:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND)
        if group.state is not GroupState.EMPTY and not group.reads_topics:
            raise Refused(ErrorCode.NON_EMPTY_GROUP)
        records: list[StateRecord] = []
        codes = []
        for topic, partition in places:
            if group.is_subscribed(topic):
                codes.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
                continue
            codes.append(ErrorCode.NONE)
            place = Place(group_id, topic, partition)
            if self.offsets.get(place) is not None or self.offsets.is_open(place):
                records.append(offset_record(OffsetCommitKey(*place), None))
        return records, codes

    # -- the end of groups ---------------------------------------------------------------------------------

    def delete_group(self, group_id: str) -> list[StateRecord]:
        group = self.groups.get(group_id)
        if group is None:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND)
        if group.state is not GroupState.EMPTY:
            raise Refused(ErrorCode.NON_EMPTY_GROUP)
        return [
            *(offset_record(OffsetCommitKey(*place), None) for place in self.offsets.places(group_id)),
            *group.tombstones(),
        ]

    def forget_topic(self, topic: str) -> Iterator[list[StateRecord]]:
        """The topic was deleted: tombstones for its offsets, group by group.

        Those that are there now: a new topic of the same name may get commits while this goes on.
        """
        doomed = [
            (group_id, dict(self.offsets.of_group(group_id)[topic]))
            for group_id in self.offsets.groups()
            if topic in self.offsets.of_group(group_id)
        ]
        for group_id, partitions in doomed:
            places = (Place(group_id, topic, partition) for partition in partitions)
            yield [
                offset_record(OffsetCommitKey(*place), None)
                for place in places
                if self.offsets.get(place) is partitions[place.partition]
            ]

    def expire(self, group_id: str, now: Now) -> list[StateRecord]:
        """Tombstones for what the group's retention is over for, and for the group if nothing is left."""
        group = self.groups.get(group_id)
        if group is None:
            return []
        records, is_all = expiry.expired_offsets(
            group, self.offsets, now.wall_ms, self._config.offsets_retention_ms
        )
        if is_all and group.is_vacant and group.is_logged:
            records += group.tombstones()
        return records


def _check_member_epoch(group: ConsumerGroup, commit: Commit, in_transaction: bool) -> None:
    """Members of consumer groups commit with 9 or newer; producers do not know of stale epochs."""
    member = group.member(commit.member_id)
    if commit.version < _MEMBER_EPOCHS_SINCE and not in_transaction:
        raise Refused(ErrorCode.UNSUPPORTED_VERSION)
    if in_transaction and commit.generation != member.epoch:
        raise Refused(ErrorCode.ILLEGAL_GENERATION)
    group.check_epoch(commit.member_id, commit.generation)
