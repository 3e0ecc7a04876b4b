"""Members that go: they leave, leave for a while, or are not heard of in time."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.coordinator.consumer_group import ConsumerGroup
from ottla.coordinator.consumer_members import LEAVES_FOR_A_WHILE, NO_SLOTS, ConsumerMember
from ottla.coordinator.consumer_records import (
    ConsumerGroupKey,
    ConsumerGroupValue,
    MemberAssignmentKey,
    MemberKey,
    MemberTargetKey,
    consumer_record,
)
from ottla.coordinator.state_log import StateRecord
from ottla.model.values import replace
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


def leaving_member(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> ConsumerMember:
    """Refused for who is no member."""
    if request.instance_id is None:
        return group.member(request.member_id)
    return group.static_member(request.instance_id, request.member_id)


def leave_for_a_while(group: ConsumerGroup, member: ConsumerMember) -> list[StateRecord]:
    """Its partitions are kept for it until its session ends."""
    away = replace(member, epoch=LEAVES_FOR_A_WHILE, previous_epoch=member.epoch, pending_revocation=NO_SLOTS)
    return [consumer_record(MemberAssignmentKey(group.id, member.id), away.assignment())]


def remove(group: ConsumerGroup, member_ids: Sequence[str]) -> list[StateRecord]:
    """The group goes on to its next epoch; the next heartbeat of another member finds a new target."""
    records = [record for member_id in member_ids for record in forget(group.id, member_id)]
    left = (member for member in group.members.values() if member.id not in member_ids)
    records += group.unused_patterns(left)
    records.append(
        consumer_record(ConsumerGroupKey(group.id), ConsumerGroupValue(group.epoch + 1, group.metadata_hash))
    )
    return records


def forget(group_id: str, member_id: str) -> list[StateRecord]:
    return [
        consumer_record(MemberAssignmentKey(group_id, member_id), None),
        consumer_record(MemberTargetKey(group_id, member_id), None),
        consumer_record(MemberKey(group_id, member_id), None),
    ]
