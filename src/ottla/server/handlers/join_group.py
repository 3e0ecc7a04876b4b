"""JoinGroup 0-9: a member enters a classic group; the answer waits until all have joined, or time is up.

From 4 on a new member is first given its id and must join again with it (KIP-394), unless it is static.
From 7 on a refusal names no protocol at all, where it had an empty one before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.coordinator.group_members import Caller
from ottla.model.errors import ErrorCode
from ottla.protocol.fields import Message
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.server.exchange import Exchange
from ottla.server.group_service import Reply

if TYPE_CHECKING:
    from ottla.server.services import Services


_NO_PROTOCOL_SINCE = 7


def handle(exchange: Exchange[JoinGroupRequest], services: Services) -> JoinGroupResponse | None:
    request = exchange.request
    if not exchange.may(request.group_id):
        return _refusal(exchange.version, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    caller = Caller(exchange.version, exchange.client_id or "", f"/{exchange.connection.peer_host}")
    reply = _Reply(exchange, lambda code: _refusal(exchange.version, code, _told_id(request, code)))
    services.groups.decide(
        request.group_id, reply, lambda machine, now: machine.join(request, caller, reply, now)
    )
    return None


def _told_id(request: JoinGroupRequest, code: ErrorCode) -> str:
    """Who does not reach its coordinator is not told who it is."""
    return request.member_id if code is ErrorCode.INVALID_GROUP_ID else ""


def _refusal(version: int, code: int, member_id: str = "") -> JoinGroupResponse:
    protocol_name = None if version >= _NO_PROTOCOL_SINCE else ""
    return JoinGroupResponse(error_code=code, protocol_name=protocol_name, member_id=member_id)


class _Reply(Reply):
    """What a group decides does not depend on versions; how a refusal is told does."""

    def answer(self, response: Message) -> None:
        assert isinstance(response, JoinGroupResponse)
        if response.error_code:
            response = _refusal(self._exchange.version, response.error_code, response.member_id)
        super().answer(response)
