"""ConsumerGroupHeartbeat 0-1: a member of a consumer group (KIP-848) joins, lives, leaves.

Answered at once, or when the log has what was decided. 0 lets the broker make the member's id, 1 knows
subscriptions by regular expression. Topics that are named must be ones that the peer may describe; of those
that a pattern matches, only these count.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ottla.coordinator.group_members import Caller
from ottla.model.errors import ErrorCode, Refused
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.security.authorizer import Operation, ResourceType
from ottla.server.exchange import Exchange
from ottla.server.group_service import Reply

if TYPE_CHECKING:
    from ottla.server.services import Services


def handle(
    exchange: Exchange[ConsumerGroupHeartbeatRequest], services: Services
) -> ConsumerGroupHeartbeatResponse | None:
    request, groups = exchange.request, services.groups
    reply = Reply(exchange, _refusal)
    caller = Caller(exchange.version, exchange.client_id or "", f"/{exchange.connection.peer_host}")
    try:
        if not exchange.may(request.group_id):
            raise Refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        groups.check_serves_consumer_groups()
        if not request.group_id:
            raise Refused(ErrorCode.INVALID_REQUEST, "GroupId must not be empty")
        _check_topics(exchange, services)
        partition = groups.find(request.group_id)
        partition.check_writable()
        outcome = partition.machine.consumer_heartbeat(
            request, caller, lambda: _visible_topics(exchange, services), reply, groups.now
        )
    except Refused as refusal:
        return _refusal(refusal.code, refusal.text)
    groups.follow_up(partition, request.group_id, outcome)
    return None


def _refusal(code: ErrorCode, text: str | None = None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=code, error_message=text or code.text)


def _check_topics(exchange: Exchange[ConsumerGroupHeartbeatRequest], services: Services) -> None:
    names = exchange.request.subscribed_topic_names or ()
    hidden = [name for name in names if not _may_describe(exchange, services, name)]
    if hidden:
        raise Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"not allowed to describe {', '.join(hidden)}")


def _visible_topics(exchange: Exchange[ConsumerGroupHeartbeatRequest], services: Services) -> Iterable[str]:
    topics = services.controller.image.topics
    return [name for name in topics if _may_describe(exchange, services, name)]


def _may_describe(exchange: Exchange[ConsumerGroupHeartbeatRequest], services: Services, name: str) -> bool:
    return services.may(exchange.connection, Operation.DESCRIBE, ResourceType.TOPIC, name)
