"""A group with members changes its protocol (KIP-848, `group.consumer.migration.policy`).

A classic group of consumers becomes a consumer group when a member comes with the new protocol: each member
keeps what it was assigned last, and its generation is the epoch of all. It becomes a classic group again when
the last member that speaks the new protocol is gone: each member has what the last target gave it, which it
may not have yet, so a rebalance must follow (`ClassicGroup.is_unsettled`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from ottla.coordinator import consumer_removal
from ottla.coordinator.classic_formats import assigned_slots, encode_slots
from ottla.coordinator.classic_group import ClassicGroup
from ottla.coordinator.consumer_change import subscribed_topics
from ottla.coordinator.consumer_group import ConsumerGroup
from ottla.coordinator.consumer_members import (
    JOINS,
    NO_SLOTS,
    ClassicTerms,
    ConsumerMember,
    Slot,
    Slots,
    to_record,
)
from ottla.coordinator.consumer_records import (
    ConsumerGroupKey,
    ConsumerGroupValue,
    ConsumerRecord,
    MemberAssignmentKey,
    MemberKey,
    MemberTargetKey,
    MemberTargetValue,
    TargetKey,
    TargetValue,
    consumer_record,
)
from ottla.coordinator.group_config import GroupConfig
from ottla.coordinator.group_members import Member
from ottla.coordinator.group_records import group_record
from ottla.coordinator.groups import Group
from ottla.coordinator.known_topics import Topics, metadata_hash
from ottla.coordinator.state_log import StateRecord
from ottla.model.errors import ErrorCode, Malformed, Refused
from ottla.model.values import replace
from ottla.protocol.consumer_protocol import PROTOCOL_TYPE, decode_subscription
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

log = logging.getLogger(__name__)


def consumer_group(
    group: Group | None, request: ConsumerGroupHeartbeatRequest, config: GroupConfig, topics: Topics
) -> tuple[ConsumerGroup, list[StateRecord]]:
    """The one that the heartbeat is for, with the records that make it one of what was there before.

    What was there stays until these are applied.
    """
    if isinstance(group, ConsumerGroup):
        return group, []
    if request.member_epoch != JOINS:
        raise no_consumer_group(request.group_id, group)
    made = ConsumerGroup(request.group_id)
    if group is None:
        return made, []
    records = [group_record(group.id, None)] if group.is_logged else []
    if group.members:
        for record in upgraded(group, config, topics):
            made.apply(record)
            records.append(consumer_record(*record))
        log.info("group %s: a member has brought the consumer protocol", group.id)
    return made, records


def no_consumer_group(group_id: str, group: Group | None) -> Refused:
    reason = "there is none" if group is None else "it uses the classic protocol"
    return Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"{group_id} is no consumer group: {reason}")


# -- from the classic protocol to the new one ----------------------------------------------------------------


def upgraded(group: ClassicGroup, config: GroupConfig, topics: Topics) -> list[ConsumerRecord]:
    """The records of the consumer group that it becomes. Refused when it must stay as it is."""
    reason = None
    if not config.can_upgrade:
        reason = (
            "it has members that use the classic protocol, and group.consumer.migration.policy is against"
        )
    elif not group.reads_topics:
        reason = f"its members are no consumers but {group.protocol_type!r}"
    elif len(group.members) > config.consumer_size_max:
        reason = "it has more members than group.consumer.max.size"
    else:
        try:
            return _records(group, _members(group, topics), topics)
        except Malformed as problem:
            reason = f"what its members say is not understood: {problem}"
    raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"{group.id} is no consumer group: {reason}")


def _members(group: ClassicGroup, topics: Topics) -> list[ConsumerMember]:
    """A partition that a strange assignor gave to several goes to the first of them."""
    taken: set[Slot] = set()
    members = []
    for each in group.members.values():
        member = _to_consumer(each, group, topics)
        members.append(replace(member, assigned=member.assigned - taken))
        taken |= member.assigned
    return members


def _to_consumer(member: Member, group: ClassicGroup, topics: Topics) -> ConsumerMember:
    metadata = member.metadata(group.protocol_name) or member.protocols[0][1]
    subscription = decode_subscription(metadata)
    return ConsumerMember(
        member.id,
        member.instance_id,
        subscription.rack_id or None,
        member.client_id,
        member.client_host,
        tuple(sorted(set(subscription.topics))),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        epoch=group.generation,
        previous_epoch=group.generation,
        assigned=assigned_slots(member.assignment, topics),
        classic=ClassicTerms(member.session_timeout_ms, member.protocols),
    )


def _records(group: ClassicGroup, members: list[ConsumerMember], topics: Topics) -> list[ConsumerRecord]:
    epoch = group.generation
    topics_hash = metadata_hash(subscribed_topics(members, {}, topics))
    targets = ((each, MemberTargetValue(to_record(each.assigned))) for each in members)
    return [
        *(ConsumerRecord(MemberKey(group.id, each.id), each.metadata()) for each in members),
        ConsumerRecord(ConsumerGroupKey(group.id), ConsumerGroupValue(epoch, topics_hash)),
        *(ConsumerRecord(MemberTargetKey(group.id, each.id), target) for each, target in targets),
        ConsumerRecord(TargetKey(group.id), TargetValue(epoch)),
        *(ConsumerRecord(MemberAssignmentKey(group.id, each.id), each.assignment()) for each in members),
    ]


# -- and back ------------------------------------------------------------------------------------------------


def without(
    group: ConsumerGroup, member_ids: Sequence[str], config: GroupConfig, topics: Topics, wall_ms: int
) -> list[StateRecord]:
    """Members go; a group that only members of the classic protocol are left of becomes a classic one."""
    left = {each.id: each for each in group.members.values() if each.id not in member_ids}
    if not can_downgrade(left, config):
        return consumer_removal.remove(group, member_ids)
    log.info("group %s: nobody in it speaks the consumer protocol any more", group.id)
    return downgraded(group, group.epoch, left, group.targets, topics, wall_ms)


def can_downgrade(members: Mapping[str, ConsumerMember], config: GroupConfig) -> bool:
    """Whether a group that only these are left of becomes a classic one."""
    return (
        config.can_downgrade
        and 0 < len(members) <= config.size_max
        and all(each.classic is not None for each in members.values())
    )


def downgraded(
    group: ConsumerGroup,
    epoch: int,
    members: Mapping[str, ConsumerMember],
    targets: Mapping[str, Slots],
    topics: Topics,
    wall_ms: int,
) -> list[StateRecord]:
    """The records that end the consumer group and begin the classic one, of which only these are members."""
    classic = ClassicGroup(group.id)
    classic.generation = epoch
    for each in members.values():
        classic.add(_to_classic(each), PROTOCOL_TYPE)
    classic.protocol_name = classic.vote()
    assignments = {
        each.id: encode_slots(targets.get(each.id, NO_SLOTS), each.metadata(classic.protocol_name), topics)
        for each in classic.members.values()
    }
    joined = [each for each in members if each not in group.members]
    return [
        *(record for member_id in joined for record in consumer_removal.forget(group.id, member_id)),
        *group.tombstones(),
        classic.to_record(epoch, assignments, wall_ms),
    ]


def _to_classic(member: ConsumerMember) -> Member:
    assert member.classic is not None
    return Member(
        id=member.id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.classic.session_timeout_ms,
        protocols=member.classic.protocols,
    )
