"""Offsets that a group has got to, told to its coordinator; and where that coordinator is.

In the name of a member with its generation, or of nobody, where partitions are assigned by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ottla.client import admin_groups, admin_topics
from ottla.client.addresses import Address
from ottla.client.admin_values import CommittedOffset
from ottla.client.cluster import Cluster
from ottla.client.errors import BrokerError, ClientError, CommitFailed, ConnectionFailed
from ottla.client.membership import GroupRules, Membership
from ottla.client.server_membership import ServerMembership
from ottla.model.errors import ErrorCode
from ottla.model.topics import TopicPartition
from ottla.protocol.apis import OFFSET_COMMIT
from ottla.protocol.fields import Message
from ottla.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse

Offsets = Mapping[TopicPartition, CommittedOffset]
OnCommit = Callable[[Offsets, ClientError | None], object]


class Coordinator:
    """The broker that leads the group, as far as we know."""

    def __init__(self, cluster: Cluster, group_id: str) -> None:
        self.address: Address | None = None
        self._cluster = cluster
        self._group_id = group_id

    async def find(self, deadline_ms: int) -> Address:
        if self.address is None:
            broker = await admin_topics.find_coordinator(self._cluster, self._group_id, "group", deadline_ms)
            self.address = broker.address
        return self.address

    def forget(self) -> None:
        self.address = None


class Commits:
    def __init__(self, cluster: Cluster, coordinator: Coordinator, rules: GroupRules) -> None:
        self.membership: Membership | ServerMembership | None = None  # None: partitions are assigned by hand
        self._cluster = cluster
        self._coordinator = coordinator
        self._rules = rules
        self.on_commit: Callable[[Offsets], object] | None = None  # told of every commit that succeeded

    async def commit(self, offsets: Offsets, deadline_ms: int) -> None:
        """Returns when the coordinator has them. Raises CommitFailed when the group has moved on."""

        async def attempt(deadline_ms: int) -> None:
            try:
                await self._commit_once(offsets, deadline_ms)
            except (BrokerError, ConnectionFailed) as error:
                if error.retriable:
                    self._coordinator.forget()
                raise

        if offsets:
            await self._cluster.retry(attempt, deadline_ms)

    async def _commit_once(self, offsets: Offsets, deadline_ms: int) -> None:
        answer = await self._cluster.call(
            await self._coordinator.find(deadline_ms),
            OFFSET_COMMIT,
            self._request(offsets),
            OffsetCommitResponse,
            deadline_ms,
            version_max=admin_groups.VERSION_WITH_NAMES,
        )
        problem = self._judged(answer)
        if problem is not None:
            raise problem
        if self.on_commit is not None:
            self.on_commit(offsets)

    def commit_async(self, offsets: Offsets, done: OnCommit | None) -> None:
        """`done(offsets, error)` is called from a later `poll`. Not tried again: a later commit covers it."""

        def take(result: Message | ClientError, _version: int) -> None:
            error = result if isinstance(result, ClientError) else None
            if isinstance(result, OffsetCommitResponse):
                error = self._judged(result)
            if error is not None and error.retriable:
                self._coordinator.forget()
            if error is None and self.on_commit is not None:
                self.on_commit(offsets)
            if done is not None:
                done(offsets, error)

        if offsets and self._coordinator.address is not None:
            self._cluster.send(
                self._coordinator.address,
                OFFSET_COMMIT,
                self._request(offsets),
                take,
                version_max=admin_groups.VERSION_WITH_NAMES,
            )

    def _request(self, offsets: Offsets) -> OffsetCommitRequest:
        member = self.membership
        if member is None:
            return admin_groups.commit_request(self._rules.group_id, offsets)
        return admin_groups.commit_request(
            self._rules.group_id,
            offsets,
            generation=member.generation,
            member_id=member.member_id,
            instance_id=self._rules.instance_id,
        )

    def _judged(self, answer: OffsetCommitResponse) -> BrokerError | None:
        problem = admin_groups.commit_problem(self._rules.group_id, answer)
        if problem is not None and problem.code is ErrorCode.STALE_MEMBER_EPOCH:
            problem.retriable = True
            if self.membership is not None:
                self.membership.rebalance()
            return problem
        if self.membership is not None and isinstance(problem, CommitFailed):
            if problem.code is ErrorCode.REBALANCE_IN_PROGRESS:
                self.membership.rebalance()
            else:
                self.membership.refused(problem.code)
        return problem
