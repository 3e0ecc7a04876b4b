"""FindCoordinator 0-6: which broker coordinates a group or a transactional id; from 4 on for many at once.

It is the leader of the key's partition of `__consumer_offsets` or `__transaction_state`, which are made when
they are asked for the first time. Share groups are not offered yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.model.errors import ErrorCode, Refused
from ottla.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from ottla.security.authorizer import Operation, ResourceType
from ottla.server.exchange import Exchange
from ottla.server.long_requests import Steps

if TYPE_CHECKING:
    from ottla.server.services import Services

_GROUP = 0
_TRANSACTION = 1
_SHARE_GROUP = 2
_MANY_SINCE = 4


def handle(exchange: Exchange[FindCoordinatorRequest], services: Services) -> None:
    request = exchange.request
    keys = request.coordinator_keys if exchange.version >= _MANY_SINCE else [request.key]
    refusals = {key: _refusal(exchange, services, key) for key in keys}

    def answer(problem: Refused | None) -> None:
        if not exchange.abandoned:
            services.long_requests.begin(exchange, find_all(problem))

    def find_all(problem: Refused | None) -> Steps:
        found = []
        for key in keys:
            yield None
            found.append(_find(exchange, services, key, refusals[key] or problem))
        return _response(exchange.version, found)

    if all(refusals.values()):
        answer(None)
    elif request.key_type == _TRANSACTION:
        services.transactions.topic.ensure(answer)
    else:
        services.groups.topic.ensure(answer)


def _response(version: int, found: list[Coordinator]) -> FindCoordinatorResponse:
    if version >= _MANY_SINCE:
        return FindCoordinatorResponse(coordinators=found)
    (one,) = found
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


def _find(
    exchange: Exchange[FindCoordinatorRequest], services: Services, key: str, refusal: Refused | None
) -> Coordinator:
    if refusal is None:
        is_transaction = exchange.request.key_type == _TRANSACTION
        node_id = (services.transactions if is_transaction else services.groups).topic.coordinator_of(key)
        for broker_id, host, port, _ in services.brokers(exchange.connection.listener):
            if broker_id == node_id:
                return Coordinator(key, node_id, host, port)
        refusal = Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return Coordinator(key, -1, "", -1, refusal.code, refusal.text)


def _refusal(exchange: Exchange[FindCoordinatorRequest], services: Services, key: str) -> Refused | None:
    key_type = exchange.request.key_type
    if key_type not in (_GROUP, _TRANSACTION, _SHARE_GROUP):
        return Refused(ErrorCode.INVALID_REQUEST, f"{key_type} is no kind of coordinator")
    if key_type == _TRANSACTION:
        if not services.may(exchange.connection, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key):
            return Refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return None if key else Refused(ErrorCode.INVALID_REQUEST, "a transactional id must not be empty")
    if key_type != _GROUP:
        return Refused(ErrorCode.INVALID_REQUEST, "this broker does not offer share groups yet")
    if not exchange.may(key):
        return Refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not key:
        return Refused(ErrorCode.INVALID_GROUP_ID, "a group id must not be empty")
    return None
