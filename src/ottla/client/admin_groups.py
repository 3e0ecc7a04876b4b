"""Consumer groups, as admin calls: who is in them, what they have committed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from ottla.client import admin_topics
from ottla.client.admin_values import CommittedOffset, GroupDescription, GroupListing, GroupMember
from ottla.client.cluster import Cluster
from ottla.client.cluster_view import Broker
from ottla.client.errors import BrokerError, ClientError, Unsupported, broker_error
from ottla.client.group_formats import PROTOCOL_TYPE, decode_assignment
from ottla.model.errors import ErrorCode
from ottla.model.topics import TopicPartition
from ottla.protocol.apis import (
    CONSUMER_GROUP_DESCRIBE,
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    LEAVE_GROUP,
    LIST_GROUPS,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
)
from ottla.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ottla.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from ottla.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ottla.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

T = TypeVar("T")

VERSION_WITH_NAMES = 9
"""Of OffsetCommit and OffsetFetch: 10 names topics by ids, which a group may outlive."""


async def list_groups(cluster: Cluster, deadline_ms: int) -> tuple[GroupListing, ...]:
    """The groups of every broker: each tells those that it coordinates."""
    found: dict[str, GroupListing] = {}
    for broker in (await admin_topics.describe_cluster(cluster, deadline_ms)).brokers:
        answer = await cluster.call(
            broker.address, LIST_GROUPS, ListGroupsRequest(), ListGroupsResponse, deadline_ms
        )
        if answer.error_code:
            raise broker_error(answer.error_code, f"broker {broker.id}")
        for group in answer.groups:
            listing = GroupListing(
                group.group_id, group.protocol_type, group.group_state, group.group_type, broker
            )
            found[group.group_id] = listing
    return tuple(found[group_id] for group_id in sorted(found))


async def describe_group(cluster: Cluster, group_id: str, deadline_ms: int) -> GroupDescription:
    async def ask(coordinator: Broker, deadline_ms: int) -> GroupDescription:
        request = DescribeGroupsRequest((group_id,))
        answer = await cluster.call(
            coordinator.address, DESCRIBE_GROUPS, request, DescribeGroupsResponse, deadline_ms
        )
        (group,) = answer.groups
        if group.group_state == "Dead":  # there is none, or it is of the other protocol
            return await _describe_consumer_group(cluster, group_id, coordinator, deadline_ms)
        _check(group_id, group.error_code, group.error_message)
        return _description(group, coordinator)

    return await _of_coordinator(cluster, group_id, ask, deadline_ms)


async def _describe_consumer_group(
    cluster: Cluster, group_id: str, coordinator: Broker, deadline_ms: int
) -> GroupDescription:
    """Of the protocol that servers assign in (KIP-848), which older brokers do not have."""
    request = ConsumerGroupDescribeRequest((group_id,))
    try:
        answer = await cluster.call(
            coordinator.address, CONSUMER_GROUP_DESCRIBE, request, ConsumerGroupDescribeResponse, deadline_ms
        )
    except Unsupported:
        raise _missing(group_id) from None
    (group,) = answer.groups
    _check(group_id, group.error_code, group.error_message)
    return GroupDescription(
        id=group.group_id,
        state=group.group_state,
        protocol_type=PROTOCOL_TYPE,
        assignor=group.assignor_name,
        coordinator=coordinator,
        members=tuple(
            GroupMember(
                id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                host=member.client_host,
                assignment=tuple(
                    TopicPartition(topic.topic_name, partition)
                    for topic in member.assignment.topic_partitions
                    for partition in topic.partitions
                ),
            )
            for member in group.members
        ),
    )


def _description(group: DescribedGroup, coordinator: Broker) -> GroupDescription:
    is_consumers = group.protocol_type == PROTOCOL_TYPE
    return GroupDescription(
        id=group.group_id,
        state=group.group_state,
        protocol_type=group.protocol_type,
        assignor=group.protocol_data,
        coordinator=coordinator,
        members=tuple(
            GroupMember(
                id=member.member_id,
                instance_id=member.group_instance_id,
                client_id=member.client_id,
                host=member.client_host,
                assignment=decode_assignment(member.member_assignment) if is_consumers else (),
            )
            for member in group.members
        ),
    )


async def delete_groups(
    cluster: Cluster, ids: Iterable[str], deadline_ms: int
) -> dict[str, ClientError | None]:
    outcomes: dict[str, ClientError | None] = {}
    for group_id in ids:
        try:
            await _delete_group(cluster, group_id, deadline_ms)
            outcomes[group_id] = None
        except BrokerError as error:
            outcomes[group_id] = error
    return outcomes


async def _delete_group(cluster: Cluster, group_id: str, deadline_ms: int) -> None:
    async def ask(coordinator: Broker, deadline_ms: int) -> None:
        request = DeleteGroupsRequest((group_id,))
        answer = await cluster.call(
            coordinator.address, DELETE_GROUPS, request, DeleteGroupsResponse, deadline_ms
        )
        for result in answer.results:
            _check(group_id, result.error_code, None)

    await _of_coordinator(cluster, group_id, ask, deadline_ms)


async def remove_members(
    cluster: Cluster, group_id: str, members: Iterable[GroupMember], deadline_ms: int
) -> None:
    """Of a classic group; they may join again. One that is gone already does not matter."""
    leaving = [MemberIdentity("" if each.instance_id else each.id, each.instance_id) for each in members]

    async def ask(coordinator: Broker, deadline_ms: int) -> None:
        request = LeaveGroupRequest(group_id, members=leaving)
        answer = await cluster.call(
            coordinator.address, LEAVE_GROUP, request, LeaveGroupResponse, deadline_ms
        )
        _check(group_id, answer.error_code, None)
        for result in answer.members:
            if result.error_code != ErrorCode.UNKNOWN_MEMBER_ID:
                _check(group_id, result.error_code, None)

    if leaving:
        await _of_coordinator(cluster, group_id, ask, deadline_ms)


async def fetch_offsets(
    cluster: Cluster,
    group_id: str,
    partitions: Sequence[TopicPartition] | None,
    deadline_ms: int,
    *,
    require_stable: bool = False,
) -> dict[TopicPartition, CommittedOffset]:
    """What the group has committed (None: everywhere); partitions without a commit are left out."""

    def request(version: int) -> OffsetFetchRequest:
        stable = require_stable and version >= 7
        if version >= 8:
            topics = (
                None
                if partitions is None
                else [
                    OffsetFetchRequestTopics(name, partition_indexes=indexes)
                    for name, indexes in _grouped(partitions)
                ]
            )
            return OffsetFetchRequest(
                groups=(OffsetFetchRequestGroup(group_id, topics=topics),), require_stable=stable
            )
        old = (
            None
            if partitions is None
            else [OffsetFetchRequestTopic(name, indexes) for name, indexes in _grouped(partitions)]
        )
        return OffsetFetchRequest(group_id, old, require_stable=stable)

    async def ask(coordinator: Broker, deadline_ms: int) -> dict[TopicPartition, CommittedOffset]:
        answer = await cluster.call(
            coordinator.address,
            OFFSET_FETCH,
            request,
            OffsetFetchResponse,
            deadline_ms,
            version_max=VERSION_WITH_NAMES,
        )
        group = answer.groups[0] if answer.groups else answer
        _check(group_id, group.error_code, None)
        offsets = {}
        for topic in group.topics:
            for each in topic.partitions:
                target = TopicPartition(topic.name, each.partition_index)
                _check(group_id, each.error_code, None)
                if each.committed_offset >= 0:
                    epoch = None if each.committed_leader_epoch < 0 else each.committed_leader_epoch
                    offsets[target] = CommittedOffset(each.committed_offset, epoch, each.metadata or "")
        return offsets

    return await _of_coordinator(cluster, group_id, ask, deadline_ms)


def commit_request(
    group_id: str,
    offsets: Mapping[TopicPartition, CommittedOffset],
    *,
    generation: int = -1,
    member_id: str = "",
    instance_id: str | None = None,
) -> OffsetCommitRequest:
    """Without generation and member: by somebody who is not in the group, which must have no members."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for target, each in offsets.items():
        epoch = -1 if each.leader_epoch is None else each.leader_epoch
        data = OffsetCommitRequestPartition(target.partition, each.offset, epoch, each.metadata)
        topics.setdefault(target.topic, []).append(data)
    return OffsetCommitRequest(
        group_id,
        generation,
        member_id,
        instance_id,
        topics=[OffsetCommitRequestTopic(name, partitions=data) for name, data in topics.items()],
    )


