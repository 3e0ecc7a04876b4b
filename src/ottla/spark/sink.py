"""Topics as a Spark sink: exactly once through transactions, or at least once without them.

Each task attempt writes under a transactional id of its own and leaves its transaction open; nothing is
visible then. The driver makes one durable decision for the batch (`ledger`) and ends all of its transactions
in one burst. A batch that comes again after a crash is recognised by the decision: its tasks write nothing,
and the driver ends what is still open. Transactional ids are reused from batch to batch, and a batch is
ended before the next one opens any: so no id is ever initialised whose transaction was decided and not
ended.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from ottla.client.admin import Admin
from ottla.client.admin_values import OpenTransaction
from ottla.client.errors import BrokerUnreachable, ClientError
from ottla.client.producer import Producer
from ottla.client.rows_delivery import RowsFuture
from ottla.spark.connections import admin_of, common_settings
from ottla.spark.errors import InvalidOption, JobError, LostTransaction, Superseded, Undecidable
from ottla.spark.ledger import Ledger, State
from ottla.spark.options import WriteOptions
from ottla.spark.rows import RowShape

if TYPE_CHECKING:
    from pyarrow import RecordBatch

_TRANSACTION_TIMEOUT_MS = 15 * 60_000  # the most that brokers allow unless told otherwise
_SENDS_UNDER_WAY_MAX = 16
_CONNECTING_SECONDS_MAX = 20.0
_ENDING_SECONDS_MAX = 300.0  # a broker may restart meanwhile

log = logging.getLogger(__name__)


@dataclass
class Written(WriterCommitMessage):
    """What one task has done; travels to the driver."""

    query: str
    run: str
    transaction: OpenTransaction | None  # None: it wrote nothing
    skipped: bool  # the batch had been decided before


@dataclass(frozen=True)
class Batch:
    """What a task works for."""

    query: str  # outlives restarts
    run: str  # does not
    number: int


class _Sink:
    """What the batch and the streaming writer share."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        self._options = options
        self._shape = RowShape.of(
            [(field.name, field.dataType.simpleString()) for field in schema.fields], options.topic
        )

    # -- in a task -----------------------------------------------------------------------------------------

    def _write(self, rows: Iterator[RecordBatch], batch: Batch) -> Written:
        if not self._options.exactly_once:
            self._deliver(rows)
            return Written(batch.query, batch.run, None, skipped=False)
        admin = self._admin()
        ledger = self._ledger(admin)
        state = ledger.claim(batch.query, batch.run, waits=_task().partitionId() > 0)
        decided_before = state.batch >= batch.number
        if not decided_before and state.batch > ledger.ended(batch.query):
            raise JobError(
                f"batch {state.batch} of query {batch.query} was decided and is not ended, but batch "
                f"{batch.number} begins: the checkpoint does not belong to this query's last run"
            )
        if decided_before:
            for _ in rows:
                pass
            return Written(batch.query, batch.run, None, skipped=True)
        return Written(batch.query, batch.run, self._write_openly(rows, batch.query), skipped=False)

    def _deliver(self, rows: Iterator[RecordBatch]) -> None:
        """Without a transaction: every row is acknowledged, or this raises."""
        with Producer(self._options.bootstrap, **self._options.client) as producer:
            under_way: deque[RowsFuture] = deque()
            for each in rows:
                under_way.append(self._shape.send(producer, each))
                if len(under_way) > _SENDS_UNDER_WAY_MAX:
                    under_way.popleft().result()
            for sent in under_way:
                sent.result()

    def _write_openly(self, rows: Iterator[RecordBatch], query: str) -> OpenTransaction | None:
        """Everything delivered, in a transaction that is left open; closing the producer aborts it."""
        first = next((each for each in rows if each.num_rows), None)
        if first is None:
            return None
        settings = {"transaction.timeout.ms": str(_TRANSACTION_TIMEOUT_MS), **self._options.client}
        with Producer(
            self._options.bootstrap, transactional_id=_transactional_id(query), **settings
        ) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            self._shape.send(producer, first)
            for each in rows:
                self._shape.send(producer, each)
            return producer.detach_transaction()

    # -- in the driver -------------------------------------------------------------------------------------

    def _commit(self, messages: Sequence[WriterCommitMessage | None], batch: int) -> None:
        done = [each for each in messages if isinstance(each, Written)]
        if not done or not self._options.exactly_once:
            return
        query, run = done[0].query, done[0].run
        opened = tuple(each.transaction for each in done if each.transaction is not None)
        admin = self._admin()
        ledger = self._ledger(admin)
        if any(each.skipped for each in done):
            state = ledger.state(query)
            if state is None or state.batch < batch or opened:
                raise JobError(f"batch {batch} of query {query} was decided while it was written again")
        elif not opened:
            return
        else:
            _check_open(admin, opened, batch)
            state = ledger.decide(query, run, batch, opened)
            if state.transactions != opened:
                raise Superseded(f"batch {batch} of query {query} was decided by another run")
        if state.batch == batch and ledger.ended(query) < batch:
            end_decided(admin, query, state)
            ledger.note_ended(query, batch)
        _drop_leftovers(admin, query)

    def _abort(self, messages: Sequence[WriterCommitMessage | None], batch: int) -> None:
        """Spark also calls this when `commit` has failed: what is decided must stay as it is."""
        done = [each for each in messages if isinstance(each, Written)]
        if not done or not self._options.exactly_once:
            return
        opened = [each.transaction for each in done if each.transaction is not None]
        admin = self._admin()
        query = done[0].query
        state = self._ledger(admin).state(query)
        if state is not None and state.batch >= batch:
            return
        for transaction, error in admin.end_transactions(opened, commit=False).items():
            if error is not None:
                log.warning("%s could not be aborted: %s", transaction.transactional_id, error)
        _drop_leftovers(admin, query)

    def _admin(self) -> Admin:
        """Waits for a broker that is restarting: a decided batch should not have to come again for it."""
        admin = admin_of(self._options.bootstrap, self._options.client)
        deadline = time.monotonic() + _CONNECTING_SECONDS_MAX
        while True:
            try:
                admin.cluster()
                return admin
            except BrokerUnreachable:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def _ledger(self, admin: Admin) -> Ledger:
        return Ledger(admin, self._options.bootstrap, common_settings(self._options.client))


