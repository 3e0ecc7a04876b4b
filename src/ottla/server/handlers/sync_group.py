"""SyncGroup 0-5: the leader's assignment makes the group stable; each member waits for its part of it.

The answers leave when the log has the assignment, so that no restart takes it back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.model.errors import ErrorCode
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.server.exchange import Exchange
from ottla.server.group_service import Reply

if TYPE_CHECKING:
    from ottla.server.services import Services

_PROTOCOL_NEEDED_SINCE = 5  # KIP-559


def handle(exchange: Exchange[SyncGroupRequest], services: Services) -> SyncGroupResponse | None:
    request = exchange.request
    if exchange.version >= _PROTOCOL_NEEDED_SINCE and None in (request.protocol_type, request.protocol_name):
        return _refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not exchange.may(request.group_id):
        return _refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    reply = Reply(exchange, _refusal)
    services.groups.decide(request.group_id, reply, lambda machine, now: machine.sync(request, reply, now))
    return None


def _refusal(code: ErrorCode) -> SyncGroupResponse:
    # A member that joins again finds the coordinator wherever it is by then.
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        code = ErrorCode.REBALANCE_IN_PROGRESS
    return SyncGroupResponse(error_code=code)
