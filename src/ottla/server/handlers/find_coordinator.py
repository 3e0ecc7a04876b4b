"""FindCoordinator 0-6: which broker coordinates a group.

One broker coordinates everything. Transactional ids and share groups are not offered yet. For the former the
answer is TRANSACTIONAL_ID_AUTHORIZATION_FAILED: librdkafka takes it as final, where it would ask again after
other codes until its own time is up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.model.errors import ErrorCode, Refused
from ottla.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from ottla.server.exchange import Exchange

if TYPE_CHECKING:
    from ottla.server.services import Services

_GROUP = 0
_TRANSACTION = 1
_SHARE_GROUP = 2


def handle(exchange: Exchange[FindCoordinatorRequest], services: Services) -> FindCoordinatorResponse:
    request = exchange.request
    if exchange.version >= 4:
        return FindCoordinatorResponse(
            coordinators=[_find(exchange, services, key) for key in request.coordinator_keys]
        )
    found = _find(exchange, services, request.key)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(exchange: Exchange[FindCoordinatorRequest], services: Services, key: str) -> Coordinator:
    try:
        _check(exchange, key)
    except Refused as refusal:
        return Coordinator(key, -1, "", -1, refusal.code, refusal.text)
    host, port = services.advertised(exchange.connection.listener)
    return Coordinator(key, services.node_id, host, port)


def _check(exchange: Exchange[FindCoordinatorRequest], key: str) -> None:
    key_type = exchange.request.key_type
    if key_type not in (_GROUP, _TRANSACTION, _SHARE_GROUP):
        raise Refused(ErrorCode.INVALID_REQUEST, f"{key_type} is no kind of coordinator")
    if key_type == _TRANSACTION:
        raise Refused(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "this broker does not offer transactions yet"
        )
    if key_type != _GROUP:
        raise Refused(ErrorCode.INVALID_REQUEST, "this broker does not offer share groups yet")
    if not exchange.may(key):
        raise Refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not key:
        raise Refused(ErrorCode.INVALID_GROUP_ID, "a group id must not be empty")
