"""A group machine on a bench: time moved by hand, a log in memory, answers as they come."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count as numbers

from ottla.coordinator.classic_group import ClassicGroup
from ottla.coordinator.group_config import GroupConfig
from ottla.coordinator.group_machine import GroupMachine
from ottla.coordinator.group_members import Caller
from ottla.coordinator.group_state import AT_ONCE_MS, NEVER_MS
from ottla.coordinator.known_topics import KnownTopic
from ottla.coordinator.offset_commits import Commit, PartitionCommit
from ottla.coordinator.outcome import Outcome
from ottla.coordinator.state_log import Now, StateRecord
from ottla.model.errors import ErrorCode, Refused
from ottla.model.topics import TopicId
from ottla.protocol.fields import Message
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.leave_group import MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

GROUP = "g"
WALL_MS = 1_700_000_000_000


class Topics:
    """The cluster's, by hand."""

    def __init__(self, **partitions: int) -> None:
        self.version = 0
        self._known: dict[str, KnownTopic] = {}
        self._deleted: list[str] = []  # who comes again has another id
        for name, count in partitions.items():
            self.set(name, count)

    def set(self, name: str, partitions: int) -> None:
        """Creates it, or gives it more partitions."""
        self.version += 1
        life = self._deleted.count(name)
        self._known[name] = KnownTopic(topic_id(f"{name}{life}" if life else name), partitions)

    def delete(self, name: str) -> None:
        self.version += 1
        self._deleted.append(name)
        del self._known[name]

    def find(self, name: str) -> KnownTopic | None:
        return self._known.get(name)

    def name(self, topic_id: TopicId) -> str | None:
        return next((name for name, topic in self._known.items() if topic.id == topic_id), None)

    def names(self) -> Iterable[str]:
        return list(self._known)


def topic_id(name: str) -> TopicId:
    return TopicId(name.encode().ljust(16, b"\0"))


class Bench:
    def __init__(self, config: GroupConfig | None = None, topics: Topics | None = None) -> None:
        self.config = config or GroupConfig()
        self.topics = topics or Topics()
        self.now_ms = 0
        self.log: list[StateRecord] = []
        self.answers: list[tuple[str, Message]] = []  # by the name of who asked
        self._numbers = numbers(1)
        self.machine = self._new_machine()

    def _new_machine(self) -> GroupMachine:
        return GroupMachine(self.config, lambda prefix: f"{prefix}-{next(self._numbers)}", self.topics)

    @property
    def now(self) -> Now:
        return Now(self.now_ms, WALL_MS + self.now_ms)

    def group(self, group_id: str = GROUP) -> ClassicGroup | None:
        return self.machine.groups.get(group_id)

    # -- as the broker does it -----------------------------------------------------------------------------

    def finish(self, outcome: Outcome) -> None:
        self.write(outcome.records)
        for name, response in outcome.answers:
            assert isinstance(name, str)
            self.answers.append((name, response))
        self.wake_at_once()

    def wake_at_once(self) -> None:
        for group in list(self.machine.groups.values()):
            if group.wake_ms == AT_ONCE_MS:
                self.finish(self.machine.tick(group.id, self.now))

    def write(self, records: list[StateRecord]) -> None:
        for record in records:
            self.machine.apply(record)
            self.log.append(record)

    def next_wake_ms(self) -> int:
        return min((group.wake_ms for group in self.machine.groups.values()), default=NEVER_MS)

    def advance(self, ms: int) -> None:
        """Every group is woken when it wants to be, in the order of their deadlines."""
        end_ms = self.now_ms + ms
        while True:
            due = [(group.wake_ms, group.id) for group in self.machine.groups.values()]
            wake_ms, group_id = min(due, default=(end_ms + 1, ""))
            if wake_ms > end_ms:
                break
            self.now_ms = max(self.now_ms, wake_ms)
            self.finish(self.machine.tick(group_id, self.now))
        self.now_ms = end_ms

    def replayed(self) -> GroupMachine:
        machine = self._new_machine()
        for record in self.log:
            machine.apply(record)
        return machine

    def restart(self) -> None:
        """What is not in the log is lost, whoever waits too."""
        self.machine = self.replayed()
        self.finish(self.machine.loaded(self.now))

    # -- requests ------------------------------------------------------------------------------------------

    def join(
        self,
        name: str,
        member_id: str = "",
        *,
        version: int = 9,
        protocols: dict[str, bytes] | None = None,
        protocol_type: str = "consumer",
        instance_id: str | None = None,
        session_timeout_ms: int = 10_000,
        rebalance_timeout_ms: int = 60_000,
        group_id: str = GROUP,
    ) -> None:
        request = JoinGroupRequest(
            group_id,
            session_timeout_ms,
            rebalance_timeout_ms,
            member_id,
            instance_id,
            protocol_type,
            [
                JoinGroupRequestProtocol(protocol, metadata)
                for protocol, metadata in (protocols or {"range": subscription("t")}).items()
            ],
        )
        self.finish(self.machine.join(request, Caller(version, name, "/10.0.0.1"), name, self.now))

    def sync(
        self,
        name: str,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        instance_id: str | None = None,
        protocol: str | None = None,
        group_id: str = GROUP,
    ) -> None:
        given = [SyncGroupRequestAssignment(*each) for each in (assignments or {}).items()]
        request = SyncGroupRequest(
            group_id, generation, member_id, instance_id, protocol_name=protocol, assignments=given
        )
        self.finish(self.machine.sync(request, name, self.now))

    def heartbeat(
        self, member_id: str, generation: int, instance_id: str | None = None, group_id: str = GROUP
    ) -> ErrorCode:
        request = HeartbeatRequest(group_id, generation, member_id, instance_id)
        return self.machine.heartbeat(request, self.now_ms)

    def leave(self, name: str, *members: MemberIdentity, group_id: str = GROUP) -> None:
        self.finish(self.machine.leave(group_id, members, name, self.now))

    def commit(
        self,
        offsets: dict[tuple[str, int], int],
        member_id: str = "",
        generation: int = -1,
        *,
        version: int = 9,
        retention_ms: int = -1,
        instance_id: str | None = None,
        group_id: str = GROUP,
    ) -> ErrorCode:
        partitions = [
            PartitionCommit(topic, partition, offset, -1, None)
            for (topic, partition), offset in offsets.items()
        ]
        commit = Commit(version, group_id, generation, member_id, instance_id, retention_ms, partitions)
        try:
            self.write(self.machine.commit(commit, self.now))
        except Refused as refusal:
            return refusal.code
        return ErrorCode.NONE

    def expire(self) -> None:
        for group_id in list(self.machine.groups):
            self.write(self.machine.expire(group_id, self.now))

    def committed(self, group_id: str = GROUP) -> dict[tuple[str, int], int]:
        return committed(self.machine, group_id)


def committed(machine: GroupMachine, group_id: str = GROUP) -> dict[tuple[str, int], int]:
    return {
        (topic, partition): value.offset
        for topic, partitions in machine.offsets.of_group(group_id).items()
        for partition, value in partitions.items()
    }


def subscription(*topics: str) -> bytes:
    """What consumers say of themselves, version 0 without user data."""
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\0\0" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"
