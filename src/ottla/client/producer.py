"""The producer: takes records from any thread, delivers them in batches from one of its own.

    with Producer("localhost:9092") as producer:
        producer.send("orders", b"value", key=b"key")

`send` returns at once with a future; it waits only for room in the buffer, or for a topic that is new to it,
and raises after `max.block.ms`. Leaving the `with` block delivers what is left. Nothing is dropped silently:
a record that could not be delivered fails its future and its callback.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ottla.client.accumulator import Headers, OnDelivery
from ottla.client.blocking import blocking, run
from ottla.client.cluster import Cluster
from ottla.client.delivery import SendFuture
from ottla.client.errors import ClientError, Closed, Misused
from ottla.client.forks import stays_with_its_process
from ottla.client.interceptors import ProducerRecord
from ottla.client.partitioners import Partitioner
from ottla.client.producer_calls import HEADERS_AS_DICT, ProducerCalls
from ottla.client.producer_core import ProducerCore
from ottla.client.rows_delivery import OnRowsDelivery, RowsFuture
from ottla.model.config_types import TypedValues

if TYPE_CHECKING:
    import pyarrow

log = logging.getLogger(__name__)

_living: weakref.WeakSet[Producer] = weakref.WeakSet()


class Producer:
    def __init__(
        self,
        bootstrap: str | Sequence[str] = "",
        *,
        partitioner: str | Partitioner | None = None,
        **settings: object,
    ) -> None:
        if partitioner is not None:
            settings = {**settings, "partitioner.class": partitioner}
        self._core = ProducerCore(bootstrap, settings, _cluster)
        self._cluster = self._core.cluster
        self._intake = self._core.intake
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)  # batches are done, or topics known
        self._calls = ProducerCalls(self._core, self._changed, self._wait, _go_on)
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="ottla-producer", daemon=True)
        self._thread.start()
        _living.add(self)
        stays_with_its_process(self)

    def __enter__(self) -> Producer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # -- sending -------------------------------------------------------------------------------------------

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> SendFuture:
        """Puts a record into the buffer. `on_delivery(delivery, error)` runs on the producer's thread."""
        if isinstance(headers, dict):  # as other clients take them
            raise TypeError(HEADERS_AS_DICT)
        chain = self._intake.interceptors
        if not chain:
            return self._send(topic, value, key, partition, headers, timestamp_ms, on_delivery)
        record = chain.on_send(ProducerRecord(topic, value, key, partition, headers, timestamp_ms))
        try:
            return self._send(*record, chain.before(on_delivery))
        except Exception as error:
            chain.on_acknowledgement(None, error)
            raise

    def _send(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        headers: Headers,
        timestamp_ms: int | None,
        on_delivery: OnDelivery | None,
    ) -> SendFuture:
        intake = self._intake
        record = intake.prepare(topic, value, key, headers, timestamp_ms)
        known = self._cluster.metadata.view.topics.get(topic)
        if known is None:
            known = run(self._calls.topic(topic))
        if partition is None:
            partition = intake.chosen_by_user(topic, record)
        now_ms = time.monotonic_ns() // 1_000_000
        with self._lock:
            if not intake.has_room(record.size):
                run(self._calls.room(record.size))
            if self._calls.is_closed:
                raise Closed("the producer is closed")
            batch, index = intake.append(known, record, partition, now_ms, on_delivery)
        if index == 0 or not batch.is_open:
            self._cluster.network.wake()
        return SendFuture(batch, index, self._changed)

    def send_arrow(
        self,
        rows: pyarrow.Table | pyarrow.RecordBatch,
        topic: str | None = None,
        on_delivery: OnRowsDelivery | None = None,
    ) -> RowsFuture:
        """Sends each row as a record: of key, value, headers, timestamp, partition, topic what there is.

        `topic` is for all rows, whatever a column says. Rows go to the partition that they name, else by
        their keys. The kernel encodes them in the caller's thread, in batches as full as batch.size allows;
        it waits for room in the buffer as `send` does, and when that takes longer than max.block.ms,
        it raises BufferFull, and what was taken is under way. `on_delivery(delivery, error)` is called for
        each batch, on the producer's thread.
        """
        return RowsFuture(run(self._calls.send_rows(rows, topic, on_delivery)), self._changed)

    partition_count = blocking(ProducerCalls.partition_count)

    @property
    def buffered_bytes(self) -> int:
        """Of records that are not delivered yet."""
        return self._core.batches.bytes

    @property
    def problem(self) -> ClientError | None:
        """Why records are not delivered yet, as far as is known."""
        with self._lock:
            return self._core.problem

    def flush(self, timeout: float | None = None) -> None:
        """Waits until everything sent before is delivered or has failed, and callbacks have run.

        Raises TimedOut (seconds).
        """
        if threading.current_thread() is self._thread:
            raise Misused("flush() in a callback would wait for itself", "flush in another thread")
        run(self._calls.flush(timeout))

    def close(self, timeout: float | None = None) -> None:
        """Delivers what is left, at most for `timeout` seconds; then the rest fails. 0 fails it at once."""
        if self._calls.is_closed:
            return
        try:
            run(self._calls.finish(timeout))
        finally:
            self._is_stopping = True
            self._cluster.network.wake()
            self._thread.join()  # what was not delivered has failed then
            self._intake.close()

    # -- transactions --------------------------------------------------------------------------------------

    init_transactions = blocking(ProducerCalls.init_transactions)
    begin_transaction = blocking(ProducerCalls.begin_transaction)
    send_offsets_to_transaction = blocking(ProducerCalls.send_offsets_to_transaction)
    commit_transaction = blocking(ProducerCalls.commit_transaction)
    abort_transaction = blocking(ProducerCalls.abort_transaction)
    detach_transaction = blocking(ProducerCalls.detach_transaction)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commits when the block ends, aborts when it raises."""
        self.begin_transaction()
        try:
            yield
            self.commit_transaction()
        except BaseException as error:
            run(self._calls.abort_after(error))
            raise

    async def _wait(self, condition: Callable[[], bool], timeout: float | None) -> bool:
        return self._changed.wait_for(condition, timeout)

    # -- the thread ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        loop = self._calls.loop
        try:
            while not self._is_stopping:
                self._cluster.network.poll(loop.begin_turn())
                loop.tell()
        except BaseException:
            log.exception("the producer's thread failed")
        loop.end()
        self._cluster.close()


async def _go_on() -> None:
    """Other threads have their turns anyway."""


def _cluster(bootstrap: str | Sequence[str], settings: TypedValues) -> Cluster:
    return Cluster(bootstrap, settings, auto_create=True)


@atexit.register
def _deliver_what_is_left() -> None:
    """A program that forgets to close its producers loses nothing, as long as it ends by itself."""
    for producer in list(_living):
        producer.close()
