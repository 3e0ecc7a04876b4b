"""The group coordinator of this broker: takes requests to groups, keeps their timers, expires offsets.

What groups do is decided in `coordinator`; here its answers find their way out, after the log when they must.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ottla.controller.changes import BrokerRegistered, Change, PartitionsAdded, TopicCreated, TopicDeleted
from ottla.controller.topics import TopicSpec
from ottla.coordinator.group_config import GroupConfig
from ottla.coordinator.group_machine import GroupMachine
from ottla.coordinator.group_state import AT_ONCE_MS, NEVER_MS
from ottla.coordinator.outcome import Outcome
from ottla.coordinator.state_log import Now, StateRecord
from ottla.model.configs import BrokerConfig
from ottla.model.errors import ErrorCode, Refused
from ottla.model.topics import OFFSETS_TOPIC
from ottla.protocol.fields import Message
from ottla.server.exchange import Exchange
from ottla.server.group_topics import ClusterTopics
from ottla.server.long_requests import Chore, Work
from ottla.server.state_partition import Done, StatePartition
from ottla.server.state_topic import StateTopic
from ottla.server.timers import Timer

if TYPE_CHECKING:
    from ottla.server.services import Services

log = logging.getLogger(__name__)

Groups = StatePartition[GroupMachine]

_UNWRITABLE_PAUSE_MS = 1_000  # as often as a full disk is looked at
_TOMBSTONES_AT_ONCE = 500  # in one write; with the longest names still below a batch's size


class Reply:
    """A request that waits for what its group decides."""

    __slots__ = ("_exchange", "_refusal")

    def __init__(self, exchange: Exchange[Any], refusal: Callable[[ErrorCode], Message]) -> None:
        self._exchange = exchange
        self._refusal = refusal  # the response that carries an error

    def answer(self, response: Message) -> None:
        if not self._exchange.abandoned:
            self._exchange.answer(response)

    def refuse(self, code: ErrorCode) -> None:
        self.answer(self._refusal(code))


class GroupService:
    def __init__(self, services: Services) -> None:
        config = services.broker_config
        self._services = services
        self.config = GroupConfig.of(config)
        self.topics_version = 0  # another one after each change of topics, partition counts or racks
        self._serves_consumer_groups = "consumer" in config.texts("group.coordinator.rebalance.protocols")
        self._timers: dict[str, Timer] = {}  # one for each group in which time can change something
        self._expiry_interval_ms = config.integer("offsets.retention.check.interval.ms")
        self.topic: StateTopic[GroupMachine] = StateTopic(
            services,
            self,
            lambda: _topic_spec(services.broker_config, len(services.controller.image.brokers)),
            codec=config.integer("offsets.topic.compression.codec"),
            commit_timeout_ms=config.integer("offsets.commit.timeout.ms"),
            load_bytes=config.integer("offsets.load.buffer.size"),
        )

    def start(self) -> None:
        self.topic.start()
        self._set_expiry_timer()
        self._services.metrics.gauge(
            "groups", lambda: sum(len(each.machine.groups) for each in self.loaded_partitions())
        )

    def stop(self) -> None:
        """The broker stops: members that wait for others are sent to look for another coordinator."""
        for partition in self.loaded_partitions():
            self.unloaded(partition)

    @property
    def now(self) -> Now:
        clock = self._services.clock
        return Now(clock.monotonic_ms(), clock.wall_ms())

    def loaded_partitions(self) -> list[Groups]:
        return [each for each in self.topic.partitions.values() if each.is_loaded]

    # -- requests ------------------------------------------------------------------------------------------

    def decide(self, group_id: str, reply: Reply, decision: Callable[[GroupMachine, Now], Outcome]) -> None:
        """One request about one group; `reply` hears when it cannot be decided here."""
        try:
            partition = self.find(group_id)
            partition.check_writable()
        except Refused as refusal:
            reply.refuse(refusal.code)
            return
        self.follow_up(partition, group_id, decision(partition.machine, self.now))

    def check_serves_consumer_groups(self) -> None:
        if not self._serves_consumer_groups:
            raise Refused(
                ErrorCode.UNSUPPORTED_VERSION, "group.coordinator.rebalance.protocols is without 'consumer'"
            )

    def find(self, group_id: str) -> Groups:
        if not group_id:
            raise Refused(ErrorCode.INVALID_GROUP_ID, "a group id must not be empty")
        return self.topic.find(group_id)

    def follow_up(self, partition: Groups, group_id: str, outcome: Outcome) -> None:
        """Writes what was decided; its answers leave when the log allows."""

        def answer(refusal: Refused | None) -> None:
            for reply, response in outcome.answers:
                assert isinstance(reply, Reply)
                if refusal is None:
                    reply.answer(response)
                else:
                    reply.refuse(refusal.code)

        if outcome.records:
            try:
                partition.write(outcome.records, answer)
            except Refused as refusal:
                log.error(
                    "group %s: %s; raise max.message.bytes of %s", group_id, refusal.text, OFFSETS_TOPIC
                )
                answer(Refused(ErrorCode.UNKNOWN_SERVER_ERROR, refusal.text))
        elif outcome.tells_the_log:
            partition.when_durable(answer)
        else:
            answer(None)
        group = partition.machine.groups.get(group_id)
        if group is not None and group.wake_ms == AT_ONCE_MS:
            self.follow_up(partition, group_id, partition.machine.tick(group_id, self.now))
        self.set_timer(partition, group_id)

    def when_durable(self, partitions: Iterable[Groups], done: Done) -> None:
        """For answers that tell what several partitions hold."""
        waiting = list(dict.fromkeys(partitions))
        left = len(waiting)
        failure: Refused | None = None

        def one(refusal: Refused | None) -> None:
            nonlocal left, failure
            left -= 1
            failure = failure or refusal
            if not left:
                done(failure)

        if not waiting:
            done(None)
        for partition in waiting:
            partition.when_durable(one)

    # -- time ----------------------------------------------------------------------------------------------

    def set_timer(self, partition: Groups, group_id: str) -> None:
        """A deadline that moved back leaves its timer alone: that looks again when it fires."""
        group = partition.machine.groups.get(group_id)
        timer = self._timers.get(group_id)
        timers = self._services.reactor.timers
        if group is None or group.wake_ms == NEVER_MS:
            if timer is not None:
                timers.cancel(self._timers.pop(group_id))
            return
        if timer is not None:
            if timer.deadline_ms <= group.wake_ms:
                return
            timers.cancel(timer)
        self._timers[group_id] = timers.set(group.wake_ms, lambda: self._tick(partition, group_id))

    def _tick(self, partition: Groups, group_id: str) -> None:
        self._timers.pop(group_id, None)
        if partition.is_given_up:
            return
        try:
            partition.check_writable()
        except Refused:  # what is due stays due
            again_ms = self._services.clock.monotonic_ms() + _UNWRITABLE_PAUSE_MS
            self._timers[group_id] = self._services.reactor.timers.set(
                again_ms, lambda: self._tick(partition, group_id)
            )
        else:
            self.follow_up(partition, group_id, partition.machine.tick(group_id, self.now))

    # -- what the topic asks for ---------------------------------------------------------------------------

    def new_machine(self) -> GroupMachine:
        return GroupMachine(self.config, _new_member_id, ClusterTopics(self._services))

    def loaded(self, partition: Groups) -> None:
        outcome = partition.machine.loaded(self.now)
        assert not outcome.records, "members are asked to join again; nothing is decided yet"
        for group_id in partition.machine.groups:
            self.set_timer(partition, group_id)
        self._begin("forgetting offsets of deleted topics", self._forget_missing(partition))

    def unloaded(self, partition: Groups) -> None:
        for group_id in partition.machine.groups:
            timer = self._timers.pop(group_id, None)
            if timer is not None:
                self._services.reactor.timers.cancel(timer)
        for reply, response in partition.machine.unload(ErrorCode.NOT_COORDINATOR).answers:
            assert isinstance(reply, Reply)
            reply.answer(response)

    def follow(self, change: Change) -> None:
        self.topic.follow(change)
        if isinstance(change, TopicCreated | TopicDeleted | PartitionsAdded | BrokerRegistered):
            self.topics_version += 1
        if isinstance(change, TopicDeleted) and change.topic.name != OFFSETS_TOPIC:
            for partition in self.loaded_partitions():
                self._begin("forgetting a deleted topic", self._forget(partition, change.topic.name))

    # -- forgetting ----------------------------------------------------------------------------------------

    def _begin(self, what: str, work: Work) -> None:
        self._services.long_requests.begin(Chore(what), work)

    def _forget(self, partition: Groups, topic: str) -> Work:
        for records in partition.machine.forget_topic(topic):
            self.write_tombstones(partition, records, _ignore)
            yield None

    def _forget_missing(self, partition: Groups) -> Work:
        """Topics that were deleted when nobody wrote it down: before a crash, or while this was loading."""
        known = self._services.controller.image.topics
        for topic in partition.machine.offsets.topics():
            if topic not in known:
                yield from self._forget(partition, topic)

    def write_tombstones(self, partition: Groups, records: Sequence[StateRecord], done: Done) -> None:
        """In parts: one lost is written again, and a batch has its limits."""
        for first in range(0, len(records), _TOMBSTONES_AT_ONCE):
            part = records[first : first + _TOMBSTONES_AT_ONCE]
            partition.write(part, done if first + len(part) == len(records) else _ignore)

    def _set_expiry_timer(self) -> None:
        deadline_ms = self._services.clock.monotonic_ms() + self._expiry_interval_ms
        self._services.reactor.timers.set(deadline_ms, self._expire)

    def _expire(self) -> None:
        self._set_expiry_timer()
        for partition in self.loaded_partitions():
            self._begin("expiring offsets", self._expire_in(partition))

    def _expire_in(self, partition: Groups) -> Work:
        for group_id in list(partition.machine.groups):
            if partition.is_given_up:
                return
            records = partition.machine.expire(group_id, self.now)
            if records:
                self.write_tombstones(partition, records, _ignore)
            yield None


def _ignore(refusal: Refused | None) -> None:
    """What is not written now is written by the next check."""


def _new_member_id(prefix: str) -> str:
    import uuid  # takes longer to load than most of ours, and no member has come yet at a start

    return f"{prefix}-{uuid.uuid4()}"


def _topic_spec(config: BrokerConfig, broker_count: int) -> TopicSpec:
    return TopicSpec(
        OFFSETS_TOPIC,
        num_partitions=config.integer("offsets.topic.num.partitions"),
        replication_factor=min(config.integer("offsets.topic.replication.factor"), max(broker_count, 1)),
        configs=[
            ("cleanup.policy", "compact"),
            ("segment.bytes", str(config.integer("offsets.topic.segment.bytes"))),
            ("compression.type", "producer"),
        ],
    )
