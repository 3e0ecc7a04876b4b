"""The durable decisions of sinks: which run of a query may write, and which batch it has decided to commit.

A compacted topic of its own keeps one state per query: the run that has claimed it, the runs before, and the
last decided batch with its transactions. It is only written by a transactional producer named after the
query, after reading everything that is there: whoever was about to write is fenced by then, and sees the
newer claim when it tries again. So a claim and a decision are in one order for everybody:

- a task claims the query for its run before it looks for a decision, and before it touches its own
  transaction;
- a driver decides only while the claim is its own run's. A driver that wakes up late finds another's.

A write that cannot come again has one run and needs no claim. Its last step is to be forgotten, whether it
was committed or given up: a task of it that comes later still finds that.

That all transactions of a batch are ended is noted beside it, without a transaction: once true, it stays
true.
"""

from __future__ import annotations

import contextlib
import json
import logging
import random
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ottla.client.admin import Admin
from ottla.client.admin_values import OpenTransaction
from ottla.client.consumer import Consumer
from ottla.client.errors import (
    BrokerError,
    ClientError,
    ProducerFenced,
    TopicExists,
    TransactionFailed,
    UnknownTopic,
)
from ottla.client.producer import Producer
from ottla.model.errors import ErrorCode
from ottla.model.topics import TopicPartition
from ottla.spark.connections import consumer_of
from ottla.spark.errors import JobError, Superseded
from ottla.spark.transactional_ids import decision_id

TOPIC = "__ottla_spark_batches"
_PARTITIONS = 8  # queries that decide at the same moment wait for each other within one
_REPLICAS_MAX = 3
_CONFIGS = {"cleanup.policy": "compact", "segment.bytes": str(4 * 2**20), "min.cleanable.dirty.ratio": "0.1"}
_STATE, _ENDED = "state", "ended"
_PAST_RUNS_MAX = 16
_DECISION_TIMEOUT_MS = 30_000  # a driver that dies while it decides holds up others so long
_STABLE_SECONDS_MAX = 90.0
_CLAIMS_MAX = 20
_FORGOTTEN_MAX = 10_000  # a task that is later than so many writes is not recognised
_WAITING_SECONDS = 1.0
_LOOKING_SECONDS = 0.03

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class State:
    """Of one query."""

    run: str  # whose tasks and driver may write
    past: tuple[str, ...] = ()  # runs that it has taken over from, the last ones
    batch: int = -1  # the last that was decided
    transactions: tuple[OpenTransaction, ...] = ()  # of that batch
    comes_again: bool = True  # after a crash, in another run; else it is forgotten when it is over


_scans: dict[tuple[str, int], _Scan] = {}
"""By bootstrap and partition: this process reads on where it was."""


@dataclass
class _Scan:
    next_offset: int = 0
    states: dict[str, State] = field(default_factory=dict)
    ended: dict[str, int] = field(default_factory=dict)
    forgotten: dict[str, None] = field(default_factory=dict)  # in their order


