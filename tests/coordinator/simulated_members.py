"""Members of a simulated group: one request at a time, retries, and what stock clients make of answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from coordinator.bench import GROUP
from ottla.coordinator.classic_formats import encode_slots, named_slots
from ottla.coordinator.consumer_members import NO_SLOTS, Slot, Slots, by_topic, to_slots
from ottla.coordinator.group_members import Caller
from ottla.model.errors import ErrorCode, Refused
from ottla.protocol.consumer_protocol import (
    Subscription,
    TopicPartitions,
    decode_assignment,
    decode_subscription,
    encode_subscription,
)
from ottla.protocol.fields import Message
from ottla.protocol.messages import consumer_group_heartbeat as wire
from ottla.protocol.messages.join_group import JoinGroupResponse
from ottla.protocol.messages.leave_group import MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from coordinator.consumer_simulation import Answer, World

INTERVAL_MS = 1_000
REQUEST_TIMEOUT_MS = 3_000
SESSION_MS = 20_000
REBALANCE_MS = 30_000


class SimulatedMember(ABC):
    """One process; when it dies it is gone for good, and another takes its place."""

    def __init__(self, world: World, name: str, instance_id: str | None) -> None:
        self.world = world
        self.name = name
        self.instance_id = instance_id
        self.topics: tuple[str, ...] = world.random.choice([("t",), ("u",), ("t", "u")])
        self.alive = True
        self.id = ""
        self.epoch = 0
        self.owned: Slots = NO_SLOTS
        self.owned_epoch = 0  # when it was last told what it may read
        self._request = 0  # the current one; answers to earlier ones are late

    @property
    def identity(self) -> str:
        return self.instance_id or self.id

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def leave(self) -> None: ...

    def _ask(
        self,
        ask: Callable[[Callable[[Any], None]], None],
        take: Callable[[Any], None],
        again: Callable[[], None],
        timeout_ms: int = REQUEST_TIMEOUT_MS,
    ) -> None:
        self._request += 1
        number = self._request

        def is_current() -> bool:
            return self.alive and number == self._request

        def took(response: Any) -> None:
            if is_current():
                self._request += 1
                self.world.rounds += 1
                take(response)

        self.world.travel(lambda: ask(lambda response: self.world.travel(lambda: took(response))))
        self.world.after(timeout_ms, lambda: again() if is_current() else None)

    def _soon(self, action: Callable[[], None]) -> None:
        """Some are away for longer than their session lasts."""
        number = self._request
        stalls = self.world.faults and self.world.random.random() < 0.02
        self.world.after(
            70_000 if stalls else INTERVAL_MS,
            lambda: action() if self.alive and number == self._request else None,
        )

    def _maybe_commit(self) -> None:
        if self.owned and self.world.random.random() < 0.3:
            identity, member_id, epoch = self.identity, self.id, self.epoch
            slot = self.world.random.choice(sorted(self.owned))
            self.world.travel(lambda: self.world.commit(identity, member_id, epoch, slot))


class NewMember(SimulatedMember):
    """It speaks the consumer protocol."""

    def __init__(self, world: World, name: str, instance_id: str | None) -> None:
        super().__init__(world, name, instance_id)
        self.id = name
        self.pattern = world.random.choice([None, None, "[tu]"])
        if self.pattern is not None:
            self.topics = ("t", "u")
        self.assignor = world.random.choice([None, None, "range"])

    def start(self) -> None:
        self._beat()

    def _beat_again(self) -> None:
        """The answer may have told it something, so it asks for all."""
        self._beat(whole=True)

    def _beat(self, whole: bool = False) -> None:
        if not self.alive:
            return
        bench = self.world.bench
        whole = whole or self.epoch == 0
        request = wire.ConsumerGroupHeartbeatRequest(
            GROUP,
            self.id,
            self.epoch,
            self.instance_id,
            rebalance_timeout_ms=REBALANCE_MS if whole else -1,
            subscribed_topic_names=self.topics if whole and self.pattern is None else None,
            subscribed_topic_regex=self.pattern if whole else None,
            server_assignor=self.assignor if whole else None,
            topic_partitions=[wire.TopicPartitions(*each) for each in by_topic(self.owned).items()],
        )

        def ask(answer: Answer) -> None:
            life = self.world.life

            def left(response: Message) -> None:
                assert isinstance(response, wire.ConsumerGroupHeartbeatResponse)
                if response.assignment is not None:
                    slots = to_slots(response.assignment.topic_partitions)
                    self.world.told(life, self.identity, response.member_epoch, slots)
                answer(response)

            caller = Caller(1, self.name, "/10.0.0.1")
            reply = bench.reply(left)
            try:
                bench.finish(
                    bench.machine.consumer_heartbeat(request, caller, bench.topics.names, reply, bench.now)
                )
            except Refused as refusal:
                answer(wire.ConsumerGroupHeartbeatResponse(error_code=refusal.code))

        self._ask(ask, self._answered, self._beat_again)

    def _answered(self, response: wire.ConsumerGroupHeartbeatResponse) -> None:
        match response.error_code:
            case ErrorCode.NONE:
                self.epoch = self.owned_epoch = response.member_epoch
                if response.assignment is not None:
                    self.owned = to_slots(response.assignment.topic_partitions)
                self._maybe_commit()
            case ErrorCode.FENCED_INSTANCE_ID:
                self.alive = False
                return
            case ErrorCode.UNRELEASED_INSTANCE_ID:
                pass  # who had it is dead, and its session will end
            case code:
                expected = (
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    ErrorCode.UNKNOWN_MEMBER_ID,
                    ErrorCode.GROUP_ID_NOT_FOUND,
                )
                assert code in expected, code
                self.world.fenced += 1
                self.epoch, self.owned = 0, NO_SLOTS
        self._soon(self._beat)

    def leave(self) -> None:
        self.alive = False
        bench = self.world.bench
        request = wire.ConsumerGroupHeartbeatRequest(GROUP, self.id, -1, self.instance_id)

        def ask() -> None:
            caller = Caller(1, self.name, "/10.0.0.1")
            reply = bench.reply(lambda _: None)
            with suppress(Refused):
                bench.finish(
                    bench.machine.consumer_heartbeat(request, caller, bench.topics.names, reply, bench.now)
                )

        self.world.travel(ask)


class ClassicMember(SimulatedMember):
    """It speaks the classic protocol; for a rebalance it gives up all, or (cooperative) what it must."""

    def __init__(self, world: World, name: str, instance_id: str | None) -> None:
        super().__init__(world, name, instance_id)
        self.epoch = -1
        self._is_cooperative = world.random.random() < 0.5
        self._version = world.random.choice([0, 1, 2, 3]) if not self._is_cooperative else 3
        self._assigned_version: int | None = None  # of the topics that it has assigned, if it leads

    def start(self) -> None:
        self._join()

    # -- joining -------------------------------------------------------------------------------------------

    def _join(self) -> None:
        if not self.alive:
            return
        bench, member_id = self.world.bench, self.id
        if not self._is_cooperative:
            self.owned = NO_SLOTS
        topics = bench.topics
        owned = [TopicPartitions(topics.name(each) or "", ids) for each, ids in by_topic(self.owned).items()]
        metadata = encode_subscription(Subscription(self.topics, None, owned, self.epoch), self._version)

        def ask(answer: Answer) -> None:
            bench.join(
                bench.reply(answer),
                member_id,
                protocols={"range": metadata},
                instance_id=self.instance_id,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=REBALANCE_MS,
            )

        self._ask(ask, self._joined, self._join, REBALANCE_MS + REQUEST_TIMEOUT_MS)

    def _joined(self, response: JoinGroupResponse) -> None:
        match response.error_code:
            case ErrorCode.NONE:
                self.id, self.epoch = response.member_id, response.generation_id
                self._sync(response)
            case ErrorCode.MEMBER_ID_REQUIRED:
                self.id = response.member_id
                self._join()
            case code:
                self._failed(ErrorCode(code))

    def _failed(self, code: ErrorCode) -> None:
        match code:
            case ErrorCode.FENCED_INSTANCE_ID:
                self.alive = False
                return
            case ErrorCode.UNKNOWN_MEMBER_ID:
                self.id, self.epoch, self.owned = "", -1, NO_SLOTS
            case ErrorCode.ILLEGAL_GENERATION:
                self.epoch, self.owned = -1, NO_SLOTS
            case _:
                retried = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
                assert code in retried, code
        self.world.fenced += 1
        self._soon(self._join)

    def _sync(self, joined: JoinGroupResponse) -> None:
        bench, member_id, generation = self.world.bench, self.id, self.epoch
        assignments = self._assign(joined) if joined.members and not joined.skip_assignment else {}
        self._assigned_version = bench.topics.version if joined.members else None

        def ask(answer: Callable[[tuple[ErrorCode, Slots]], None]) -> None:
            life = self.world.life

            def left(response: Message) -> None:
                """Names mean the topics of this moment, not of when they are heard of."""
                assert isinstance(response, SyncGroupResponse)
                slots = self._slots(response) if response.error_code == ErrorCode.NONE else NO_SLOTS
                self.world.told(life, self.instance_id or member_id, generation, slots)
                answer((ErrorCode(response.error_code), slots))

            bench.sync(bench.reply(left), member_id, generation, assignments, instance_id=self.instance_id)

        self._ask(ask, self._synced, self._join, REBALANCE_MS + REQUEST_TIMEOUT_MS)

    def _assign(self, joined: JoinGroupResponse) -> dict[str, bytes]:
        """As cooperative leaders do: what another still has is given away in the next round."""
        topics = self.world.bench.topics
        told = {each.member_id: decode_subscription(bytes(each.metadata)) for each in joined.members}
        owners = {
            slot: member_id
            for member_id, each in told.items()
            if each.generation_id == max(other.generation_id for other in told.values())
            for slot in named_slots(each.owned_partitions, topics)
        }
        shares: dict[str, set[Slot]] = {member_id: set() for member_id in told}
        for name in sorted({name for each in told.values() for name in each.topics}):
            topic, readers = topics.find(name), [each for each in told if name in told[each].topics]
            for partition in range(topic.partitions if topic else 0):
                assert topic is not None
                slot, reader = Slot(topic.id, partition), readers[partition % len(readers)]
                if owners.get(slot, reader) == reader:
                    shares[reader].add(slot)
        return {
            each.member_id: encode_slots(frozenset(shares[each.member_id]), bytes(each.metadata), topics)
            for each in joined.members
        }

    def _slots(self, response: SyncGroupResponse) -> Slots:
        assigned = decode_assignment(bytes(response.assignment)).assigned_partitions
        return named_slots(assigned, self.world.bench.topics)

    def _synced(self, answer: tuple[ErrorCode, Slots]) -> None:
        code, slots = answer
        if code is not ErrorCode.NONE:
            self._failed(code)
            return
        before, self.owned = self.owned, slots
        self.owned_epoch = self.epoch
        if before - self.owned:  # it has given these up, and says so
            self._soon(self._join)
        else:
            self._soon(self._beat)

    # -- living --------------------------------------------------------------------------------------------

    def _beat(self) -> None:
        bench, member_id, generation = self.world.bench, self.id, self.epoch
        self._maybe_commit()

        def ask(answer: Callable[[ErrorCode], None]) -> None:
            answer(bench.heartbeat(member_id, generation, self.instance_id))

        self._ask(ask, self._lives, self._beat)

    def _lives(self, code: ErrorCode) -> None:
        if code is not ErrorCode.NONE:
            self._failed(code)
        elif self._assigned_version not in (None, self.world.bench.topics.version):
            self._soon(self._join)
        else:
            self._soon(self._beat)

    def leave(self) -> None:
        self.alive = False
        bench, identity = self.world.bench, MemberIdentity(self.id, self.instance_id)
        self.world.travel(lambda: bench.leave(bench.reply(lambda _: None), identity))
