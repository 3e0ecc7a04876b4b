"""Members of one group against a coordinator that crashes, on a network that loses. Everything by a seed.

Members speak the consumer protocol, the classic one, or both kinds are in one group, which then changes its
own protocol with them. Requests and their answers are delayed, lost and late; members die, leave, stall and
come back; topics grow and go. After the chaos comes calm, in which every partition must find its one owner.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from random import Random

from coordinator.bench import GROUP, Topics, committed
from coordinator.consumer_bench import ConsumerBench
from coordinator.simulated_members import ClassicMember, NewMember, SimulatedMember
from ottla.coordinator.classic_group import ClassicGroup
from ottla.coordinator.consumer_group import ConsumerGroup
from ottla.coordinator.consumer_members import Slot, Slots
from ottla.coordinator.group_config import GroupConfig
from ottla.coordinator.group_state import GroupState
from ottla.coordinator.outcome import Outcome
from ottla.model.errors import ErrorCode
from ottla.protocol.fields import Message

CALM_MS = 240_000  # late messages, a session, a rebalance of either protocol, and some rounds

Answer = Callable[[Message], None]


class Coordinator(ConsumerBench):
    """A bench whose disk takes its time: answers wait for the records behind them, or are lost with these."""

    def __init__(self, world: World) -> None:
        super().__init__(Topics(t=5, u=3), GroupConfig(initial_rebalance_delay_ms=500))
        self.world = world
        self.synced = 0  # records of the log that are safe
        self._waiting: dict[str, Answer] = {}
        self._replies = 0
        self._sync_ms = 0  # when the last sync ends; the next does not end before it

    def reply(self, answer: Answer) -> str:
        self._replies += 1
        self._waiting[str(self._replies)] = answer
        return str(self._replies)

    def finish(self, outcome: Outcome) -> None:
        self.write(outcome.records)
        self.wake_at_once()

        def answer() -> None:
            for name, response in outcome.answers:
                self._waiting.pop(str(name))(response)

        if outcome.records or outcome.tells_the_log:
            self.when_synced(answer)
        else:
            answer()

    def when_synced(self, action: Callable[[], None]) -> None:
        machine, end = self.machine, len(self.log)

        def attempt() -> None:
            if self.machine is machine:  # else it crashed
                self.synced = max(self.synced, end)
                action()

        self._sync_ms = max(self._sync_ms, self.now_ms + self.world.random.randint(0, 20))
        self.world.after(self._sync_ms - self.now_ms, attempt)

    def crash(self) -> None:
        kept = self.world.random.randint(self.synced, len(self.log))
        del self.log[kept:]
        self.synced = kept
        self._waiting.clear()
        self.restart()


class World:
    def __init__(self, seed: int, kinds: Sequence[type[SimulatedMember]] = (NewMember,)) -> None:
        self.random = Random(seed)
        self.kinds = kinds
        self.faults = True
        self.members: list[SimulatedMember] = []
        self.rounds = 0  # requests that were answered
        self.fenced = 0
        self.changes_of_protocol = 0
        self.commits = 0
        self._offset = 0
        self._names = 0
        self._order = 0
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._group: object = None  # as it was when last looked at
        self.life = 0  # epochs begin anew after there was nobody in the group
        self._owners: dict[tuple[int, int, Slot], str] = {}  # who was told to have what in which epoch
        self._last_owners: dict[Slot, str] = {}  # who was told so last
        self.bench = Coordinator(self)

    # -- time and the network ------------------------------------------------------------------------------

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._order += 1
        heapq.heappush(self._queue, (self.bench.now_ms + delay_ms, self._order, action))

    def run(self, ms: int) -> None:
        end_ms = self.bench.now_ms + ms
        while True:
            event_ms = self._queue[0][0] if self._queue else end_ms + 1
            wake_ms = max(self.bench.next_wake_ms(), self.bench.now_ms)
            if min(event_ms, wake_ms) > end_ms:
                break
            if wake_ms <= event_ms:  # what it answers may be due before the next event
                self.bench.advance(wake_ms - self.bench.now_ms)
            else:
                self.bench.advance(event_ms - self.bench.now_ms)
                heapq.heappop(self._queue)[2]()
            self.check()
        self.bench.advance(end_ms - self.bench.now_ms)

    def travel(self, action: Callable[[], None]) -> None:
        """One way over the network."""
        if not self.faults:
            self.after(self.random.randint(0, 20), action)
        elif self.random.random() < 0.9:
            self.after(self.random.choice([1, 5, 50, 500, 8_000]), action)

    # -- what happens --------------------------------------------------------------------------------------

    def join(self) -> None:
        self._names += 1
        kind = self.random.choice(self.kinds)
        instance_id = self.random.choice([None, None, None, "one", "two"])
        if instance_id in [member.instance_id for member in self.members]:
            instance_id = None
        member = kind(self, f"m{self._names}", instance_id)
        self.members.append(member)
        member.start()

    def die(self) -> None:
        if self.members:
            self.members.pop(self.random.randrange(len(self.members))).alive = False

    def leave(self) -> None:
        if self.members:
            self.members.pop(self.random.randrange(len(self.members))).leave()

    def come_back_with_the_other_protocol(self) -> None:
        """A rolling upgrade or downgrade: the same static member, in another process."""
        static = [member for member in self.members if member.instance_id is not None]
        if not static:
            return
        old = self.random.choice(static)
        self.members.remove(old)
        old.alive = False
        self._names += 1
        new = self.random.choice(self.kinds)(self, f"m{self._names}", old.instance_id)
        self.members.append(new)
        new.start()

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
        events = [
            self.join,
            self.die,
            self.leave,
            self.come_back_with_the_other_protocol,
            self.bench.crash,
            self.change_topics,
        ]
        end_ms = self.bench.now_ms + ms
        while self.bench.now_ms < end_ms:
            self.random.choice(events)()
            if not self.members:
                self.join()
            self.run(self.random.randint(0, 10_000))

    # -- what must always hold -----------------------------------------------------------------------------

    def told(self, life: int, identity: str, epoch: int, slots: Slots) -> None:
        """An answer left that lets a member read these."""
        for slot in slots:
            owner = self._owners.setdefault((life, epoch, slot), identity)
            assert owner == identity, f"{slot} has two owners in {epoch}: {owner} and {identity}"
            self._last_owners[slot] = identity

    def commit(self, identity: str, member_id: str, epoch: int, slot: Slot) -> None:
        name = self.bench.topics.name(slot.topic_id)
        if name is None:
            return
        self._offset += 1
        code = self.bench.commit({(name, slot.partition): self._offset}, member_id, epoch)
        if code is ErrorCode.NONE:
            self.commits += 1
            assert self._last_owners[slot] == identity, "somebody else has it already"

    def check(self) -> None:
        """Who still has its place in the group shares no partition with another that has."""
        group = self.bench.machine.groups.get(GROUP)
        if type(group) is not type(self._group) and group is not None and self._group is not None:
            self.changes_of_protocol += bool(group.members)
        self._group = group
        if group is None or not group.members:
            self.life += 1
        if not isinstance(group, ConsumerGroup):
            return
        owners: dict[Slot, str] = {}
        for member in group.members.values():
            for slot in member.slots:
                assert owners.setdefault(slot, member.id) == member.id, slot
        assert owners == group.owners
        for client in self.members:
            known = group.members.get(client.id)
            if known is not None and client.owned_epoch == known.epoch:
                read = {slot for slot in client.owned if self.bench.topics.name(slot.topic_id)}
                assert read <= known.slots, client.id

    # -- what must come true -------------------------------------------------------------------------------

    def calm(self) -> None:
        self.faults = False
        self.run(CALM_MS)
        self.members = [member for member in self.members if member.alive]
        if not self.members:
            self.join()
            self.run(CALM_MS)
        group = self.bench.machine.groups[GROUP]
        assert set(group.members) == {member.id for member in self.members}
        assert group.state is GroupState.STABLE
        is_classic = all(isinstance(member, ClassicMember) for member in self.members)
        assert isinstance(group, ClassicGroup if is_classic else ConsumerGroup)
        wanted = {name for member in self.members for name in member.topics}
        topics = [self.bench.topics.find(name) for name in sorted(wanted)]
        slots = {Slot(topic.id, each) for topic in topics if topic for each in range(topic.partitions)}
        held = [slot for member in self.members for slot in member.owned]
        assert sorted(held) == sorted(slots), "every partition has one reader, and nothing else is read"
        epoch = group.epoch if isinstance(group, ConsumerGroup) else group.generation
        assert {member.epoch for member in self.members} == {epoch}
        assert committed(self.bench.machine) == committed(self.bench.replayed())
