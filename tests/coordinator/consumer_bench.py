"""Consumer groups on the bench: topics by hand, and members that do what they are told."""

from __future__ import annotations

from dataclasses import dataclass, field

from coordinator.bench import GROUP, Bench, Topics
from ottla.coordinator.consumer_group import ConsumerGroup
from ottla.coordinator.consumer_members import NO_SLOTS, Slots, by_topic, to_slots
from ottla.coordinator.group_config import GroupConfig
from ottla.coordinator.group_members import Caller
from ottla.coordinator.outcome import Outcome
from ottla.model.errors import ErrorCode, Refused
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)


def named(slots: Slots) -> list[str]:
    """`topic-partition`, sorted."""
    return sorted(f"{slot.topic_id.rstrip(bytes(1)).decode()}-{slot.partition}" for slot in slots)


class ConsumerBench(Bench):
    def __init__(self, topics: Topics, config: GroupConfig | None = None) -> None:
        super().__init__(config, topics)

    def decide(self, request: ConsumerGroupHeartbeatRequest, name: str, version: int = 1) -> Outcome:
        caller = Caller(version, name, "/10.0.0.1")
        return self.machine.consumer_heartbeat(request, caller, self.topics.names, name, self.now)

    def ask(
        self, request: ConsumerGroupHeartbeatRequest, name: str = "", version: int = 1
    ) -> ConsumerGroupHeartbeatResponse:
        try:
            outcome = self.decide(request, name, version)
        except Refused as refusal:
            return ConsumerGroupHeartbeatResponse(error_code=refusal.code, error_message=refusal.text)
        self.finish(outcome)
        (found,) = [each for each in self.answers if isinstance(each[1], ConsumerGroupHeartbeatResponse)]
        self.answers.remove(found)
        assert isinstance(found[1], ConsumerGroupHeartbeatResponse)
        return found[1]

    def consumers(self, group_id: str = GROUP) -> ConsumerGroup:
        group = self.machine.groups[group_id]
        assert isinstance(group, ConsumerGroup)
        return group


@dataclass(slots=True)
class Client:
    """A member as stock clients are: it gives up what it must, then says so, then takes what it gets."""

    bench: ConsumerBench
    id: str
    topics: list[str] | None = field(default_factory=lambda: ["t"])
    pattern: str | None = None
    instance_id: str | None = None
    assignor: str | None = None
    epoch: int = 0
    owned: Slots = NO_SLOTS

    def request(self) -> ConsumerGroupHeartbeatRequest:
        joins = self.epoch == 0
        return ConsumerGroupHeartbeatRequest(
            GROUP,
            self.id,
            self.epoch,
            self.instance_id,
            rebalance_timeout_ms=60_000 if joins else -1,
            subscribed_topic_names=self.topics if joins else None,
            subscribed_topic_regex=self.pattern if joins else None,
            server_assignor=self.assignor if joins else None,
            topic_partitions=[TopicPartitions(*each) for each in by_topic(self.owned).items()],
        )

    def take(self, response: ConsumerGroupHeartbeatResponse) -> ErrorCode:
        if response.error_code == ErrorCode.NONE:
            self.epoch = response.member_epoch
            if response.assignment is not None:
                self.owned = to_slots(response.assignment.topic_partitions)
        return ErrorCode(response.error_code)

    def beat(self) -> ErrorCode:
        return self.take(self.bench.ask(self.request(), self.id))

    def leave(self, epoch: int = -1) -> ErrorCode:
        request = ConsumerGroupHeartbeatRequest(GROUP, self.id, epoch, self.instance_id)
        return ErrorCode(self.bench.ask(request, self.id).error_code)

    @property
    def has(self) -> list[str]:
        return named(self.owned)


def settle(*clients: Client) -> None:
    """A few rounds of heartbeats: one to hear, one to give up, one to get."""
    for _ in range(4):
        for client in clients:
            assert client.beat() is ErrorCode.NONE, client.id
