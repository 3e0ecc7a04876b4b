"""A consumer's life in its group: finds the coordinator, joins, runs the listener, commits.

Everything happens in the caller's thread, inside `poll`, `commit` and `close`; heartbeats have a thread.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Protocol

from ottla.client.admin_values import CommittedOffset
from ottla.client.assignors import Assignor
from ottla.client.cluster import Cluster
from ottla.client.commits import Commits, Coordinator
from ottla.client.errors import ClientError, UnknownTopic
from ottla.client.heartbeats import Heartbeats, leave
from ottla.client.membership import GroupRules, GroupTopics, Membership, Stage
from ottla.client.metadata import metadata_request, view_of
from ottla.client.pulse import Pulse
from ottla.client.server_membership import ServerMembership
from ottla.model.config_types import TypedValues
from ottla.model.errors import ErrorCode
from ottla.model.topics import TopicPartition
from ottla.protocol.apis import JOIN_GROUP, METADATA, SYNC_GROUP
from ottla.protocol.fields import Message
from ottla.protocol.messages.join_group import JoinGroupResponse
from ottla.protocol.messages.metadata import MetadataResponse
from ottla.protocol.messages.sync_group import SyncGroupResponse

_GRACE_MS = 5_000  # for the answer to a join, after the time the group has for it
_LEAVE_MS = 5_000
_LOOKUP_MS = 1_000
_MISSING_MS = 1_000  # how often a topic that is not there is looked for: somebody may be about to create it


class RebalanceListener:
    """What a consumer tells its user of rebalances; all of it inside `poll` and `close`.

    Under asyncio these may be coroutines.
    """

    def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> Awaitable[None] | None:
        """They are still ours: the moment to finish work and commit."""
        return None

    def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> Awaitable[None] | None:
        """They are new to us: the moment to seek, if offsets are kept elsewhere."""
        return None

    def on_partitions_lost(self, partitions: tuple[TopicPartition, ...]) -> Awaitable[None] | None:
        """Others may have them already: nothing can be committed any more."""
        return self.on_partitions_revoked(partitions)


MakePulse = Callable[[Cluster, TypedValues], Pulse]
AnyMembership = Membership | ServerMembership


class Seat(Protocol):
    """What the group needs of its consumer."""

    def take_seat(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these from now on."""
        ...

    def positions(self) -> dict[TopicPartition, CommittedOffset]:
        """What could be committed."""
        ...


