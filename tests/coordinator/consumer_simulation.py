"""Members of one consumer group against a coordinator that crashes, on a network that loses. All by a seed.

Heartbeats and their answers are delayed, lost and late; members die, stall and come back; topics grow and go.
After the chaos comes calm, in which every partition must find its one owner.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from random import Random

from coordinator.consumer_bench import Client, ConsumerBench, Topics
from ottla.coordinator.consumer_members import NO_SLOTS, Slot, to_slots
from ottla.coordinator.outcome import Outcome
from ottla.model.errors import ErrorCode, Refused
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

INTERVAL_MS = 1_000
REQUEST_TIMEOUT_MS = 3_000
CALM_MS = 120_000  # a session, a time for giving up, and some rounds
JOIN_AGAIN = (
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
)


class Member(Client):
    """One process; when it dies it is gone for good, and another takes its place."""

    alive = True
    waits_since_ms: int | None = None  # for an answer


class World:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.bench = ConsumerBench(Topics(t=5, u=3))
        self.faults = True
        self.members: list[Member] = []
        self.rounds = 0  # heartbeats that were answered
        self.fenced = 0
        self._names = 0
        self._order = 0
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._synced = 0  # records of the log that are safe
        self._epochs: dict[str, int] = {}  # the latest that a member was told

    # -- time ----------------------------------------------------------------------------------------------

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._order += 1
        heapq.heappush(self._queue, (self.bench.now_ms + delay_ms, self._order, action))

    def run(self, ms: int) -> None:
        end_ms = self.bench.now_ms + ms
        while self._queue and self._queue[0][0] <= end_ms:
            at_ms, _, action = heapq.heappop(self._queue)
            self.bench.advance(max(at_ms - self.bench.now_ms, 0))
            action()
            self.check()
        self.bench.advance(end_ms - self.bench.now_ms)

    def _travel(self, action: Callable[[], None]) -> None:
        """One way over the network."""
        if not self.faults:
            self.after(self.random.randint(0, 20), action)
        elif self.random.random() < 0.9:
            self.after(self.random.choice([1, 5, 50, 500, 8_000]), action)

    # -- members -------------------------------------------------------------------------------------------

    def join(self) -> None:
        self._names += 1
        topics = self.random.choice([["t"], ["u"], ["t", "u"], None])
        member = Member(self.bench, f"m{self._names}", topics, "[tu]" if topics is None else None)
        member.assignor = self.random.choice([None, None, "range"])
        self.members.append(member)
        self._tick(member)

    def die(self) -> None:
        if self.members:
            self.members.pop(self.random.randrange(len(self.members))).alive = False

    def _tick(self, member: Member) -> None:
        if not member.alive:
            return
        now_ms = self.bench.now_ms
        if member.waits_since_ms is None or now_ms - member.waits_since_ms > REQUEST_TIMEOUT_MS:
            self._send(member)
        stalls = self.faults and self.random.random() < 0.02
        self.after(70_000 if stalls else INTERVAL_MS, lambda: self._tick(member))

    def _send(self, member: Member) -> None:
        sent_ms = member.waits_since_ms = self.bench.now_ms
        request = member.request()
        self._travel(lambda: self._decide(member, sent_ms, request))

    def _decide(self, member: Member, sent_ms: int, request: object) -> None:
        try:
            outcome = self.bench.decide(request, member.id)  # type: ignore[arg-type]
        except Refused as refusal:
            code = refusal.code
            self._travel(lambda: self._refused(member, sent_ms, code))
            return
        self.bench.write(outcome.records)
        self._when_synced(outcome, lambda response: self._answered(member, sent_ms, response))

    def _when_synced(
        self, outcome: Outcome, answer: Callable[[ConsumerGroupHeartbeatResponse], None]
    ) -> None:
        machine, end = self.bench.machine, len(self.bench.log)
        ((_, response),) = outcome.answers
        assert isinstance(response, ConsumerGroupHeartbeatResponse)

        def synced() -> None:
            if self.bench.machine is machine:  # else it crashed
                self._synced = max(self._synced, end)
                self._travel(lambda: answer(response))

        if outcome.records or outcome.tells_the_log:
            self.after(self.random.randint(0, 20), synced)
        else:
            synced()

    def _refused(self, member: Member, sent_ms: int, code: ErrorCode) -> None:
        if member.waits_since_ms != sent_ms:
            return  # it no longer waits for this one
        assert code in JOIN_AGAIN, code
        self.fenced += 1
        member.waits_since_ms = None
        member.epoch, member.owned = 0, NO_SLOTS

    def _answered(self, member: Member, sent_ms: int, response: ConsumerGroupHeartbeatResponse) -> None:
        if member.waits_since_ms != sent_ms:
            return
        member.waits_since_ms = None
        self.rounds += 1
        member.epoch = response.member_epoch
        if response.assignment is not None:
            member.owned = to_slots(response.assignment.topic_partitions)

    # -- faults --------------------------------------------------------------------------------------------

    def crash(self) -> None:
        del self.bench.log[self.random.randint(self._synced, len(self.bench.log)) :]
        self._synced = len(self.bench.log)
        self.bench.restart()

    def change_topics(self) -> None:
        topics = self.bench.topics
        known = topics.find("t")
        if known is None or known.partitions < 9:
            topics.set("t", 1 if known is None else known.partitions + 1)
        else:
            topics.delete("t")

    def chaos(self, ms: int) -> None:
        self.faults = True
        for _ in range(3):
            self.join()
        events = [self.join, self.die, self.crash, self.change_topics]
        end_ms = self.bench.now_ms + ms
        while self.bench.now_ms < end_ms:
            self.random.choice(events)()
            if not self.members:
                self.join()
            self.run(self.random.randint(0, 10_000))

    # -- what must hold ------------------------------------------------------------------------------------

    def check(self) -> None:
        """At any time: who still has its place in the group shares no partition with another that has."""
        group = self.bench.machine.groups.get("g")
        if group is None:
            return
        owners: dict[Slot, str] = {}
        consumers = self.bench.consumers()
        for member in consumers.members.values():
            for slot in member.slots:
                assert owners.setdefault(slot, member.id) == member.id, slot
        assert owners == consumers.owners
        for client in self.members:
            known = consumers.members.get(client.id)
            if known is not None and client.epoch == known.epoch:
                assert client.owned <= known.slots, client.id

    def calm(self) -> None:
        self.faults = False
        self.run(CALM_MS)
        consumers = self.bench.consumers()
        assert set(consumers.members) == {member.id for member in self.members}
        wanted = {name for member in self.members for name in member.topics or ("t", "u")}
        topics = [self.bench.topics.find(name) for name in sorted(wanted)]
        slots = {Slot(topic.id, each) for topic in topics if topic for each in range(topic.partitions)}
        held = [slot for member in self.members for slot in member.owned]
        assert sorted(held) == sorted(slots), "every partition has one reader, and nothing else is read"
        assert {member.epoch for member in self.members} == {consumers.epoch}
