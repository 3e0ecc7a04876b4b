"""Tells the coordinator of a classic group that a member lives, while the user works.

It shares only a few fields with the consumer, under one lock. What the coordinator answers is kept for the
consumer's next `poll`, which acts on it. When the user has not polled for `max.poll.interval.ms`, the member
leaves: a stuck one must not keep partitions.
"""

from __future__ import annotations

import logging
import threading

from ottla.client.addresses import Address
from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError, error_code
from ottla.client.pulse import Pulse
from ottla.model.config_types import TypedValues
from ottla.model.errors import ErrorCode
from ottla.protocol.apis import HEARTBEAT, LEAVE_GROUP
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity

log = logging.getLogger(__name__)


class Heartbeats:
    def __init__(self, pulse: Pulse, settings: TypedValues, group_id: str, instance_id: str | None) -> None:
        self._pulse = pulse
        self._cluster = pulse.cluster
        self._group_id = group_id
        self._instance_id = instance_id
        self._poll_interval_ms = settings.integer("max.poll.interval.ms")
        self._timeout_ms = settings.integer("session.timeout.ms")
        self._lock = threading.Lock()
        # Under the lock:
        self._coordinator: Address | None = None  # None: nothing to say at the moment
        self._member_id = ""
        self._generation = -1
        self._polled_ms = 0
        self._code = ErrorCode.NONE  # the last error since the consumer last looked

    # -- for the consumer ----------------------------------------------------------------------------------

    def beat(self, coordinator: Address, member_id: str, generation: int) -> None:
        """The member is in: heartbeats from now on."""
        with self._lock:
            self._coordinator, self._member_id, self._generation = coordinator, member_id, generation
            self._polled_ms = self._cluster.now_ms()
            self._code = ErrorCode.NONE
        self._pulse.start(self._turn)

    async def close(self) -> None:
        await self._pulse.close()

    def pause(self) -> None:
        """The member is on its way into the next generation."""
        with self._lock:
            self._coordinator = None

    def polled(self) -> ErrorCode:
        """The user works; what the coordinator has said meanwhile."""
        with self._lock:
            self._polled_ms = self._cluster.now_ms()
            code, self._code = self._code, ErrorCode.NONE
            return code

    # -- in the pulse --------------------------------------------------------------------------------------

    async def _turn(self) -> None:
        """One heartbeat, if this is the time for one."""
        with self._lock:
            coordinator, member_id, generation = self._coordinator, self._member_id, self._generation
            is_stuck = self._cluster.now_ms() - self._polled_ms > self._poll_interval_ms
        if coordinator is None:
            return
        try:
            if is_stuck:
                code = await self._leave(coordinator, member_id)
            else:
                code = await self._say(coordinator, generation, member_id)
        except ClientError as error:
            log.debug("no heartbeat: %s", error)
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        if code:
            self._keep(code, generation)

    def _keep(self, code: ErrorCode, generation: int) -> None:
        with self._lock:
            if generation == self._generation:
                self._code = code
                # Who is asked to join again stays alive until the user polls, or for max.poll.interval.ms.
                if code is not ErrorCode.REBALANCE_IN_PROGRESS and not code.retriable:
                    self._coordinator = None

    async def _say(self, coordinator: Address, generation: int, member_id: str) -> ErrorCode:
        request = HeartbeatRequest(self._group_id, generation, member_id, self._instance_id)
        deadline_ms = self._cluster.now_ms() + self._timeout_ms
        answer = await self._cluster.call(coordinator, HEARTBEAT, request, HeartbeatResponse, deadline_ms)
        return error_code(answer.error_code)

    async def _leave(self, coordinator: Address, member_id: str) -> ErrorCode:
        log.warning(
            "group %s: poll() was not called for %d ms; the member leaves, and its partitions go to others",
            self._group_id,
            self._poll_interval_ms,
        )
        if self._instance_id is None:
            await leave(self._cluster, coordinator, self._group_id, member_id, self._timeout_ms)
        return ErrorCode.UNKNOWN_MEMBER_ID


async def leave(
    cluster: Cluster, coordinator: Address, group_id: str, member_id: str, timeout_ms: int
) -> None:
    def request(version: int) -> LeaveGroupRequest:
        if version < 3:
            return LeaveGroupRequest(group_id, member_id)
        return LeaveGroupRequest(group_id, members=(MemberIdentity(member_id),))

    await cluster.call(coordinator, LEAVE_GROUP, request, LeaveGroupResponse, cluster.now_ms() + timeout_ms)