def commit_problem(group_id: str, answer: OffsetCommitResponse) -> BrokerError | None:
    for topic in answer.topics:
        for partition in topic.partitions:
            if partition.error_code:
                subject = f"group {group_id!r}, {topic.name}-{partition.partition_index}"
                return broker_error(partition.error_code, subject)
    return None


async def alter_offsets(
    cluster: Cluster, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset], deadline_ms: int
) -> None:
    async def ask(coordinator: Broker, deadline_ms: int) -> None:
        answer = await cluster.call(
            coordinator.address,
            OFFSET_COMMIT,
            commit_request(group_id, offsets),
            OffsetCommitResponse,
            deadline_ms,
            version_max=VERSION_WITH_NAMES,
        )
        problem = commit_problem(group_id, answer)
        if problem is not None:
            raise _explained(group_id, problem)

    await _of_coordinator(cluster, group_id, ask, deadline_ms)


async def delete_offsets(
    cluster: Cluster, group_id: str, partitions: Sequence[TopicPartition], deadline_ms: int
) -> None:
    async def ask(coordinator: Broker, deadline_ms: int) -> None:
        request = OffsetDeleteRequest(
            group_id,
            [
                OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(index) for index in indexes])
                for name, indexes in _grouped(partitions)
            ],
        )
        answer = await cluster.call(
            coordinator.address, OFFSET_DELETE, request, OffsetDeleteResponse, deadline_ms
        )
        _check(group_id, answer.error_code, None)
        for topic in answer.topics:
            for partition in topic.partitions:
                _check(group_id, partition.error_code, None)

    await _of_coordinator(cluster, group_id, ask, deadline_ms)


