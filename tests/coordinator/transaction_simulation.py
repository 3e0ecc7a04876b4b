"""Transactions in a world where messages are lost, late, doubled and overtaken, and everybody crashes.

The coordinator is the real machine, restarted from its records at random. A partition is the real memory of
producers over a list of batches. Clients are as their libraries are: one request at a time, repeated until it
is answered; one that crashes leaves its messages on their way, and its successor begins under the same id.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from ottla.coordinator.state_log import StateRecord
from ottla.coordinator.transaction import Transaction
from ottla.coordinator.transaction_machine import (
    EPOCH_PER_TRANSACTION,
    ProducerIdNeeded,
    TransactionMachine,
)
from ottla.coordinator.transaction_records import transaction_record
from ottla.log.producer_state import ProducerStates
from ottla.log.transaction_markers import build_marker
from ottla.model.errors import ErrorCode, Refused
from ottla.model.topics import TopicPartition
from ottla.records.batch import TRANSACTIONAL, BatchHeader, read_header
from ottla.records.content import Record, build_batch

_RETRY_MS = 40
_TIMEOUT_MS = 1_500


class World:
    """Time and the network: what is sent arrives later, twice, or never."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now_ms = 0
        self.is_calm = False  # at the end nothing is lost any more
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now_ms + delay_ms, next(self._numbers), action))

    def send(self, action: Callable[[], None]) -> None:
        if self.is_calm:
            self.later(1, action)
            return
        if self.random.random() < 0.05:
            return
        for _ in range(2 if self.random.random() < 0.05 else 1):
            delay_ms = self.random.choice((1, 2, 5, 20, 60, 400))
            self.later(delay_ms, action)

    def run_until(self, end_ms: int) -> None:
        while self._events and self._events[0][0] <= end_ms:
            self.now_ms, _, action = heapq.heappop(self._events)
            action()
        self.now_ms = end_ms


@dataclass
class Batch:
    header: BatchHeader
    value: str | None  # None: a marker
    is_abort: bool = False


class Partition:
    def __init__(self, place: TopicPartition) -> None:
        self.place = place
        self.producers = ProducerStates()
        self.batches: list[Batch] = []

    def append(self, value: str, producer: tuple[int, int], sequence: int) -> None:
        """Refused as the produce handler would; a repeated batch is taken as done."""
        made = build_batch(
            [Record(0, 0, None, value.encode())],
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=sequence,
            flags=TRANSACTIONAL,
        )
        header = read_header(made)
        if self.producers.check(header) is None:
            self.producers.apply(header, len(self.batches), 0)
            self.batches.append(Batch(header, value))

    def end(self, producer: tuple[int, int], is_commit: bool) -> None:
        self.producers.check_marker(*producer, coordinator_epoch=0)
        header = build_marker(*producer, is_commit, 0, 0).header._replace(base_offset=len(self.batches))
        self.producers.apply_marker(header, 0, is_abort=not is_commit)
        self.batches.append(Batch(header, None, is_abort=not is_commit))

    def committed(self) -> list[str]:
        """What read_committed keeps, in order; and that nothing is left open."""
        assert self.producers.first_unstable_offset(len(self.batches)) is None, f"{self.place} hangs"
        kept: dict[int, str] = {}
        since: dict[int, list[int]] = {}
        for offset, batch in enumerate(self.batches):
            producer_id = batch.header.producer_id
            if batch.value is not None:
                kept[offset] = batch.value
                since.setdefault(producer_id, []).append(offset)
            else:
                ended = since.pop(producer_id, [])
                if batch.is_abort:
                    for dropped in ended:
                        del kept[dropped]
        return list(kept.values())