class Ledger:
    def __init__(self, admin: Admin, bootstrap: str, settings: Mapping[str, str]) -> None:
        self._admin = admin
        self._bootstrap = bootstrap
        self._settings = dict(settings)  # those that every client has
        self._partitions = self._partition_count()

    # -- what is known -------------------------------------------------------------------------------------

    def state(self, query: str) -> State | None:
        return self._read(self._partition(query)).states.get(query)

    def ended(self, query: str) -> int:
        """The last batch of which every transaction is known to be ended; -1: none."""
        return self._read(self._partition(query)).ended.get(query, -1)

    def is_ended(self, query: str, batch: int) -> bool:
        """Whether every transaction of the batch, if it was decided, is known to be ended."""
        return self.ended(query) >= batch or self.is_forgotten(query)

    def is_forgotten(self, query: str) -> bool:
        return query in self._read(self._partition(query)).forgotten

    def unfinished(self) -> list[tuple[str, State]]:
        """Queries whose last decided batch is not known to be ended."""
        found = []
        for partition in range(self._partitions):
            scan = self._read(partition)
            found += [
                (query, state)
                for query, state in scan.states.items()
                if state.batch > scan.ended.get(query, -1)
            ]
        return found

    # -- changes -------------------------------------------------------------------------------------------

    def claim(self, query: str, run: str, *, waits: bool = False) -> State:
        """Makes `run` the one that may write. Raises Superseded where a later run has claimed it before.

        One that `waits` gives another task of the run a moment to do it: each try fences all the others.
        """
        deadline = time.monotonic() + (_WAITING_SECONDS if waits else 0.0)
        losses = 0
        while losses < _CLAIMS_MAX:
            state = self._claimed(query, run)
            if state is not None:
                return state
            if time.monotonic() < deadline:
                time.sleep(_LOOKING_SECONDS)
                continue
            try:
                return self._try_claim(query, run)
            except ClientError as error:
                if not _is_lost_race(error):
                    raise
                losses += 1
                time.sleep(random.uniform(0, _LOOKING_SECONDS * 2 ** min(losses, 6)))
        raise JobError(f"query {query} is claimed by several runs again and again: stop all but one of them")

    def _try_claim(self, query: str, run: str) -> State:
        with self._fencing_producer(query) as producer:
            state = self._claimed(query, run)
            if state is not None:
                return state
            before = self.state(query)
            if before is None:
                claimed = State(run)
            else:
                claimed = replace(before, run=run, past=(*before.past, before.run)[-_PAST_RUNS_MAX:])
            self._write(producer, query, claimed)
            return claimed

    def _claimed(self, query: str, run: str) -> State | None:
        state = self.state(query)
        if state is None or state.run == run:
            return state
        if run in state.past:
            raise _superseded(query, run)
        return None

    def decide(
        self,
        query: str,
        run: str,
        batch: int,
        transactions: tuple[OpenTransaction, ...],
        *,
        comes_again: bool = True,
    ) -> State:
        """The decision for the batch: this one, or the one that was made before."""
        try:
            with self._fencing_producer(query) as producer:
                state = self.state(query)
                if state is None and not comes_again:
                    state = State(run, comes_again=False)
                if state is None or state.run != run:
                    raise _superseded(query, run)
                if state.batch >= batch:
                    return state
                decided = replace(state, batch=batch, transactions=transactions)
                self._write(producer, query, decided)
                return decided
        except ClientError as error:
            if _is_lost_race(error):
                raise _superseded(query, run) from None
            raise

    def note_ended(self, query: str, batch: int) -> None:
        with Producer(self._bootstrap, **self._settings) as producer:
            value = json.dumps({"batch": batch}).encode()
            key = _key(_ENDED, query)
            producer.send(TOPIC, value, key, partition=self._partition(query)).result()

    def forget(self, query: str) -> None:
        """Of a query that will not come again, once its batch is ended or given up."""
        with Producer(self._bootstrap, **self._settings) as producer:
            for kind in (_STATE, _ENDED):
                producer.send(TOPIC, None, _key(kind, query), partition=self._partition(query))

    # -- the topic -----------------------------------------------------------------------------------------

    def _fencing_producer(self, query: str) -> Producer:
        producer = Producer(
            self._bootstrap,
            transactional_id=decision_id(query),
            transaction_timeout_ms=_DECISION_TIMEOUT_MS,
            **self._settings,
        )
        try:
            producer.init_transactions()
        except BaseException:
            producer.close(0)
            raise
        return producer

    def _write(self, producer: Producer, query: str, state: State) -> None:
        key, value = _key(_STATE, query), json.dumps(_encoded(state)).encode()
        with producer.transaction():
            producer.send(TOPIC, value, key, partition=self._partition(query))

    def _partition(self, query: str) -> int:
        return zlib.crc32(query.encode()) % self._partitions

    def _partition_count(self) -> int:
        try:
            return len(self._admin.topic(TOPIC).partitions)
        except UnknownTopic:
            pass
        replicas = min(_REPLICAS_MAX, len(self._admin.cluster().brokers))
        with contextlib.suppress(TopicExists):
            self._admin.create_topic(
                TOPIC, partitions=_PARTITIONS, replication_factor=replicas, configs=_CONFIGS
            )
        return len(self._admin.topic(TOPIC).partitions)

    def _read(self, partition: int) -> _Scan:
        """Everything that was written up to now."""
        target = TopicPartition(TOPIC, partition)
        end_offset = self._stable_end(target)
        scan = _scans.get((self._bootstrap, partition))
        if scan is None or scan.next_offset > end_offset:
            scan = _scans[self._bootstrap, partition] = _Scan()
        if scan.next_offset < end_offset:
            consumer = consumer_of(
                self._bootstrap,
                {**self._settings, "isolation.level": "read_committed", "auto.offset.reset": "earliest"},
            )
            self._read_on(consumer, target, scan, end_offset)
        return scan

    def _stable_end(self, target: TopicPartition) -> int:
        """The end of the log once no transaction is open before it: what is undecided might be a decision."""
        end_offset = self._admin.latest_offsets([target])[target]
        deadline = time.monotonic() + _STABLE_SECONDS_MAX
        while self._admin.latest_offsets([target], read_committed=True)[target] < end_offset:
            if time.monotonic() > deadline:
                raise JobError(
                    f"a transaction hangs in {target}, so that no decision can be read: "
                    f"ottla txn hanging {target.topic} shows it"
                )
            time.sleep(0.01)
        return end_offset

    def _read_on(self, consumer: Consumer, target: TopicPartition, scan: _Scan, end_offset: int) -> None:
        consumer.assign({target: scan.next_offset}, {target: end_offset})
        while consumer.position(target) < end_offset:
            for record in consumer.poll(1.0):
                if record.key is not None:
                    _take(scan, record.key.decode(), record.value)
        scan.next_offset = end_offset
        consumer.assign(())