class StreamSink(_Sink, DataSourceStreamArrowWriter):
    def write(self, iterator: Iterator[RecordBatch]) -> WriterCommitMessage:
        query, run, number = _streaming_batch()
        return self._write(iterator, Batch(query, run, number))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self._commit(messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self._abort(messages, batchId)


class TopicSink(_Sink, DataSourceArrowWriter):
    """A batch write is a query of one batch. With a `writeId` it can be repeated: it is then done once."""

    def __init__(self, options: WriteOptions, schema: StructType, *, overwrite: bool) -> None:
        super().__init__(options, schema)
        if overwrite:
            raise InvalidOption("a topic cannot be overwritten: write with .mode('append')")
        self._query = options.write_id or str(uuid.uuid4())
        self._run = str(uuid.uuid4())

    def write(self, iterator: Iterator[RecordBatch]) -> WriterCommitMessage:
        return self._write(iterator, Batch(self._query, self._run, 0))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._commit(messages, 0)
        if self._options.exactly_once:
            admin = self._admin()
            self._maybe_forget(admin)
            finish_others(admin, self._ledger(admin))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._abort(messages, 0)
        if self._options.exactly_once:
            admin = self._admin()
            self._maybe_forget(admin)

    def _maybe_forget(self, admin: Admin) -> None:
        """A write without an id does not come again: once it is ended or aborted, nobody asks for it."""
        ledger = self._ledger(admin)
        state = ledger.state(self._query)
        if self._options.write_id is None and state is not None and state.batch <= ledger.ended(self._query):
            ledger.forget(self._query)


# -- transactions --------------------------------------------------------------------------------------------


def end_decided(admin: Admin, query: str, state: State) -> None:
    """Commits every transaction of a decided batch, and waits for a broker that is away."""
    left: Iterable[OpenTransaction] = state.transactions
    deadline = time.monotonic() + _ENDING_SECONDS_MAX
    while True:
        problems = _try_to_end(admin, left)
        lost = [each for each, problem in problems.items() if not problem.retriable]
        if lost:
            raise LostTransaction(
                f"batch {state.batch} of query {query} was decided, but {len(lost)} of its "
                f"{len(state.transactions)} transactions cannot be committed any more, the first of them "
                f"{lost[0].transactional_id}: {problems[lost[0]]}. Their records are lost, the others are in "
                "the topic. Start again with a new checkpoint location from the offsets of that batch"
            )
        if not problems:
            return
        left = list(problems)
        if time.monotonic() > deadline:
            raise JobError(
                f"batch {state.batch} of query {query} is decided, but {left[0].transactional_id} is not "
                f"committed yet: {problems[left[0]]}. Start the query again within the transaction timeout "
                "to finish it"
            )
        time.sleep(0.2)


def _try_to_end(admin: Admin, transactions: Iterable[OpenTransaction]) -> dict[OpenTransaction, ClientError]:
    """What could not be committed, and why."""
    try:
        answers = admin.end_transactions(transactions, commit=True)
    except ClientError as error:
        return dict.fromkeys(transactions, error)
    return {each: problem for each, problem in answers.items() if problem is not None}


def finish_others(admin: Admin, ledger: Ledger) -> None:
    """Batch writes whose driver died between its decision and the last end: nobody else would finish them."""
    for query, state in ledger.unfinished():
        try:
            end_decided(admin, query, state)
            ledger.note_ended(query, state.batch)
        except (JobError, ClientError) as error:
            log.warning("a decided write of somebody else cannot be finished: %s", error)


def _check_open(admin: Admin, opened: Iterable[OpenTransaction], batch: int) -> None:
    """Before a decision: if one has timed out meanwhile the batch comes again, and nothing is lost."""
    for each in opened:
        found = admin.transaction(each.transactional_id)
        is_open = found.state == "Ongoing"
        if not is_open or (found.producer_id, found.producer_epoch) != (
            each.producer_id,
            each.producer_epoch,
        ):
            raise Undecidable(
                f"transaction {each.transactional_id} of batch {batch} is {found.state}, and no longer "
                "its own: it took longer than kafka.transaction.timeout.ms, or another run has taken over"
            )


def _drop_leftovers(admin: Admin, query: str) -> None:
    """Transactions of attempts that died hold back readers until they time out."""
    for each in admin.transactions(["Ongoing"]):
        if each.id.startswith(f"ottla-spark-{query}-"):
            try:
                admin.fence_producer(each.id)
            except ClientError as error:
                log.warning("%s was left open and could not be aborted: %s", each.id, error)


def _task() -> TaskContext:
    context = TaskContext.get()
    assert context is not None
    return context


def _transactional_id(query: str) -> str:
    context = _task()
    return f"ottla-spark-{query}-{context.partitionId()}-{context.attemptNumber()}"


def _streaming_batch() -> tuple[str, str, int]:
    """Query, run and batch, as Spark tells its tasks."""
    context = _task()
    query = context.getLocalProperty("sql.streaming.queryId")
    run = context.getLocalProperty("spark.jobGroup.id")
    batch = context.getLocalProperty("streaming.sql.batchId")
    if query is None or run is None or batch is None:
        raise JobError("this Spark does not tell its tasks the query, run and batch they work for")
    return query, run, int(batch)