class Group:
    def __init__(
        self,
        cluster: Cluster,
        settings: TypedValues,
        group_id: str,
        assignors: list[Assignor],
        seat: Seat,
        make_pulse: MakePulse,
    ) -> None:
        self.id = group_id
        self.rules = GroupRules(
            group_id,
            settings.text_or_none("group.instance.id"),
            settings.integer("session.timeout.ms"),
            settings.integer("max.poll.interval.ms"),
            assignors,
            settings.text("client.rack") or None,
        )
        self._cluster = cluster
        self._settings = settings
        self._seat = seat
        self._make_pulse = make_pulse
        self.listener = RebalanceListener()
        self._pattern: re.Pattern[str] | None = None
        self._auto_commit_ms = (
            settings.integer("auto.commit.interval.ms") if settings.flag("enable.auto.commit") else None
        )
        self._next_commit_ms = 0
        self.coordinator = Coordinator(cluster, group_id)
        self.commits = Commits(cluster, self.coordinator, self.rules)
        self._heartbeats: Heartbeats | None = None
        self._is_prepared = False  # the listener has heard of the rebalance that is under way
        self._in_flight = False
        self._assigned: tuple[TopicPartition, ...] | None = None  # by the answer to the last sync
        self._not_before_ms = 0
        self._failures = 0
        self._topics = GroupTopics()  # as the leader used them
        self._topics_checked_ms: int | None = None
        self._missing: tuple[str, ...] = ()  # topics that members read and that are not there, to the leader

    @property
    def commits_itself(self) -> bool:
        return self._auto_commit_ms is not None

    @property
    def problem(self) -> ClientError | None:
        """What keeps records from coming, as far as the leader of the group knows."""
        member = self.membership
        mine = [topic for topic in self._missing if member is not None and topic in member.topics]
        return UnknownTopic(mine[0]) if mine else None

    @property
    def membership(self) -> AnyMembership | None:
        """None: partitions are assigned by hand."""
        return self.commits.membership

    # -- subscription --------------------------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str] | re.Pattern[str], listener: RebalanceListener | None) -> None:
        self.listener = listener or RebalanceListener()
        member = self.commits.membership = self.membership or self._new_membership()
        if isinstance(topics, re.Pattern):
            self._pattern = topics
            self._topics_checked_ms = None
        else:
            self._pattern = None
            member.subscribe(sorted(set(topics)))

    def _new_membership(self) -> AnyMembership:
        return Membership(self.rules)

    async def unsubscribe(self) -> None:
        if self.membership is None:
            return
        await self._leave_partitions(self.membership)
        await self._leave_group(self.membership)
        self.commits.membership = None

    # -- turns ---------------------------------------------------------------------------------------------

    async def turn(self, now_ms: int) -> None:
        """Does what is due, without waiting for other members."""
        await self._maybe_commit(now_ms)
        member = self.membership
        if member is None:
            return
        assert isinstance(member, Membership)
        if member.fatal is not None:
            raise member.fatal
        if self._assigned is not None:
            assigned = self._assigned
            await self._sit_down(member, assigned)
            if self._assigned is assigned:  # only now: a task that is cancelled on the way sits down later
                self._assigned = None
        if self._heartbeats is not None and member.stage is Stage.IN:
            await self._heed(member, self._heartbeats.polled())
        await self._watch_topics(member, now_ms)
        if self._in_flight or now_ms < self._not_before_ms:
            return
        if member.stage is Stage.SYNCING:
            await self._sync(member, now_ms)
        elif member.wants_to_join and (member.topics or member.member_id):
            await self._join(member, now_ms)  # also when its pattern finds nothing any more: others wait

    def next_ms(self, now_ms: int, idle_ms: int) -> int:
        return idle_ms if now_ms >= self._not_before_ms else min(idle_ms, self._not_before_ms - now_ms)

    async def _heed(self, member: Membership, code: ErrorCode) -> None:
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            member.rebalance()
        elif code is ErrorCode.NOT_COORDINATOR or code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
            await self._find_coordinator_again(member)
        elif code:
            member.refused(code)

    async def _find_coordinator_again(self, member: Membership) -> None:
        self.coordinator.forget()
        if await self._has_coordinator():
            self._beat(member)

    async def _watch_topics(self, member: AnyMembership, now_ms: int) -> None:
        """A topic that begins to match, one that grew or moved to other racks: reasons to rebalance."""
        age_ms = self._settings.integer("metadata.max.age.ms")
        if self._missing:
            age_ms = min(age_ms, _MISSING_MS)
        if self._topics_checked_ms is not None and now_ms < self._topics_checked_ms + age_ms:
            return
        known = self._topics.partition_counts
        if self._pattern is None and not known and not self._missing:
            return
        self._topics_checked_ms = now_ms
        wanted = None if self._pattern is not None else (*known, *self._missing)
        try:
            found = await self._look_up(wanted, now_ms + _LOOKUP_MS)
        except ClientError as error:
            if not error.retriable:
                raise
            self._topics_checked_ms = now_ms - age_ms + min(age_ms, _MISSING_MS)  # soon again
            return
        counts = found.partition_counts
        if self._pattern is not None:
            member.subscribe(sorted(topic for topic in counts if self._pattern.search(topic)))
        have_come = any(topic in counts for topic in self._missing)
        if have_come or self._topics.have_changed(found, heed_racks=self.rules.rack is not None):
            member.rebalance()

    # -- joining -------------------------------------------------------------------------------------------

    async def _join(self, member: Membership, now_ms: int) -> None:
        if not await self._has_coordinator():
            return
        if not self._is_prepared:
            if member.is_lost or not member.is_cooperative:
                await self._leave_partitions(member)
            if self._heartbeats is not None:
                self._heartbeats.pause()  # not before: a listener may take longer than the session lasts
            self._is_prepared = True
            if not await self._has_coordinator():  # a commit that failed has forgotten it
                return

        def take(result: Message | ClientError, _version: int) -> None:
            self._in_flight = False
            if isinstance(result, JoinGroupResponse):
                member.joined(result)
                self._backed_off(result.error_code)
            else:
                self._lost_coordinator(member)

        self._in_flight = True
        assert self.coordinator.address is not None
        self._cluster.send(
            self.coordinator.address,
            JOIN_GROUP,
            member.join_request(),
            take,
            timeout_ms=self.rules.rebalance_timeout_ms + _GRACE_MS,
            purpose="group",
        )

    async def _sync(self, member: Membership, now_ms: int) -> None:
        topics = member.leader_topics()
        try:
            found = GroupTopics() if topics is None else await self._look_up(topics, now_ms + _LOOKUP_MS)
        except ClientError as error:
            if not error.retriable:
                raise
            self._backed_off(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        self._topics = found
        if topics is not None:
            self._missing = tuple(sorted(topics - found.partition_counts.keys()))
        if not await self._has_coordinator():  # an answer to a commit may have come meanwhile
            return

        def take(result: Message | ClientError, _version: int) -> None:
            self._in_flight = False
            if isinstance(result, SyncGroupResponse):
                assigned = member.synced(result)
                self._backed_off(result.error_code)
                self._assigned = assigned
            else:
                self._lost_coordinator(member)

        self._in_flight = True
        assert self.coordinator.address is not None
        self._cluster.send(
            self.coordinator.address,
            SYNC_GROUP,
            member.sync_request(self._topics),
            take,
            timeout_ms=self.rules.rebalance_timeout_ms + _GRACE_MS,
            purpose="group",
        )

    async def _sit_down(self, member: Membership, assigned: tuple[TopicPartition, ...]) -> None:
        """A new generation: gives up what others get, and begins with what is new."""
        self._is_prepared = False
        self._beat(member)
        revoked = tuple(target for target in member.owned if target not in assigned)
        added = tuple(target for target in assigned if target not in member.owned)
        if revoked:
            await self._commit_before_leaving()
            await told(self.listener.on_partitions_revoked(revoked))
            member.rebalance()  # so that others get what was given up
        member.take_over(assigned)
        self._seat.take_seat(assigned)
        await told(self.listener.on_partitions_assigned(added))

    def _beat(self, member: Membership) -> None:
        if self._heartbeats is None:
            pulse = self._make_pulse(self._cluster, self._settings)
            self._heartbeats = Heartbeats(pulse, self._settings, self.id, self.rules.instance_id)
        if self.coordinator.address is not None:
            self._heartbeats.beat(self.coordinator.address, member.member_id, member.generation)

    async def _leave_partitions(self, member: AnyMembership) -> None:
        owned = member.owned
        if member.is_lost:
            member.give_up()
            await told(self.listener.on_partitions_lost(owned))
        elif owned:
            await self._commit_before_leaving()
            member.give_up()
            await told(self.listener.on_partitions_revoked(owned))
        self._seat.take_seat(())

    async def _leave_group(self, member: AnyMembership) -> None:
        """Static members stay: they come back."""
        if self._heartbeats is not None:
            await self._heartbeats.close()
            self._heartbeats = None
        address = self.coordinator.address
        if member.member_id and self.rules.instance_id is None and address is not None:
            with suppress(ClientError):  # the session timeout does it otherwise
                await leave(self._cluster, address, self.id, member.member_id, _LEAVE_MS)

    async def close(self) -> None:
        if self.membership is not None:
            await self.unsubscribe()
        else:
            await self._commit_before_leaving()

    # -- the coordinator -----------------------------------------------------------------------------------

    async def _has_coordinator(self) -> bool:
        try:
            await self.coordinator.find(self._cluster.now_ms() + _LOOKUP_MS)
        except ClientError as error:
            if not error.retriable:
                raise
            self._backed_off(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return False
        return True

    def _lost_coordinator(self, member: Membership) -> None:
        member.interrupted()
        self._backed_off(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def _backed_off(self, code: int) -> None:
        """A pause after errors; none after an answer that asks to join again."""
        if code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
            self.coordinator.forget()
        if code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self._failures = 0
            return
        self._failures += 1
        self._not_before_ms = self._cluster.now_ms() + self._cluster.backoff.pause_ms(self._failures)

    async def _look_up(self, topics: Iterable[str] | None, deadline_ms: int) -> GroupTopics:
        """None: all that are not internal."""
        answer = await self._cluster.call(
            self._cluster.any_address(), METADATA, metadata_request(topics), MetadataResponse, deadline_ms
        )
        view = view_of(answer)
        found = [each for each in view.topics.values() if topics is not None or not each.is_internal]
        return GroupTopics({each.name: len(each.partitions) for each in found}, view.replica_racks(found))

    # -- commits -------------------------------------------------------------------------------------------

    async def _maybe_commit(self, now_ms: int) -> None:
        if self._auto_commit_ms is None or now_ms < self._next_commit_ms:
            return
        self._next_commit_ms = now_ms + self._auto_commit_ms
        is_seated = self.membership is None or self.membership.stage is Stage.IN
        if is_seated and await self._has_coordinator():
            self.commits.commit_async(self._seat.positions(), None)

    async def _commit_before_leaving(self) -> None:
        """The last word on partitions that are given up; who cannot commit any more reads again later."""
        if self._auto_commit_ms is None:
            return
        with suppress(ClientError):
            await self.commits.commit(self._seat.positions(), self._cluster.now_ms() + _LEAVE_MS)


async def told(answer: Awaitable[None] | None) -> None:
    if answer is not None:
        await answer
