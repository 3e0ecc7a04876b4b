"""ListGroups 0-5: the groups that this broker coordinates, from 4 on by state and from 5 on by type.

Who may describe the cluster sees all of them, others those that they may describe.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ottla.coordinator.groups import Group
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from ottla.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from ottla.server.exchange import Exchange
from ottla.server.long_requests import Steps

if TYPE_CHECKING:
    from ottla.server.services import Services

_AT_ONCE = 256


def handle(exchange: Exchange[ListGroupsRequest], services: Services) -> ListGroupsResponse | None:
    if any(not each.is_loaded for each in services.groups.topic.partitions.values()):
        return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    services.long_requests.begin(exchange, _list(exchange, services))
    return None


def _list(exchange: Exchange[ListGroupsRequest], services: Services) -> Steps:
    request = exchange.request
    states, types = _lower(request.states_filter), _lower(request.types_filter)
    sees_all = services.may(exchange.connection, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)

    def is_told(group: Group) -> bool:
        return (
            (not states or group.state.value.lower() in states)
            and (not types or group.kind in types)
            and (sees_all or exchange.may(group.id))
        )

    listed = []
    for partition in services.groups.loaded_partitions():
        for number, group in enumerate(list(partition.machine.groups.values())):
            if is_told(group):
                listed.append(ListedGroup(group.id, group.protocol_type or "", group.state.value, group.kind))
            if number % _AT_ONCE == 0:
                yield None
    return ListGroupsResponse(groups=listed)


def _lower(names: Iterable[str]) -> set[str]:
    return {name.lower() for name in names}
