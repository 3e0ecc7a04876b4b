"""Topics as a Spark sink: exactly once through transactions, or at least once without them.

Each task attempt writes under a transactional id of its own (`transactional_ids`) and leaves its transaction
open; nothing is visible then. The driver makes one durable decision for the batch (`ledger`) and ends all of
its transactions in one burst. A batch that comes again after a crash is recognised by the decision: its tasks
write nothing, and the driver ends what is still open. Whoever aborts what dead attempts left open does it by
producer id and epoch, and knows before that no later run had begun when it looked: nothing that is decided
and not ended is ever aborted, however late anybody wakes up.
"""

from __future__ import annotations

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
from ottla.client.errors import BrokerUnreachable
from ottla.client.producer import Producer
from ottla.client.rows_delivery import RowsFuture
from ottla.spark.connections import admin_of, common_settings
from ottla.spark.endings import abort, check_open, drop_leftovers, finish, finish_others
from ottla.spark.errors import InvalidOption, JobError, Superseded
from ottla.spark.ledger import Ledger
from ottla.spark.options import WriteOptions
from ottla.spark.rows import RowShape
from ottla.spark.transactional_ids import held_ids

if TYPE_CHECKING:
    from pyarrow import RecordBatch

_TRANSACTION_TIMEOUT_MS = 15 * 60_000  # the most that brokers allow unless told otherwise
_SENDS_UNDER_WAY_MAX = 16
_CONNECTING_SECONDS_MAX = 20.0


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
    comes_again: bool = True  # after a crash, in another run


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
        held_ids()  # before the ledger is asked
        admin = self._admin()
        ledger = self._ledger(admin)
        if not batch.comes_again:
            return Written(
                batch.query, batch.run, self._write_once(rows, batch, admin, ledger), skipped=False
            )
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
        return Written(batch.query, batch.run, self._write_openly(rows, batch), skipped=False)

    def _write_once(
        self, rows: Iterator[RecordBatch], batch: Batch, admin: Admin, ledger: Ledger
    ) -> OpenTransaction | None:
        """For a write that is forgotten when it is over: a late task of it must leave nothing open."""
        opened = None
        if not ledger.is_forgotten(batch.query):
            opened = self._write_openly(rows, batch)
        if ledger.is_forgotten(batch.query):
            if opened is not None:
                admin.end_transaction(opened, commit=False)
            raise Superseded("this write was ended or given up before the task came to write")
        return opened

    def _deliver(self, rows: Iterator[RecordBatch]) -> None:
        """Without a transaction: every row is acknowledged, or this raises."""
        with Producer(self._options.bootstrap, **self._options.client) as producer:
            under_way: deque[RowsFuture] = deque()
            for each in self._shape.gathered(rows):
                under_way.append(self._shape.send(producer, each))
                if len(under_way) > _SENDS_UNDER_WAY_MAX:
                    under_way.popleft().result()
            for sent in under_way:
                sent.result()

    def _write_openly(self, rows: Iterator[RecordBatch], batch: Batch) -> OpenTransaction | None:
        """Everything delivered, in a transaction that is left open; closing the producer aborts it."""
        pieces = self._shape.gathered(rows)
        first = next(pieces, None)
        if first is None:
            return None
        settings = {"transaction.timeout.ms": str(_TRANSACTION_TIMEOUT_MS), **self._options.client}
        transactional_id = held_ids().take(batch.query, batch.run, batch.number)
        with Producer(self._options.bootstrap, transactional_id=transactional_id, **settings) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            self._shape.send(producer, first)
            for each in pieces:
                self._shape.send(producer, each)
            return producer.detach_transaction()

    # -- in the driver -------------------------------------------------------------------------------------

    def _commit(self, done: Sequence[Written], batch: Batch) -> None:
        opened = tuple(each.transaction for each in done if each.transaction is not None)
        admin = self._admin()
        ledger = self._ledger(admin)
        if any(each.skipped for each in done):
            state = ledger.state(batch.query)
            if state is None or state.batch < batch.number or opened:
                raise JobError(
                    f"batch {batch.number} of query {batch.query} was decided while it was written again"
                )
        elif not opened:
            return
        else:
            check_open(admin, opened, batch.number)
            state = ledger.decide(batch.query, batch.run, batch.number, opened, comes_again=batch.comes_again)
            if state.transactions != opened:
                raise Superseded(f"batch {batch.number} of query {batch.query} was decided by another run")
        if state.batch == batch.number and not ledger.is_ended(batch.query, batch.number):
            finish(admin, ledger, batch.query, state)
        drop_leftovers(admin, ledger, batch.query, batch.run, comes_again=batch.comes_again)

    def _abort(self, done: Sequence[Written], batch: Batch) -> None:
        """Spark also calls this when `commit` has failed: what is decided must stay as it is."""
        admin = self._admin()
        ledger = self._ledger(admin)
        state = ledger.state(batch.query)
        if ledger.is_ended(batch.query, batch.number) or (state is not None and state.batch >= batch.number):
            return
        if not batch.comes_again:
            ledger.forget(batch.query)  # first, so that a task that opens a transaction later finds it
        abort(admin, [each.transaction for each in done if each.transaction is not None])
        drop_leftovers(admin, ledger, batch.query, batch.run, comes_again=batch.comes_again)

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
        done = _written(messages)
        if done and self._options.exactly_once:
            self._commit(done, Batch(done[0].query, done[0].run, batchId))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        done = _written(messages)
        if done and self._options.exactly_once:
            self._abort(done, Batch(done[0].query, done[0].run, batchId))


class TopicSink(_Sink, DataSourceArrowWriter):
    """A batch write is a query of one batch. With a `writeId` it can be repeated: it is then done once."""

    def __init__(self, options: WriteOptions, schema: StructType, *, overwrite: bool) -> None:
        super().__init__(options, schema)
        if overwrite:
            raise InvalidOption("a topic cannot be overwritten: write with .mode('append')")
        query = options.write_id or str(uuid.uuid4())
        self._batch = Batch(query, str(uuid.uuid4()), 0, comes_again=options.write_id is not None)

    def write(self, iterator: Iterator[RecordBatch]) -> WriterCommitMessage:
        return self._write(iterator, self._batch)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        if self._options.exactly_once:
            self._commit(_written(messages), self._batch)
            admin = self._admin()
            finish_others(admin, self._ledger(admin))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        if self._options.exactly_once:
            self._abort(_written(messages), self._batch)


def _written(messages: Iterable[WriterCommitMessage | None]) -> list[Written]:
    return [each for each in messages if isinstance(each, Written)]


def _task() -> TaskContext:
    context = TaskContext.get()
    assert context is not None
    return context


def _streaming_batch() -> tuple[str, str, int]:
    """Query, run and batch, as Spark tells its tasks."""
    context = _task()
    query = context.getLocalProperty("sql.streaming.queryId")
    run = context.getLocalProperty("spark.jobGroup.id")
    batch = context.getLocalProperty("streaming.sql.batchId")
    if query is None or run is None or batch is None:
        raise JobError("this Spark does not tell its tasks the query, run and batch they work for")
    return query, run, int(batch)
