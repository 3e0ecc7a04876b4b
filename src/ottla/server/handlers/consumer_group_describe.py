"""ConsumerGroupDescribe 0-1: state, members and assignments of consumer groups (KIP-848).

Whoever may not describe all the topics that a group reads is told nothing of it. From 1 on each member tells
its protocol. The answer leaves when the log holds what it tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.coordinator.consumer_change import assignor_of
from ottla.coordinator.consumer_group import ConsumerGroup
from ottla.coordinator.consumer_members import NO_SLOTS, ConsumerMember, Slots, by_topic
from ottla.model.errors import ErrorCode, Refused
from ottla.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from ottla.security.authorizer import Operation, ResourceType
from ottla.server.exchange import Exchange
from ottla.server.long_requests import PartOf, Work

if TYPE_CHECKING:
    from ottla.server.group_service import Groups
    from ottla.server.services import Services

_CLASSIC = 0
_CONSUMER = 1
_NOT_ASKED = -(2**31)


def handle(exchange: Exchange[ConsumerGroupDescribeRequest], services: Services) -> None:
    partitions: list[Groups] = []
    described: list[DescribedGroup] = []

    def describe_all() -> Work:
        for group_id in exchange.request.group_ids:
            yield None
            described.append(_describe(exchange, services, group_id, partitions))
        services.groups.when_durable(partitions, answer)

    def answer(refusal: Refused | None) -> None:
        if exchange.abandoned:
            return
        groups = described
        if refusal is not None:
            groups = [DescribedGroup(refusal.code, refusal.text, each.group_id) for each in described]
        exchange.answer(ConsumerGroupDescribeResponse(groups=groups))

    services.long_requests.begin(PartOf(exchange), describe_all())


def _describe(
    exchange: Exchange[ConsumerGroupDescribeRequest],
    services: Services,
    group_id: str,
    partitions: list[Groups],
) -> DescribedGroup:
    """Adds the partition that the group is in to `partitions`."""
    try:
        if not exchange.may(group_id):
            raise Refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        services.groups.check_serves_consumer_groups()
        partition = services.groups.find(group_id)
        group = partition.machine.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            reason = "there is none" if group is None else "it uses the classic protocol"
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"{group_id} is no consumer group: {reason}")
        members = [_member(services, group, each) for each in group.members.values()]
        _check_topics(exchange, services, members)
    except Refused as refusal:
        return DescribedGroup(refusal.code, refusal.text, group_id)
    partitions.append(partition)
    operations = _NOT_ASKED
    if exchange.request.include_authorized_operations:
        operations = services.operations_allowed(exchange.connection, ResourceType.GROUP, group_id)
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=assignor_of(group.members.values(), services.groups.config),
        members=members,
        authorized_operations=operations,
    )


def _check_topics(
    exchange: Exchange[ConsumerGroupDescribeRequest], services: Services, members: list[Member]
) -> None:
    names = {
        topic.topic_name
        for member in members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }.union(*(member.subscribed_topic_names for member in members))
    if not all(
        services.may(exchange.connection, Operation.DESCRIBE, ResourceType.TOPIC, name) for name in names
    ):
        raise Refused(
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            "it reads topics that you are not allowed to describe",
        )


def _member(services: Services, group: ConsumerGroup, member: ConsumerMember) -> Member:
    return Member(
        member.id,
        member.instance_id,
        member.rack_id,
        member.epoch,
        member.client_id,
        member.client_host,
        member.topics,
        member.pattern or "",
        _assignment(services, member.assigned | member.pending_revocation),  # what it may still read
        _assignment(services, group.targets.get(member.id, NO_SLOTS)),
        _CONSUMER if member.classic is None else _CLASSIC,
    )


def _assignment(services: Services, slots: Slots) -> Assignment:
    """Without topics that were deleted since."""
    topics = services.controller.image.topics_by_id
    return Assignment(
        [
            TopicPartitions(topic_id, topics[topic_id].name, partitions)
            for topic_id, partitions in by_topic(slots).items()
            if topic_id in topics
        ]
    )