def _take(scan: _Scan, key: str, value: bytes | None) -> None:
    kind, _, query = key.partition(":")
    if value is None and kind == _STATE:
        scan.states.pop(query, None)
        scan.forgotten[query] = None
        if len(scan.forgotten) > _FORGOTTEN_MAX:
            del scan.forgotten[next(iter(scan.forgotten))]
    elif value is None:
        scan.ended.pop(query, None)
    elif kind == _STATE:
        scan.states[query] = _decoded(value)
    elif kind == _ENDED:
        scan.ended[query] = max(scan.ended.get(query, -1), int(json.loads(value)["batch"]))
    else:
        log.warning("%s holds a record of somebody else, with the key %r", TOPIC, key)


def _key(kind: str, query: str) -> bytes:
    return f"{kind}:{query}".encode()


def _encoded(state: State) -> dict[str, object]:
    return {
        "run": state.run,
        "past": state.past,
        "batch": state.batch,
        "comes_again": state.comes_again,
        "transactions": [
            [each.transactional_id, each.producer_id, each.producer_epoch] for each in state.transactions
        ],
    }


def _decoded(value: bytes) -> State:
    written = json.loads(value)
    transactions = tuple(OpenTransaction(*each) for each in written["transactions"])
    return State(
        written["run"], tuple(written["past"]), written["batch"], transactions, written["comes_again"]
    )


def _is_lost_race(error: ClientError) -> bool:
    """Whether another producer with the same transactional id has come between."""
    if isinstance(error, TransactionFailed):
        return _is_lost_race(error.cause)
    return isinstance(error, ProducerFenced) or (
        isinstance(error, BrokerError) and error.code is ErrorCode.INVALID_TXN_STATE
    )


def _superseded(query: str, run: str) -> Superseded:
    return Superseded(
        f"run {run} of query {query} has been taken over by a later one, and must not write any more. If "
        "both were started on purpose, give each a checkpoint location of its own"
    )
