"""A consumer's life in a group whose server assigns (KIP-848, group.protocol=consumer).

Heartbeats are all of the protocol, and only the pulse sends them; what they bring is acted upon in `poll`:
commits, the listener, what is read. The membership is shared by the two under one lock.
"""

from __future__ import annotations

import logging
import threading
import uuid
from contextlib import suppress

from ottla.client import admin_topics
from ottla.client.addresses import Address
from ottla.client.errors import ClientError
from ottla.client.group import AnyMembership, Group, told
from ottla.client.membership import Stage
from ottla.client.pulse import Pulse
from ottla.client.server_membership import Assigned, ServerMembership, flat
from ottla.model.topics import TopicId
from ottla.protocol.apis import CONSUMER_GROUP_HEARTBEAT, METADATA
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

_LOOKUP_MS = 1_000
_LEAVE_MS = 5_000
_RETRY_MS = 200  # between heartbeats, as long as the member is not in

log = logging.getLogger(__name__)


class ServerGroup(Group):
    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]  # those of Group
        self._lock = threading.Lock()
        self._pulse: Pulse | None = None
        self._names: dict[TopicId, str] = {}  # of topics that were assigned
        # Under the lock, and so is the membership:
        self._polled_ms = 0
        self._is_stuck = False
        self._address: Address | None = None  # of the coordinator, for the pulse

    def _new_membership(self) -> ServerMembership:
        return ServerMembership(
            self.id,
            str(uuid.uuid4()),
            self.rules.instance_id,
            self.rules.rebalance_timeout_ms,
            self._settings.text_or_none("group.remote.assignor"),
            self.rules.rack,
        )

    # -- in `poll` -----------------------------------------------------------------------------------------

    async def turn(self, now_ms: int) -> None:
        await self._maybe_commit(now_ms)
        member = self._server_member()
        if member is None:
            return
        if member.fatal is not None:
            raise member.fatal
        await self._watch_topics(member, now_ms)
        if not member.topics and self._pulse is None:
            return
        with self._lock:
            self._polled_ms = now_ms
            self._is_stuck = False
            is_lost, target = member.is_lost, member.target
        if self._pulse is None:
            self._pulse = self._make_pulse(self._cluster, self._settings)
            self._pulse.interval_ms = _RETRY_MS
            self._pulse.start(self._beat_once)
            member.on_stale = self._pulse.hurry
            self._pulse.hurry()
        if is_lost:
            await self._leave_partitions(member)
        elif target is not None and await self._knows_names(target):
            await self._move_to(member, target)

    async def _move_to(self, member: ServerMembership, target: Assigned) -> None:
        assigned = flat(target, self._names)
        revoked = tuple(each for each in member.owned if each not in assigned)
        added = tuple(each for each in assigned if each not in member.owned)
        if revoked:
            await self._commit_before_leaving()
            await told(self.listener.on_partitions_revoked(revoked))
        with self._lock:
            if member.is_lost:  # meanwhile; the next turn says so
                return
            member.take_over(target, self._names)
        self._seat.take_seat(assigned)
        await told(self.listener.on_partitions_assigned(added))
        assert self._pulse is not None
        self._pulse.hurry()

    async def _knows_names(self, target: Assigned) -> bool:
        unknown = [topic_id for topic_id in target if topic_id not in self._names]
        if not unknown:
            return True
        request = MetadataRequest(
            [MetadataRequestTopic(topic_id, None) for topic_id in unknown], allow_auto_topic_creation=False
        )
        try:
            answer = await self._cluster.call(
                self._cluster.any_address(),
                METADATA,
                request,
                MetadataResponse,
                self._cluster.now_ms() + _LOOKUP_MS,
            )
        except ClientError as error:
            if not error.retriable:
                raise
            return False
        self._names |= {topic.topic_id: topic.name for topic in answer.topics if topic.name}
        return all(topic_id in self._names for topic_id in target)

    async def _leave_group(self, member: AnyMembership) -> None:
        assert isinstance(member, ServerMembership)
        if self._pulse is not None:
            await self._pulse.close()
            self._pulse = None
        if member.generation > 0:
            with suppress(ClientError):  # the session timeout does it otherwise
                address = await self.coordinator.find(self._cluster.now_ms() + _LEAVE_MS)
                await self._cluster.call(
                    address,
                    CONSUMER_GROUP_HEARTBEAT,
                    member.leaving(),
                    ConsumerGroupHeartbeatResponse,
                    self._cluster.now_ms() + _LEAVE_MS,
                )

    def _server_member(self) -> ServerMembership | None:
        member = self.commits.membership
        assert member is None or isinstance(member, ServerMembership)
        return member

    # -- in the pulse --------------------------------------------------------------------------------------

    async def _beat_once(self) -> None:
        pulse, member = self._pulse, self._server_member()
        if pulse is None or member is None:
            return
        with self._lock:
            has_nothing = member.stage is Stage.OUT and not member.topics  # to join with
            if member.fatal is not None or member.is_lost or self._is_stuck or has_nothing:
                return
            silent_ms = pulse.cluster.now_ms() - self._polled_ms
            self._is_stuck = silent_ms > self.rules.rebalance_timeout_ms
            request = member.leaving() if self._is_stuck else member.request()
            is_stuck = self._is_stuck
        try:
            answer = await self._say(pulse, request)
        except ClientError as error:
            log.debug("no heartbeat: %s", error)
            self._address = None
            pulse.interval_ms = _RETRY_MS
            if not error.retriable:
                member.fatal = error
            return
        with self._lock:
            if is_stuck:
                log.warning(
                    "group %s: poll() was not called for %d ms; the member leaves", self.id, silent_ms
                )
                member.fenced()
            else:
                member.answered(request, answer)
            if answer.error_code:
                self._address = None
            pulse.interval_ms = answer.heartbeat_interval_ms or _RETRY_MS
            has_news = member.target is not None or member.is_lost
        if has_news:
            self._cluster.network.wake()

    async def _say(
        self, pulse: Pulse, request: ConsumerGroupHeartbeatRequest
    ) -> ConsumerGroupHeartbeatResponse:
        deadline_ms = pulse.cluster.now_ms() + self.rules.session_timeout_ms
        if self._address is None:
            broker = await admin_topics.find_coordinator(pulse.cluster, self.id, "group", deadline_ms)
            self._address = broker.address
        return await pulse.cluster.call(
            self._address,
            CONSUMER_GROUP_HEARTBEAT,
            request,
            ConsumerGroupHeartbeatResponse,
            deadline_ms,
        )
