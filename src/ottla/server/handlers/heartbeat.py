"""Heartbeat 0-4: a member of a classic group lives; the answer tells when it has to join again.

While the group is being loaded the answer is no error, as in Kafka: its session begins anew after that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.model.errors import ErrorCode, Refused
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.server.exchange import Exchange

if TYPE_CHECKING:
    from ottla.server.services import Services


def handle(exchange: Exchange[HeartbeatRequest], services: Services) -> HeartbeatResponse:
    request = exchange.request
    if not exchange.may(request.group_id):
        return HeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    try:
        partition = services.groups.find(request.group_id)
    except Refused as refusal:
        is_loading = refusal.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return HeartbeatResponse(error_code=ErrorCode.NONE if is_loading else refusal.code)
    code = partition.machine.heartbeat(request, services.clock.monotonic_ms())
    services.groups.set_timer(partition, request.group_id)
    return HeartbeatResponse(error_code=code)
