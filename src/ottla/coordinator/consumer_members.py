"""A member of a consumer group (KIP-848): what it asked for, and how far it is with what it was given."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Protocol

from ottla.coordinator.consumer_records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    MemberAssignmentValue,
    MemberValue,
    TopicPartitions,
)
from ottla.model.topics import TopicId
from ottla.model.values import NamedTuple, dataclass, replace
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

JOINS = 0
LEAVES = -1
LEAVES_FOR_A_WHILE = -2
"""What a member says in place of its epoch. The last also is the epoch of a static member that is away."""


class Slot(NamedTuple):
    """A partition that somebody reads."""

    topic_id: TopicId
    partition: int


Slots = frozenset[Slot]
NO_SLOTS: Slots = frozenset()


class _Partitions(Protocol):
    @property
    def topic_id(self) -> TopicId: ...

    @property
    def partitions(self) -> Sequence[int]: ...


def to_slots(topics: Iterable[_Partitions]) -> Slots:
    return frozenset(Slot(topic.topic_id, partition) for topic in topics for partition in topic.partitions)


def by_topic(slots: Slots) -> dict[TopicId, list[int]]:
    topics: dict[TopicId, list[int]] = defaultdict(list)
    for slot in sorted(slots):
        topics[slot.topic_id].append(slot.partition)
    return topics


def to_record(slots: Slots) -> list[TopicPartitions]:
    return [TopicPartitions(*each) for each in by_topic(slots).items()]


class MemberState(IntEnum):
    """By the numbers in the log."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1  # it has to give up partitions before it goes on to the next epoch
    UNRELEASED_PARTITIONS = 2  # others still have partitions that it waits for
    UNKNOWN = 127


@dataclass(slots=True, frozen=True)
class ClassicTerms:
    """What a member that speaks the classic protocol has said when it joined."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]  # (name, metadata), the best liked first

    @property
    def protocol_name(self) -> str:
        """The one that it is told the group has; the assignor is the broker's all the same."""
        return self.protocols[0][0]

    @property
    def metadata(self) -> bytes:
        return self.protocols[0][1]


@dataclass(slots=True, frozen=True)
class ConsumerMember:
    id: str
    instance_id: str | None = None  # of static members
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    epoch: int = 0
    previous_epoch: int = 0  # accepted too: the answer that told of the new one may be lost
    state: MemberState = MemberState.STABLE
    assigned: Slots = NO_SLOTS
    pending_revocation: Slots = NO_SLOTS
    classic: ClassicTerms | None = None  # of members that speak the classic protocol

    def with_request(
        self, request: ConsumerGroupHeartbeatRequest, client_id: str, host: str
    ) -> ConsumerMember:
        """Null means unchanged; an empty pattern ends the subscription by it."""
        names, pattern = request.subscribed_topic_names, request.subscribed_topic_regex
        timeout_ms = request.rebalance_timeout_ms
        return replace(
            self,
            instance_id=self.instance_id if request.instance_id is None else request.instance_id,
            rack_id=self.rack_id if request.rack_id is None else request.rack_id,
            client_id=client_id,
            client_host=host,
            topics=self.topics if names is None else tuple(sorted(set(names))),
            pattern=self.pattern if pattern is None else pattern or None,
            rebalance_timeout_ms=self.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
            assignor=self.assignor if request.server_assignor is None else request.server_assignor,
            classic=None,
        )

    def has_same_subscription(self, other: ConsumerMember) -> bool:
        """Whether the assignor would see no difference."""
        mine = (self.topics, self.pattern, self.assignor, self.instance_id, self.rack_id)
        return mine == (other.topics, other.pattern, other.assignor, other.instance_id, other.rack_id)

    def subscribed(self, patterns: Mapping[str, Sequence[str]]) -> frozenset[str]:
        """Names of topics, whether they exist or not; with what patterns stand for."""
        return frozenset(self.topics).union(patterns.get(self.pattern or "", ()))

    # -- the log -------------------------------------------------------------------------------------------

    def metadata(self) -> MemberValue:
        return MemberValue(
            self.instance_id,
            self.rack_id,
            self.client_id,
            self.client_host,
            self.topics,
            self.pattern or "",
            self.rebalance_timeout_ms,
            self.assignor,
            _to_metadata(self.classic),
        )

    def with_metadata(self, value: MemberValue) -> ConsumerMember:
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=tuple(value.subscribed_topic_names),
            pattern=value.subscribed_topic_regex or None,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            assignor=value.server_assignor,
            classic=_to_terms(value.classic_member_metadata),
        )

    def assignment(self) -> MemberAssignmentValue:
        return MemberAssignmentValue(
            self.epoch,
            self.previous_epoch,
            self.state,
            to_record(self.assigned),
            to_record(self.pending_revocation),
        )

    def with_assignment(self, value: MemberAssignmentValue) -> ConsumerMember:
        known = value.state in MemberState.__members__.values()
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState(value.state) if known else MemberState.UNKNOWN,
            assigned=to_slots(value.assigned_partitions),
            pending_revocation=to_slots(value.partitions_pending_revocation),
        )

    @property
    def slots(self) -> Slots:
        """What nobody else may have yet."""
        return self.assigned | self.pending_revocation if self.pending_revocation else self.assigned


def _to_metadata(terms: ClassicTerms | None) -> ClassicMemberMetadata | None:
    if terms is None:
        return None
    return ClassicMemberMetadata(
        terms.session_timeout_ms, [ClassicProtocol(*each) for each in terms.protocols]
    )


def _to_terms(metadata: ClassicMemberMetadata | None) -> ClassicTerms | None:
    if metadata is None or not metadata.supported_protocols:
        return None
    return ClassicTerms(
        metadata.session_timeout_ms,
        tuple((each.name, bytes(each.metadata)) for each in metadata.supported_protocols),
    )
