"""Consumers of one group against a coordinator, on a network and a disk that misbehave. Everything by a seed.

Requests and answers are delayed, lost and late; consumers die and come back; the coordinator crashes, and
what its disk had not taken is gone. After each stretch of chaos comes calm, in which all must work out.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from random import Random
from typing import Any

from coordinator.bench import GROUP, Bench, committed, subscription
from ottla.coordinator.group_state import GroupState
from ottla.coordinator.outcome import Outcome
from ottla.model.errors import ErrorCode
from ottla.protocol.fields import Message
from ottla.protocol.messages.join_group import JoinGroupResponse
from ottla.protocol.messages.leave_group import MemberIdentity

PARTITIONS = 6
SESSION_MS = 10_000
REBALANCE_MS = 20_000
HEARTBEAT_MS = 3_000
REQUEST_TIMEOUT_MS = 5_000
CALM_MS = 3 * (SESSION_MS + REBALANCE_MS)
"""Late messages arrive for half of that, each may cost a rebalance, and the last one must end in time."""


START_AGAIN = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)


class Coordinator(Bench):
    """A bench whose disk takes its time: answers wait for the records behind them, or are lost with these."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.synced = 0  # records of the log that are safe
        self.waiting: dict[int, Callable[[Message], None]] = {}  # who waits for an answer
        self._replies = 0

    def reply(self, answer: Callable[[Message], None]) -> str:
        self._replies += 1
        self.waiting[self._replies] = answer
        return str(self._replies)

    def finish(self, outcome: Outcome) -> None:
        self.write(outcome.records)
        end = len(self.log)

        def answer() -> None:
            for name, response in outcome.answers:
                self.waiting.pop(int(str(name)))(response)

        if outcome.records or outcome.tells_the_log:
            self.when_synced(end, answer)
        else:
            answer()

    def when_synced(self, end: int, action: Callable[[], None]) -> None:
        machine = self.machine

        def attempt() -> None:
            if self.machine is machine:  # else it crashed
                self.synced = max(self.synced, end)
                action()

        self.world.after(self.world.random.randint(0, 20), attempt)

    def crash(self) -> None:
        kept = self.world.random.randint(self.synced, len(self.log))
        del self.log[kept:]
        self.synced = kept
        self.waiting.clear()
        self.restart()


