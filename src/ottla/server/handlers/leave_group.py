"""LeaveGroup 0-5: members leave a classic group, one up to version 2, any number from 3 on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.model.errors import ErrorCode
from ottla.protocol.fields import Message
from ottla.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ottla.server.exchange import Exchange
from ottla.server.group_service import Reply

if TYPE_CHECKING:
    from ottla.server.services import Services

_MANY_SINCE = 3


def handle(exchange: Exchange[LeaveGroupRequest], services: Services) -> LeaveGroupResponse | None:
    request = exchange.request
    if not exchange.may(request.group_id):
        return _refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    members = request.members
    reply = Reply(exchange, _refusal)
    if exchange.version < _MANY_SINCE:
        members = [MemberIdentity(request.member_id)]
        reply = _ReplyToOne(exchange, _refusal)
    services.groups.decide(
        request.group_id, reply, lambda machine, now: machine.leave(request.group_id, members, reply, now)
    )
    return None


def _refusal(code: ErrorCode) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=code)


class _ReplyToOne(Reply):
    """Old versions have no list of members; the error of the one is that of the request."""

    def answer(self, response: Message) -> None:
        assert isinstance(response, LeaveGroupResponse)
        code = response.members[0].error_code if response.members else response.error_code
        super().answer(LeaveGroupResponse(error_code=code))
