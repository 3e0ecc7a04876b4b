"""The groups of one partition of `__consumer_offsets`: who is in them and how far they have read.

Requests come in with the time and give an Outcome; its records must be applied at once and appended before
its answers leave. Groups are made by joining or committing, and go when they are empty and their last
offset is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence

from ottla.coordinator import classic_requests, expiry
from ottla.coordinator.classic_group import ClassicGroup, GroupState
from ottla.coordinator.classic_join import Join
from ottla.coordinator.classic_rebalance import Rebalance
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
from ottla.coordinator.offset_commits import Commit, commit_records
from ottla.coordinator.offsets import Offsets, Place
from ottla.coordinator.outcome import Outcome
from ottla.coordinator.state_log import Now, StateRecord
from ottla.model.errors import ErrorCode, Malformed, Refused
from ottla.model.offsets import NO_PRODUCER_ID
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

log = logging.getLogger(__name__)


class GroupMachine:
    def __init__(self, config: GroupConfig, new_member_id: Callable[[str], str]) -> None:
        self.groups: dict[str, ClassicGroup] = {}
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
                self._group(key.group)
                if producer_id != NO_PRODUCER_ID:
                    self.offsets.apply_open(key, value, producer_id)
                else:
                    self.offsets.apply(key, value)
                self._drop_if_nothing_is_left(key.group)
            case GroupRecord(key, value):
                self._apply_group(key, value)
            case None:
                log.warning("skipped a record of kind %s, which is not known here", record.key[:2].hex())

    def _apply_group(self, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
        if value is not None:
            self._group(key.group).apply(value)
        elif key.group in self.groups:
            self.groups[key.group].is_logged = False
            self._drop_if_nothing_is_left(key.group)

    def apply_marker(self, producer_id: int, committed: bool) -> None:
        self.offsets.apply_marker(producer_id, committed)

    def _group(self, group_id: str) -> ClassicGroup:
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = ClassicGroup(group_id)
        return group

    def _drop_if_nothing_is_left(self, group_id: str) -> None:
        group = self.groups.get(group_id)
        if group is None or group.is_logged or group.members or group.pending:
            return
        if group.state is GroupState.EMPTY and not self.offsets.has_any(group_id):
            del self.groups[group_id]

    def loaded(self, now: Now) -> Outcome:
        """The log was read: members have a session's time to be heard of again."""
        outcome = Outcome()
        for group in self.groups.values():
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
        if code is not ErrorCode.NONE:
            outcome.answer(reply, JoinGroupResponse(error_code=code, member_id=request.member_id))
            return outcome
        group = self._group(request.group_id)
        Join(Rebalance(group, config, now, outcome), request, caller, reply, self._new_member_id).decide()
        self._drop_if_nothing_is_left(group.id)
        return outcome

    def sync(self, request: SyncGroupRequest, reply: Reply, now: Now) -> Outcome:
        outcome = Outcome()
        group = self.groups.get(request.group_id)
        if group is None:
            outcome.answer(reply, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        else:
            classic_requests.sync(Rebalance(group, self._config, now, outcome), request, reply)
        return outcome

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> ErrorCode:
        group = self.groups.get(request.group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        try:
            return classic_requests.heartbeat(group, request, now_ms)
        except Refused as refusal:
            return refusal.code

    def leave(self, group_id: str, members: Sequence[MemberIdentity], reply: Reply, now: Now) -> Outcome:
        outcome = Outcome()
        group = self.groups.get(group_id)
        if group is None:
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
        if group is not None:
            Rebalance(group, self._config, now, outcome).tick()
            self._drop_if_nothing_is_left(group_id)
        return outcome

    # -- offsets -------------------------------------------------------------------------------------------

    def commit(self, commit: Commit, now: Now, *, in_transaction: bool = False) -> list[StateRecord]:
        """The records of a commit; Refused when the group does not take it at all."""
        group = self.groups.get(commit.group_id)
        if group is None and commit.generation >= 0:
            raise Refused(
                ErrorCode.GROUP_ID_NOT_FOUND if commit.version >= 9 else ErrorCode.ILLEGAL_GENERATION
            )
        if group is not None:
            self._check_commit(group, commit, now, in_transaction)
        return commit_records(commit, now.wall_ms)

    def _check_commit(self, group: ClassicGroup, commit: Commit, now: Now, in_transaction: bool) -> None:
        if commit.generation < 0 and group.state is GroupState.EMPTY:
            return  # a consumer that assigns partitions to itself, or an administrator
        is_by_member = commit.generation >= 0 or commit.member_id or commit.instance_id is not None
        if not is_by_member:
            if in_transaction:
                return  # an old producer, which does not say who it is in the group (KIP-447)
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
        member = group.check_member(commit.member_id, commit.instance_id)
        if commit.generation != group.generation:
            raise Refused(ErrorCode.ILLEGAL_GENERATION)
        if group.state is GroupState.COMPLETING_REBALANCE and not in_transaction:
            raise Refused(ErrorCode.REBALANCE_IN_PROGRESS)  # which would be the end of a Java producer
        group.extend_session(member, now.monotonic_ms)

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
            group_record(group_id, None),
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
        if is_all and group.state is GroupState.EMPTY and not group.pending and group.is_logged:
            records.append(group_record(group_id, None))
        return records
