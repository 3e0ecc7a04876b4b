"""A member of a classic consumer group: join, sync, and what the coordinator's answers mean. Pure.

    OUT ──join──▶ JOINING ──▶ SYNCING ──▶ IN ──(somebody comes or goes)──▶ OUT

The shell (`group`) sends requests, hands answers in, and runs the listener; `wants_to_join` says that a
rebalance is due. Heartbeats have a thread of their own (`heartbeats`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from ottla.client.assignors import Assignor, RackAwareAssignor
from ottla.client.errors import ClientError, broker_error, error_code
from ottla.client.group_formats import (
    PROTOCOL_TYPE,
    Subscription,
    by_topic,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    flat,
)
from ottla.client.group_members import Assigned, Member
from ottla.client.nearness import ReplicaRacks
from ottla.model.errors import ErrorCode
from ottla.model.topics import TopicPartition
from ottla.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

_JOIN_AGAIN = frozenset(
    {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID}
)
_FORGOTTEN = frozenset({ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID})
"""The group has gone on without this member: what it had belongs to others by now."""


class Stage(Enum):
    OUT = auto()
    JOINING = auto()
    SYNCING = auto()
    IN = auto()


@dataclass(frozen=True, slots=True)
class GroupRules:
    group_id: str
    instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    assignors: Sequence[Assignor]  # the one that this member likes best comes first
    rack: str | None = None  # where this member is (KIP-881)


@dataclass(frozen=True, slots=True)
class GroupTopics:
    """What the leader needs to know of the topics that the group reads."""

    partition_counts: Mapping[str, int] = field(default_factory=dict)
    racks: ReplicaRacks = field(default_factory=dict)

    def have_changed(self, now: GroupTopics, *, heed_racks: bool) -> bool:
        """Whether the leader would assign these in another way now. One that is gone may come back."""
        there = self.partition_counts.keys() & now.partition_counts.keys()
        if any(self.partition_counts[topic] != now.partition_counts[topic] for topic in there):
            return True
        nowhere = frozenset[str]()
        return heed_racks and any(
            self.racks.get(target, nowhere) != now.racks.get(target, nowhere)
            for target in self.racks.keys() | now.racks.keys()
            if target.topic in there
        )


class Membership:
    def __init__(self, rules: GroupRules) -> None:
        self.rules = rules
        self.stage = Stage.OUT
        self.member_id = ""
        self.generation = -1
        self.owned: tuple[TopicPartition, ...] = ()
        self._history: tuple[TopicPartition, ...] = ()  # what was owned last, for the next leader
        self.topics: tuple[str, ...] = ()
        self.wants_to_join = True
        self.is_lost = False  # what is owned belongs to others: the listener must hear of it
        self.fatal: ClientError | None = None
        self._assignor: Assignor = rules.assignors[0]
        self._is_leader = False
        self._members: Sequence[JoinGroupResponseMember] = ()

    @property
    def is_cooperative(self) -> bool:
        """Whether partitions are kept while the group rebalances: only if every assignor allows it."""
        return all(assignor.is_cooperative for assignor in self.rules.assignors)

    def subscribe(self, topics: Sequence[str]) -> None:
        if tuple(topics) != self.topics:
            self.topics = tuple(topics)
            self.wants_to_join = True

    # -- requests ------------------------------------------------------------------------------------------

    def join_request(self) -> JoinGroupRequest:
        self.stage = Stage.JOINING
        self.wants_to_join = False
        return JoinGroupRequest(
            group_id=self.rules.group_id,
            session_timeout_ms=self.rules.session_timeout_ms,
            rebalance_timeout_ms=self.rules.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self.rules.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequestProtocol(assignor.name, self._subscription(assignor))
                for assignor in self.rules.assignors
            ],
        )

    def _subscription(self, assignor: Assignor) -> bytes:
        user_data = assignor.user_data(self._history, self.generation)
        owned = by_topic(self.owned) if assignor.is_cooperative else ()
        return encode_subscription(
            Subscription(self.topics, user_data, owned, self.generation, self.rules.rack)
        )

    def leader_topics(self) -> frozenset[str] | None:
        """As the leader: the topics whose partitions `sync_request` must know; None: not the leader."""
        if not self._is_leader:
            return None
        return frozenset(
            topic for each in self._members for topic in decode_subscription(each.metadata).topics
        )

    def sync_request(self, topics: GroupTopics) -> SyncGroupRequest:
        assignments: list[SyncGroupRequestAssignment] = []
        if self._is_leader:
            assignments = [
                SyncGroupRequestAssignment(member_id, encode_assignment(targets))
                for member_id, targets in self._assign(topics).items()
            ]
        return SyncGroupRequest(
            self.rules.group_id,
            self.generation,
            self.member_id,
            self.rules.instance_id,
            PROTOCOL_TYPE,
            self._assignor.name,
            assignments,
        )

    def _assign(self, topics: GroupTopics) -> Assigned:
        members = self._known_members()
        if isinstance(self._assignor, RackAwareAssignor):
            return self._assignor.assign_near(topics.partition_counts, members, topics.racks)
        return self._assignor.assign(topics.partition_counts, members)

    def _known_members(self) -> dict[str, Member]:
        members = {}
        for each in self._members:
            told = decode_subscription(each.metadata)
            members[each.member_id] = Member(
                frozenset(told.topics),
                flat(told.owned_partitions),
                told.generation_id,
                each.group_instance_id,
                told.user_data,
                told.rack_id or None,
            )
        return members

    # -- answers -------------------------------------------------------------------------------------------

    def joined(self, answer: JoinGroupResponse) -> None:
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            self._out()
            return
        if answer.error_code:
            self.refused(answer.error_code)
            return
        self.member_id = answer.member_id
        self.generation = answer.generation_id
        self._is_leader = answer.leader == answer.member_id and not answer.skip_assignment
        self._members = answer.members
        names = {assignor.name: assignor for assignor in self.rules.assignors}
        self._assignor = names[answer.protocol_name or ""]
        self.stage = Stage.SYNCING

    def synced(self, answer: SyncGroupResponse) -> tuple[TopicPartition, ...] | None:
        """What this member is to read now; None: it must join again."""
        self._members = ()
        if answer.error_code:
            self.refused(answer.error_code)
            return None
        self.stage = Stage.IN
        return decode_assignment(answer.assignment)

    def refused(self, code: int) -> None:
        """The coordinator's error to any request of a member."""
        known = error_code(code)
        if known in _FORGOTTEN:
            self.member_id = "" if known is ErrorCode.UNKNOWN_MEMBER_ID else self.member_id
            self.generation = -1
            self.is_lost = bool(self.owned)
        elif known not in _JOIN_AGAIN and not known.retriable:
            self.fatal = broker_error(code, f"group {self.rules.group_id!r}")
        self._out()

    def take_over(self, assigned: tuple[TopicPartition, ...]) -> None:
        """The shell has begun to read these."""
        self.owned = self._history = assigned

    def give_up(self) -> None:
        """The shell has ended reading all that is owned."""
        if self.is_lost:
            self._history = ()
        self.owned = ()
        self.is_lost = False

    def interrupted(self) -> None:
        """No answer came: the coordinator may have moved."""
        if self.stage is not Stage.IN:
            self._out()

    def rebalance(self) -> None:
        """Somebody came or went, or topics changed."""
        self.wants_to_join = True

    def _out(self) -> None:
        self.stage = Stage.OUT
        self.wants_to_join = True