class Coordinator:
    """The machine, its log, and markers that are written when the network likes."""

    def __init__(self, world: World, partitions: dict[TopicPartition, Partition]) -> None:
        self._world = world
        self._partitions = partitions
        self._records: list[StateRecord] = []
        self._later: list[StateRecord] = []  # applied, and in the log with the next one
        self._next_producer_id = 1_000
        self._life = 0  # what began in an earlier one is forgotten
        self.machine = TransactionMachine()

    def restart(self) -> None:
        """Everything that is not in the log is lost; what was decided is carried out."""
        self._life += 1
        self._later.clear()
        self.machine = TransactionMachine()
        for record in self._records:
            self.machine.apply(record)
        for name, known in self.machine.transactions.items():
            if known.state.is_ending:
                self._mark(name, known, sorted(known.partitions))

    def begin(self, name: str) -> Transaction:
        return self._decide(
            name, lambda new_id: self.machine.begin(name, _TIMEOUT_MS, None, new_id, self._world.now_ms)
        )

    def add(self, name: str, producer: tuple[int, int], place: TopicPartition) -> None:
        decided = self.machine.add(name, *producer, [place], self._world.now_ms)
        if decided is not None:
            self._write(name, decided)

    def end(self, name: str, producer: tuple[int, int], is_commit: bool) -> Transaction:
        decided = self._decide(
            name,
            lambda new_id: (
                self.machine.end(
                    name, *producer, is_commit, EPOCH_PER_TRANSACTION, new_id, self._world.now_ms
                )
                or self.machine.transactions[name]
            ),
        )
        if decided.state.is_ending:
            raise Refused(ErrorCode.CONCURRENT_TRANSACTIONS)  # asked again until it is complete
        return decided

    def abort_overdue(self) -> None:
        for name, known in list(self.machine.transactions.items()):
            if known.deadline_ms is not None and known.deadline_ms <= self._world.now_ms:
                self._write(name, self.machine.fence(name, self._world.now_ms))

    def _decide(self, name: str, decision: Callable[[int | None], Transaction]) -> Transaction:
        try:
            decided = decision(None)
        except ProducerIdNeeded:
            self._next_producer_id += 1
            decided = decision(self._next_producer_id)
        if decided is not self.machine.transactions.get(name):
            self._write(name, decided)
        return decided

    def _write(self, name: str, decided: Transaction) -> None:
        self._write_later(name, decided)
        self._records += self._later
        self._later.clear()
        if decided.state.is_ending:
            self._mark(name, decided, sorted(decided.partitions))

    def _write_later(self, name: str, decided: Transaction) -> None:
        record = transaction_record(name, decided)
        self._later.append(record)
        self.machine.apply(record)
        self.machine.remember_last_epoch(name, decided)

    def _mark(self, name: str, ending: Transaction, places: list[TopicPartition]) -> None:
        """One partition after the other, some time later each; the last one completes the transaction."""
        life = self._life

        def step() -> None:
            if life != self._life:
                return
            if not places:
                self._write_later(name, self.machine.complete(name, self._world.now_ms))
                return
            place = places.pop(0)
            self._partitions[place].end((ending.producer_id, ending.producer_epoch), ending.is_commit)
            self._world.later(self._world.random.choice((1, 3, 50)), step)

        self._world.later(self._world.random.choice((1, 10)), step)


@dataclass
class Outcome:
    """One transaction as its client knows it."""

    values: list[tuple[TopicPartition, str]] = field(default_factory=list)
    result: str = "unknown"  # or committed, aborted