async def _of_coordinator(
    cluster: Cluster, group_id: str, ask: Callable[[Broker, int], Awaitable[T]], deadline_ms: int
) -> T:
    """Asks the group's coordinator, and looks for it again when it has moved."""

    async def attempt(deadline_ms: int) -> T:
        coordinator = await admin_topics.find_coordinator(cluster, group_id, "group", deadline_ms)
        return await ask(coordinator, deadline_ms)

    return await cluster.retry(attempt, deadline_ms)


def _grouped(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    topics: dict[str, list[int]] = {}
    for target in partitions:
        topics.setdefault(target.topic, []).append(target.partition)
    return list(topics.items())


def _check(group_id: str, code: int, message: str | None) -> None:
    if code == ErrorCode.GROUP_ID_NOT_FOUND:
        raise _missing(group_id)
    if code:
        raise _explained(group_id, broker_error(code, f"group {group_id!r}", message))


def _missing(group_id: str) -> BrokerError:
    return BrokerError(
        ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r}", "list groups to see which are"
    )


def _explained(group_id: str, error: BrokerError) -> BrokerError:
    busy = (ErrorCode.NON_EMPTY_GROUP, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
    if error.code in busy:
        return BrokerError(error.code, f"group {group_id!r} has members", "stop its consumers first")
    return error