class World:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.faults = False
        self.queue: list[tuple[int, int, Callable[[], None]]] = []
        self._order = 0
        self.coordinator = Coordinator(self)
        self.clients: list[Client] = []
        self.owners: dict[tuple[int, int], str] = {}  # who was told to have a partition in a generation
        self.generation_told = 0  # the latest that any member has an assignment of
        self.next_offset = 0
        self.acknowledged: dict[tuple[str, int], int] = {}
        self.accepted_commits = 0
        self.generations = 0

    # -- time and the network ------------------------------------------------------------------------------

    @property
    def now_ms(self) -> int:
        return self.coordinator.now_ms

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._order += 1
        heapq.heappush(self.queue, (self.now_ms + delay_ms, self._order, action))

    def run(self, ms: int) -> None:
        end_ms = self.now_ms + ms
        while True:
            event_ms = self.queue[0][0] if self.queue else end_ms + 1
            wake_ms = self.coordinator.next_wake_ms()
            if min(event_ms, wake_ms) > end_ms:
                break
            if wake_ms <= event_ms:  # what it answers may be due before the next event
                self.coordinator.advance(max(wake_ms - self.now_ms, 0))
            else:
                self.coordinator.advance(event_ms - self.now_ms)
                heapq.heappop(self.queue)[2]()
        self.coordinator.advance(end_ms - self.now_ms)

    def deliver(self, action: Callable[[], None]) -> None:
        """One way over the network."""
        if self.faults and self.random.random() < 0.05:
            return
        slow = self.faults and self.random.random() < 0.1
        self.after(self.random.randint(0, 15_000 if slow else 30), action)

    # -- chaos and calm ------------------------------------------------------------------------------------

    def chaos(self, ms: int) -> None:
        self.faults = True
        for _ in range(ms // 1_000):
            self.run(self.random.randint(1, 2_000))
            chance = self.random.random()
            alive = [client for client in self.clients if client.alive]
            if chance < 0.25 and len(alive) < 8:
                instance = self.random.choice([None, None, "one", "two", "three"])
                self.clients.append(Client(self, f"c{len(self.clients)}", instance))
            elif chance < 0.35 and alive:
                self.random.choice(alive).alive = False
            elif chance < 0.45 and alive:
                self.random.choice(alive).leave()
            elif chance < 0.48:
                self.coordinator.crash()
        self.faults = False

    def calm(self) -> None:
        self.run(CALM_MS)
        self.check_that_all_is_well()

    def check_that_all_is_well(self) -> None:
        group = self.coordinator.group()
        alive = [client for client in self.clients if client.alive]
        self.check_replay()
        if not alive:
            assert group is None or group.state is GroupState.EMPTY
            return
        assert group is not None
        assert group.state is GroupState.STABLE
        assert {client.member_id for client in alive} == set(group.members)
        assert {client.generation for client in alive} == {group.generation}
        shared = sorted(index for client in alive for index in client.assignment or ())
        assert shared == list(range(PARTITIONS))

    def check_replay(self) -> None:
        """The log alone gives the same state."""
        live, replayed = self.coordinator.machine, self.coordinator.replayed()
        assert committed(live) == committed(replayed)
        for place, offset in self.acknowledged.items():
            assert committed(live)[place] >= offset
        group, again = live.groups.get(GROUP), replayed.groups.get(GROUP)
        if group is None or group.state not in (GroupState.STABLE, GroupState.EMPTY):
            return
        assert again is not None or (group.generation == 0 and not committed(live))
        if again is not None:
            assert durable(group) == durable(again)

    # -- what must always hold -----------------------------------------------------------------------------

    def assigned(self, client: Client) -> None:
        self.generation_told = max(self.generation_told, client.generation)
        for index in client.assignment or ():
            owner = self.owners.setdefault((client.generation, index), client.identity)
            assert owner == client.identity, f"partition {index} has two owners in {client.generation}"

    def commit(self, client: Client, index: int) -> ErrorCode:
        self.next_offset += 1
        offset, place = self.next_offset, ("t", index)
        told = self.generation_told
        code = self.coordinator.commit({place: offset}, client.member_id, client.generation)
        if code is ErrorCode.NONE:
            assert client.generation >= told, "a commit of an old generation was accepted"
            self.accepted_commits += 1
            self.coordinator.when_synced(
                len(self.coordinator.log), lambda: self.acknowledged.update({place: offset})
            )
        return code


class Client:
    """A consumer as real ones are: one request at a time, retries, heartbeats, and a leader that assigns."""

    def __init__(self, world: World, name: str, instance_id: str | None) -> None:
        self.world = world
        self.name = name
        self.instance_id = instance_id
        self.alive = True
        self.member_id = ""
        self.generation = -1
        self.assignment: tuple[int, ...] | None = None
        self._request = 0  # the current one; answers to earlier ones are late
        self.join()

    @property
    def identity(self) -> str:
        return self.instance_id or self.member_id

    def _ask(
        self,
        ask: Callable[[Callable[[Any], None]], None],
        take: Callable[[Any], None],
        timeout_ms: int = REQUEST_TIMEOUT_MS,
    ) -> None:
        self._request += 1
        number = self._request

        def is_current() -> bool:
            return self.alive and number == self._request

        def answered(response: Any) -> None:
            self.world.deliver(lambda: take(response) if is_current() else None)

        self.world.deliver(lambda: ask(answered))  # also of one that has died meanwhile: a late message
        self.world.after(timeout_ms, lambda: self.join() if is_current() else None)

    # -- joining -------------------------------------------------------------------------------------------

    def join(self) -> None:
        if not self.alive:
            return
        self.assignment = None
        coordinator, member_id = self.world.coordinator, self.member_id

        def ask(answer: Callable[[Message], None]) -> None:
            coordinator.join(
                coordinator.reply(answer),
                member_id,
                protocols={"range": subscription("t")},
                instance_id=self.instance_id,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=REBALANCE_MS,
            )

        self._ask(ask, self._joined, REBALANCE_MS + REQUEST_TIMEOUT_MS)

    def _joined(self, response: JoinGroupResponse) -> None:
        match response.error_code:
            case ErrorCode.NONE:
                self.member_id, self.generation = response.member_id, response.generation_id
                self.world.generations = max(self.world.generations, self.generation)
                self._sync(response)
            case ErrorCode.FENCED_INSTANCE_ID:
                self.alive = False
            case ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = response.member_id
                self.join()
            case code:
                self._failed(ErrorCode(code))

    def _failed(self, code: ErrorCode) -> None:
        if code is ErrorCode.FENCED_INSTANCE_ID:
            self.alive = False
        if code in START_AGAIN:
            self.member_id, self.generation = "", -1
        self.join()

    def _sync(self, joined: JoinGroupResponse) -> None:
        coordinator, member_id, generation = self.world.coordinator, self.member_id, self.generation
        assignments = {}
        if joined.members and not joined.skip_assignment:
            ids = [member.member_id for member in joined.members]
            for number, each in enumerate(ids):
                assignments[each] = bytes(range(PARTITIONS)[number :: len(ids)])

        def ask(answer: Callable[[Message], None]) -> None:
            reply = coordinator.reply(answer)
            coordinator.sync(reply, member_id, generation, assignments, instance_id=self.instance_id)

        self._ask(ask, self._synced, REBALANCE_MS + REQUEST_TIMEOUT_MS)

    def _synced(self, response: Any) -> None:
        if response.error_code != ErrorCode.NONE:
            self._failed(ErrorCode(response.error_code))
            return
        self.assignment = tuple(response.assignment)
        self.world.assigned(self)
        self._heartbeat_soon()

    # -- living --------------------------------------------------------------------------------------------

    def _heartbeat_soon(self) -> None:
        number = self._request
        self.world.after(
            HEARTBEAT_MS, lambda: self._heartbeat() if self.alive and number == self._request else None
        )

    def _heartbeat(self) -> None:
        world, member_id, generation = self.world, self.member_id, self.generation
        is_commit = bool(self.assignment) and world.random.random() < 0.5

        def ask(answer: Callable[[ErrorCode], None]) -> None:
            if is_commit and self.assignment:
                answer(world.commit(self, world.random.choice(self.assignment)))
            else:
                answer(world.coordinator.heartbeat(member_id, generation, self.instance_id))

        self._ask(ask, self._alive)

    def _alive(self, code: ErrorCode) -> None:
        if code is ErrorCode.NONE:
            self._heartbeat_soon()
        else:
            self._failed(code)

    def leave(self) -> None:
        coordinator, identity = self.world.coordinator, MemberIdentity(self.member_id, self.instance_id)
        self.world.deliver(lambda: coordinator.leave(coordinator.reply(lambda _: None), identity))
        self.alive = False


def durable(group: Any) -> object:
    return (
        group.state,
        group.generation,
        group.protocol_type,
        group.protocol_name,
        group.leader_id if group.members else None,
        group.static_ids,
        [
            (each.id, each.instance_id, each.client_id, each.session_timeout_ms, each.assignment)
            for each in group.members.values()
        ],
    )
