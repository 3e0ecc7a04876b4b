"""A member of a group whose server assigns (KIP-848): what its heartbeats say, and what answers mean. Pure.

The server tells each member what it may have now; the member gives up the rest, takes what is new, and says
so in its next heartbeat. The epoch is the member's; 0 joins, -1 leaves, -2 leaves for a while (a static one).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ottla.client.errors import ClientError, broker_error, error_code
from ottla.client.membership import Stage
from ottla.model.errors import ErrorCode
from ottla.model.topics import TopicId, TopicPartition
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

LEAVES, LEAVES_FOR_A_WHILE = -1, -2

_FENCED = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})
_PASSING = frozenset({ErrorCode.UNRELEASED_INSTANCE_ID, ErrorCode.STALE_MEMBER_EPOCH})

Assigned = dict[TopicId, tuple[int, ...]]


class ServerMembership:
    def __init__(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        rebalance_timeout_ms: int,
        assignor: str | None,
        rack: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.instance_id = instance_id
        self.generation = 0  # the member's epoch, which commits carry
        self.owned: tuple[TopicPartition, ...] = ()
        self.topics: tuple[str, ...] = ()
        self.target: Assigned | None = None  # what the server has told, as long as it is not done
        self.is_lost = False  # what is owned belongs to others: the listener must hear of it
        self.fatal: ClientError | None = None
        self.on_stale: Callable[[], None] | None = None
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._assignor = assignor
        self._rack = rack
        self._owned_ids: Assigned = {}
        self._tells_topics = True  # in the next heartbeat
        self._tells_owned = True

    @property
    def stage(self) -> Stage:
        return Stage.IN if self.generation > 0 else Stage.OUT

    def subscribe(self, topics: Sequence[str]) -> None:
        if tuple(topics) != self.topics:
            self.topics = tuple(topics)
            self._tells_topics = True

    # -- heartbeats ----------------------------------------------------------------------------------------

    def request(self) -> ConsumerGroupHeartbeatRequest:
        """What has changed since the last answer; all of it to join."""
        joins = self.generation == 0
        return ConsumerGroupHeartbeatRequest(
            self.group_id,
            self.member_id,
            self.generation,
            self.instance_id,
            rack_id=self._rack if joins else None,
            rebalance_timeout_ms=self._rebalance_timeout_ms if joins else -1,
            subscribed_topic_names=list(self.topics) if joins or self._tells_topics else None,
            server_assignor=self._assignor if joins else None,
            topic_partitions=self._owned_now() if joins or self._tells_owned else None,
        )

    def _owned_now(self) -> list[TopicPartitions]:
        return [TopicPartitions(topic_id, each) for topic_id, each in self._owned_ids.items()]

    def leaving(self) -> ConsumerGroupHeartbeatRequest:
        epoch = LEAVES if self.instance_id is None else LEAVES_FOR_A_WHILE
        return ConsumerGroupHeartbeatRequest(self.group_id, self.member_id, epoch, self.instance_id)

    def answered(self, asked: ConsumerGroupHeartbeatRequest, answer: ConsumerGroupHeartbeatResponse) -> None:
        if answer.error_code:
            self.refused(answer.error_code, answer.error_message)
            return
        self.member_id = answer.member_id or self.member_id
        self.generation = answer.member_epoch
        if asked.subscribed_topic_names is not None and tuple(asked.subscribed_topic_names) == self.topics:
            self._tells_topics = False
        if asked.topic_partitions is not None and list(asked.topic_partitions) == self._owned_now():
            self._tells_owned = False
        if answer.assignment is not None:
            self.target = {
                each.topic_id: tuple(each.partitions) for each in answer.assignment.topic_partitions
            }

    def refused(self, code: int, message: str | None = None) -> None:
        known = error_code(code)
        if known in _FENCED:
            self.fenced()
        elif known not in _PASSING and not known.retriable:
            self.fatal = broker_error(code, f"group {self.group_id!r}", message)

    def fenced(self) -> None:
        """The group has gone on without this member; it joins anew when it has given up what it had."""
        self.generation = 0
        self.target = None
        self._owned_ids = {}
        self.is_lost = bool(self.owned)

    # -- what the shell has done ---------------------------------------------------------------------------

    def take_over(self, assigned: Assigned, names: Mapping[TopicId, str]) -> None:
        """It reads what the server told, and nothing else."""
        self._owned_ids = assigned
        self.owned = flat(assigned, names)
        self._tells_owned = True
        if self.target == assigned:
            self.target = None

    def give_up(self) -> None:
        self.owned = ()
        self._owned_ids = {}
        self.is_lost = False

    def rebalance(self) -> None:
        """The group is a step ahead, as a commit was told: a heartbeat brings the new epoch."""
        if self.on_stale is not None:
            self.on_stale()


def flat(assigned: Assigned, names: Mapping[TopicId, str]) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(names[topic_id], partition)
        for topic_id, partitions in assigned.items()
        for partition in partitions
    )
