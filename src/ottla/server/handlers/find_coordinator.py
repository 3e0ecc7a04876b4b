"""FindCoordinator 0-6: which broker coordinates a group.

One broker coordinates everything. Transactional ids and share groups are not offered yet and say so with an
error that clients do not retry.
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
_KEY_TYPES = {0: "group", 1: "transaction", 2: "share group"}


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
    if key_type not in _KEY_TYPES:
        raise Refused(ErrorCode.INVALID_REQUEST, f"{key_type} is no kind of coordinator")
    if key_type != _GROUP:
        raise Refused(ErrorCode.INVALID_REQUEST, f"this broker does not offer {_KEY_TYPES[key_type]}s yet")
    if not exchange.may(key):
        raise Refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not key:
        raise Refused(ErrorCode.INVALID_GROUP_ID, "a group id must not be empty")
