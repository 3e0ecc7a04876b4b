"""JoinGroup 0-9: a member enters a classic group; the answer waits until all have joined, or time is up.

From 4 on a new member is first given its id and must join again with it (KIP-394), unless it is static.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.coordinator.group_members import Caller
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.server.exchange import Exchange
from ottla.server.group_service import Reply

if TYPE_CHECKING:
    from ottla.server.services import Services


def handle(exchange: Exchange[JoinGroupRequest], services: Services) -> JoinGroupResponse | None:
    request = exchange.request
    if not exchange.may(request.group_id):
        return _refusal(request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    caller = Caller(exchange.version, exchange.client_id or "", f"/{exchange.connection.peer_host}")
    reply = Reply(exchange, lambda code: _refusal(request, code))
    services.groups.decide(
        request.group_id, reply, lambda machine, now: machine.join(request, caller, reply, now)
    )
    return None


def _refusal(request: JoinGroupRequest, code: ErrorCode) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, member_id=request.member_id)