class Client:
    """One instance of an application. What it sends carries its own number; answers to others are ignored."""

    def __init__(self, world: World, cluster: Cluster, name: str, outcomes: list[Outcome]) -> None:
        self._world = world
        self._cluster = cluster
        self._name = name
        self._outcomes = outcomes
        self._instance = cluster.new_instance()
        self._is_dead = False
        self._request = 0  # the one that is waited for
        self._producer = (-1, -1)
        self._sequences: dict[TopicPartition, int] = {}
        self._numbers = itertools.count()
        self.begin()

    def crash(self) -> None:
        self._is_dead = True

    def _ask(self, action: Callable[[], object], then: Callable[[object], None]) -> None:
        """Sends until it is answered; `then` gets the answer or the refusal."""
        self._request += 1
        request = self._request

        def attempt() -> None:
            if self._is_dead or request != self._request:
                return
            self._world.send(arrive)
            self._world.later(_RETRY_MS, attempt)

        def arrive() -> None:
            try:
                answer: object = action()
            except Refused as refusal:
                answer = refusal
            self._world.send(lambda: answered(answer))

        def answered(answer: object) -> None:
            if self._is_dead or request != self._request:
                return
            if isinstance(answer, Refused) and answer.code is ErrorCode.CONCURRENT_TRANSACTIONS:
                return  # the next attempt
            self._request += 1
            then(answer)

        attempt()

    def begin(self) -> None:
        def begun(answer: object) -> None:
            assert isinstance(answer, Transaction), answer
            if answer.state.is_ending:  # the predecessor's transaction is aborted first
                self._world.later(_RETRY_MS, self.begin)
                return
            self._take(answer)
            self._transaction()

        self._ask(lambda: self._cluster.coordinator.begin(self._name), begun)

    def _take(self, known: Transaction) -> None:
        self._producer = known.owner
        self._sequences.clear()

    def _transaction(self) -> None:
        if self._cluster.is_closing:
            self.crash()
            return
        outcome = Outcome()
        self._outcomes.append(outcome)
        self._write(outcome, self._world.random.randint(1, 4))

    def _write(self, outcome: Outcome, left: int) -> None:
        if not left:
            self._end(outcome, is_commit=self._world.random.random() < 0.7)
            return
        place = self._world.random.choice(list(self._cluster.partitions))
        value = f"{self._name}/{self._instance}/{next(self._numbers)}"
        producer, sequence = self._producer, self._sequences.get(place, 0)
        self._sequences[place] = sequence + 1
        outcome.values.append((place, value))

        def written(answer: object) -> None:
            if answer is None:
                self._write(outcome, left - 1)
            else:
                assert isinstance(answer, Refused)
                self._end(outcome, is_commit=False)

        self._ask(lambda: self._cluster.produce(self._name, producer, place, value, sequence), written)

    def _end(self, outcome: Outcome, is_commit: bool) -> None:
        producer = self._producer

        def ended(answer: object) -> None:
            if isinstance(answer, Transaction):
                outcome.result = "committed" if is_commit else "aborted"
                self._take(answer)
                self._transaction()
            elif is_commit:  # it took too long and was aborted
                self._end(outcome, is_commit=False)
            else:
                self.begin()  # fenced: as an application that starts its producer anew

        self._ask(lambda: self._cluster.coordinator.end(self._name, producer, is_commit), ended)


class Cluster:
    def __init__(self, world: World) -> None:
        self._world = world
        places = [TopicPartition("orders", index) for index in range(3)]
        self.partitions = {place: Partition(place) for place in places}
        self.coordinator = Coordinator(world, self.partitions)
        self.is_closing = False
        self._instances = itertools.count()

    def new_instance(self) -> int:
        return next(self._instances)

    def produce(
        self, name: str, producer: tuple[int, int], place: TopicPartition, value: str, sequence: int
    ) -> None:
        """As `server/transactional_produce` does for Produce 12."""
        partition = self.partitions[place]
        if not partition.producers.is_in_transaction(*producer):
            self.coordinator.add(name, producer, place)
        partition.append(value, producer, sequence)


def run_transactions(seed: int, duration_ms: int) -> None:
    world = World(seed)
    cluster = Cluster(world)
    outcomes: list[Outcome] = []
    names = ["payments", "orders", "mail"]
    clients = {name: Client(world, cluster, name, outcomes) for name in names}
    while world.now_ms < duration_ms:
        world.run_until(world.now_ms + world.random.randrange(1, 400))
        cluster.coordinator.abort_overdue()
        if world.random.random() < 0.1:
            cluster.coordinator.restart()
        if world.random.random() < 0.15:
            name = world.random.choice(names)
            clients[name].crash()
            clients[name] = Client(world, cluster, name, outcomes)
    _come_to_rest(world, cluster)
    _check(cluster, outcomes)


def _come_to_rest(world: World, cluster: Cluster) -> None:
    world.is_calm = cluster.is_closing = True
    for _ in range(20):
        world.run_until(world.now_ms + _TIMEOUT_MS)
        cluster.coordinator.abort_overdue()


def _check(cluster: Cluster, outcomes: list[Outcome]) -> None:
    """No aborted read, no torn transaction, nothing twice, nothing that hangs, each client's order kept."""
    seen = {place: partition.committed() for place, partition in cluster.partitions.items()}
    for values in seen.values():
        assert len(values) == len(set(values)), "a record was doubled"
    for outcome in outcomes:
        found = [value in seen[place] for place, value in outcome.values]
        if outcome.result == "committed":
            assert all(found), "a committed record is missing"
        elif outcome.result == "aborted":
            assert not any(found), "an aborted record is read"
        else:
            assert not any(found) or all(found), "a transaction is torn"
    for place, values in seen.items():
        written = [value for outcome in outcomes for where, value in outcome.values if where == place]
        for name in {value.rpartition("/")[0] for value in values}:
            mine = [value for value in written if value.startswith(name + "/") and value in set(values)]
            assert [value for value in values if value.startswith(name + "/")] == mine, "out of order"
