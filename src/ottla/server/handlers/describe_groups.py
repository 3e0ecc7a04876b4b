"""DescribeGroups 0-6: state and members of classic groups.

A group that does not exist, or is a consumer group (KIP-848), is Dead; from 6 on it is refused instead. What
members said of themselves is told of stable groups only; in a rebalance they have what they had before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.coordinator.classic_group import ClassicGroup
from ottla.coordinator.group_state import GroupState
from ottla.model.errors import ErrorCode, Refused
from ottla.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from ottla.security.authorizer import ResourceType
from ottla.server.exchange import Exchange
from ottla.server.long_requests import Steps

if TYPE_CHECKING:
    from ottla.server.services import Services

_REFUSED_SINCE = 6
_NOT_ASKED = -(2**31)


def handle(exchange: Exchange[DescribeGroupsRequest], services: Services) -> None:
    services.long_requests.begin(exchange, _answer(exchange, services))


def _answer(exchange: Exchange[DescribeGroupsRequest], services: Services) -> Steps:
    groups = []
    for group_id in exchange.request.groups:
        yield None
        groups.append(_describe(exchange, services, group_id))
    return DescribeGroupsResponse(groups=groups)


def _describe(exchange: Exchange[DescribeGroupsRequest], services: Services, group_id: str) -> DescribedGroup:
    try:
        if not exchange.may(group_id):
            raise Refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        group = services.groups.topic.find(group_id).machine.groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            reason = "there is none" if group is None else "it uses the consumer protocol"
            group = None
            if exchange.version >= _REFUSED_SINCE:
                raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"{group_id} is no classic group: {reason}")
    except Refused as refusal:
        is_told = exchange.version >= _REFUSED_SINCE
        return DescribedGroup(
            refusal.code,
            refusal.text if is_told else None,
            group_id,
            GroupState.DEAD.value if refusal.code is ErrorCode.GROUP_ID_NOT_FOUND else "",
        )
    operations = _NOT_ASKED
    if exchange.request.include_authorized_operations:
        operations = services.operations_allowed(exchange.connection, ResourceType.GROUP, group_id)
    if group is None:
        return DescribedGroup(
            group_id=group_id, group_state=GroupState.DEAD.value, authorized_operations=operations
        )
    is_stable = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if is_stable else "",
        members=_members(group, is_stable),
        authorized_operations=operations,
    )


def _members(group: ClassicGroup, is_stable: bool) -> list[DescribedGroupMember]:
    return [
        DescribedGroupMember(
            member.id,
            member.instance_id,
            member.client_id,
            member.client_host,
            member.metadata(group.protocol_name) if is_stable else b"",
            member.assignment,
        )
        for member in group.members.values()
    ]
