"""The groups of one partition of `__consumer_offsets`: who is in them and how far they have read.

Requests come in with the time and give an Outcome; its records must be applied at once and appended before
its answers leave. Groups are made by joining or committing, and go when they are empty and their last
offset is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence

from ottla.coordinator import classic_members, classic_requests, consumer_removal, expiry
from ottla.coordinator.classic_group import ClassicGroup
from ottla.coordinator.classic_join import Join
from ottla.coordinator.classic_members import ClassicJoin
from ottla.coordinator.classic_rebalance import Rebalance, refuse_all
from ottla.coordinator.consumer_change import Change
from ottla.coordinator.consumer_group import ConsumerGroup
from ottla.coordinator.consumer_heartbeat import Heartbeat, VisibleTopics, check_request, is_leaving
from ottla.coordinator.consumer_members import LEAVES_FOR_A_WHILE
from ottla.coordinator.consumer_records import ConsumerGroupKey, ConsumerRecord
from ottla.coordinator.group_config import GroupConfig
from ottla.coordinator.group_members import Caller, Reply
from ottla.coordinator.group_migration import (
    can_downgrade,
    consumer_group,
    downgraded,
    no_consumer_group,
    without,
)
from ottla.coordinator.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    GroupRecord,
    OffsetCommitKey,
    OffsetRecord,
    offset_record,
    read_record,
)
from ottla.coordinator.group_state import GroupState
from ottla.coordinator.groups import Group
from ottla.coordinator.known_topics import Topics
from ottla.coordinator.offset_commits import MEMBER_EPOCHS_SINCE, Commit, check_commit, commit_records
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


class GroupMachine:
    def __init__(self, config: GroupConfig, new_member_id: Callable[[str], str], topics: Topics) -> None:
        self.groups: dict[str, Group] = {}
        self.offsets = Offsets()
        self._config = config
        self._new_member_id = new_member_id
        self._topics = topics
        self._decided: ConsumerGroup | None = None  # of the last heartbeat; its records may make it a group
        self._ended: dict[str, int] = {}  # the last epochs of consumer groups that ended

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
                if value is None:
                    self._drop_if_nothing_is_left(key.group)
            case GroupRecord(key, value):
                self._apply_group(key, value)
            case ConsumerRecord():
                self._apply_consumer(read)
            case None:
                log.warning("skipped a record of kind %s, which is not known here", record.key[:2].hex())

    def _apply_group(self, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
        last_epoch = self._ended.pop(key.group, None)
        group = self.groups.get(key.group)
        if value is not None:
            group = self._classic_group(key.group)
            group.apply(value)
            if value.members and value.generation == last_epoch:
                group.mark_unsettled()
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
            group, self._decided = self._decided, None
            if group is None or group.id != group_id:
                group = ConsumerGroup(group_id)
            self.groups[group_id] = group
        if isinstance(record.key, ConsumerGroupKey) and record.value is None:
            self._ended[group_id] = group.epoch
            self.groups[group_id] = ClassicGroup(group_id)  # its offsets may stay
            self._drop_if_nothing_is_left(group_id)
        else:
            group.apply(record)

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
                group.begin_sessions(now.monotonic_ms, self._config.consumer_session_timeout_ms)
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
            refuse_all(group, code, outcome)
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
        if isinstance(group, ConsumerGroup):
            if not group.is_vacant:
                self._join_consumer_group(group, request, caller, reply, now, outcome)
                return outcome
            outcome.records += group.tombstones()
        group = self._classic_group(request.group_id)
        Join(Rebalance(group, config, now, outcome), request, caller, reply, self._new_member_id).decide()
        self._drop_if_nothing_is_left(group.id)
        return outcome

    def _join_consumer_group(
        self,
        group: ConsumerGroup,
        request: JoinGroupRequest,
        caller: Caller,
        reply: Reply,
        now: Now,
        outcome: Outcome,
    ) -> None:
        change = Change(group, self._topics, self._config, now)
        try:
            response = ClassicJoin(change, request, caller, self._new_member_id).decide()
        except Refused as refusal:
            outcome.answer(reply, JoinGroupResponse(error_code=refusal.code, member_id=request.member_id))
            return
        outcome.records += change.records
        if change.replaced is not None and can_downgrade(change.members, self._config):
            outcome.records += downgraded(
                group, change.epoch, change.members, change.targets, self._topics, now.wall_ms
            )
        outcome.tells_the_log = True
        outcome.answer(reply, response)

    def sync(self, request: SyncGroupRequest, reply: Reply, now: Now) -> Outcome:
        outcome = Outcome()
        group = self.groups.get(request.group_id)
        if isinstance(group, ClassicGroup):
            classic_requests.sync(Rebalance(group, self._config, now, outcome), request, reply)
            return outcome
        try:
            if group is None:
                raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
            response = classic_members.sync(group, request, self._topics, now.monotonic_ms)
            outcome.tells_the_log = True
        except Refused as refusal:
            response = SyncGroupResponse(error_code=refusal.code)
        outcome.answer(reply, response)
        return outcome

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> ErrorCode:
        group = self.groups.get(request.group_id)
        try:
            if isinstance(group, ClassicGroup):
                return classic_requests.heartbeat(group, request, now_ms)
            if group is not None:
                return classic_members.heartbeat(group, request, self._topics, now_ms)
        except Refused as refusal:
            return refusal.code
        return ErrorCode.UNKNOWN_MEMBER_ID

    def leave(self, group_id: str, members: Sequence[MemberIdentity], reply: Reply, now: Now) -> Outcome:
        outcome = Outcome()
        group = self.groups.get(group_id)
        if isinstance(group, ClassicGroup):
            results = classic_requests.leave(Rebalance(group, self._config, now, outcome), list(members))
            self._drop_if_nothing_is_left(group_id)
        elif group is not None:
            results, gone = classic_members.leave(group, members)
            if gone:
                outcome.records += without(group, gone, self._config, self._topics, now.wall_ms)
        else:
            results = [
                MemberResponse(each.member_id, each.group_instance_id, ErrorCode.UNKNOWN_MEMBER_ID)
                for each in members
            ]
        outcome.answer(reply, LeaveGroupResponse(members=results))
        return outcome

    def tick(self, group_id: str, now: Now) -> Outcome:
        """To be called when the group's `wake_ms` has come."""
        outcome = Outcome()
        group = self.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            late = group.overdue(now.monotonic_ms)
            for member_id, wait in late.items():
                log.info(
                    "group %s goes on without %s, which did not %s in time", group_id, member_id, wait.value
                )
            if late:
                outcome.records += without(group, list(late), self._config, self._topics, now.wall_ms)
        elif group is not None:
            Rebalance(group, self._config, now, outcome).tick()
            self._drop_if_nothing_is_left(group_id)
        return outcome

    # -- membership of consumer groups (KIP-848) -----------------------------------------------------------

    def consumer_heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        caller: Caller,
        visible_topics: VisibleTopics,
        reply: Reply,
        now: Now,
    ) -> Outcome:
        """Refused for what a member must not ask; then nothing has changed."""
        outcome = Outcome()
        check_request(request, caller.version, self._config)
        if is_leaving(request):
            self._leave_consumer_group(request, reply, now, outcome)
            return outcome
        known = self.groups.get(request.group_id)
        group, converted = consumer_group(known, request, self._config, self._topics)
        change = Change(group, self._topics, self._config, now)
        response = Heartbeat(change, request, caller, visible_topics).decide(self._new_member_id)
        outcome.records += [*converted, *change.records]
        outcome.tells_the_log = response.assignment is not None
        outcome.answer(reply, response)
        if isinstance(known, ClassicGroup):
            group.begin_sessions(now.monotonic_ms, self._config.consumer_session_timeout_ms)
            # Kafka tells joiners REBALANCE_IN_PROGRESS too, which aiokafka dies of; this they all try again.
            again = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            refuse_all(known, ErrorCode.REBALANCE_IN_PROGRESS, outcome, join_code=again)
        self._decided = None if known is group else group
        return outcome

    def _leave_consumer_group(
        self, request: ConsumerGroupHeartbeatRequest, reply: Reply, now: Now, outcome: Outcome
    ) -> None:
        group = self.groups.get(request.group_id)
        if not isinstance(group, ConsumerGroup):
            raise no_consumer_group(request.group_id, group)
        member = consumer_removal.leaving_member(group, request)
        if request.member_epoch == LEAVES_FOR_A_WHILE:
            outcome.records += consumer_removal.leave_for_a_while(group, member)
        else:
            outcome.records += without(group, [member.id], self._config, self._topics, now.wall_ms)
        outcome.answer(
            reply,
            ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch),
        )

    # -- offsets -------------------------------------------------------------------------------------------

    def commit(self, commit: Commit, now: Now, *, in_transaction: bool = False) -> list[StateRecord]:
        """The records of a commit; Refused when the group does not take it at all."""
        group = self.groups.get(commit.group_id)
        if group is None and commit.generation >= 0:
            raise Refused(
                ErrorCode.GROUP_ID_NOT_FOUND
                if commit.version >= MEMBER_EPOCHS_SINCE
                else ErrorCode.ILLEGAL_GENERATION
            )
        if group is not None:
            check_commit(group, commit, now.monotonic_ms, in_transaction)
        return commit_records(commit, now.wall_ms)

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
