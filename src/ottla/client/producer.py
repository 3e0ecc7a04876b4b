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
from typing import Any

from ottla.client.accumulator import Headers, OnDelivery
from ottla.client.arrow_calls import ArrowCalls
from ottla.client.blocking import blocking, run
from ottla.client.cluster import Cluster
from ottla.client.cluster_view import Topic
from ottla.client.delivery import SendFuture
from ottla.client.errors import ClientError, Closed, Misused, TimedOut
from ottla.client.interceptors import ProducerRecord
from ottla.client.partitioners import Partitioner
from ottla.client.producer_core import ProducerCore, not_delivered
from ottla.client.producing import ProducerLoop
from ottla.client.transacting import TransactionCalls
from ottla.model.config_types import TypedValues

log = logging.getLogger(__name__)

_living: weakref.WeakSet[Producer] = weakref.WeakSet()


class Producer(ArrowCalls):
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
        self._max_block_ms = self._core.max_block_ms
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)  # batches are done, or topics known
        self._loop = ProducerLoop(self._core, self._changed)
        self._calls = TransactionCalls(self._core, self._changed, self._wait, self._flush)
        self._is_closed = False
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="ottla-producer", daemon=True)
        self._thread.start()
        _living.add(self)

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
            known = self._wait_for_topic(topic)
        if partition is None:
            partition = intake.chosen_by_user(topic, record)
        now_ms = time.monotonic_ns() // 1_000_000
        with self._lock:
            if self._is_closed:
                raise Closed("the producer is closed")
            if not intake.has_room(record.size):
                self._wait_for_room(record.size)
            batch, index = intake.append(known, record, partition, now_ms, on_delivery)
        if index == 0 or not batch.is_open:
            self._cluster.network.wake()
        return SendFuture(batch, index, self._changed)

    def partition_count(self, topic: str) -> int:
        """Of a topic that is there, or that the broker creates when it is asked for."""
        known = self._cluster.metadata.view.topics.get(topic) or self._wait_for_topic(topic)
        return len(known.partitions)

    @property
    def buffered_bytes(self) -> int:
        """Of records that are not delivered yet."""
        return self._core.batches.bytes

    # -- waiting -------------------------------------------------------------------------------------------

    def _wait_for_topic(self, topic: str) -> Topic:
        def outcome() -> Topic | ClientError | None:
            return Closed("the producer is closed") if self._is_closed else self._intake.topic(topic)

        with self._changed:
            self._loop.wanted_topics.add(topic)
            self._cluster.network.wake()
            self._changed.wait_for(outcome, self._max_block_ms / 1000)
            found = outcome()
            if isinstance(found, Topic):
                return found
            self._loop.wanted_topics.discard(topic)
        raise found or self._cluster.timed_out(f"finding the partitions of topic {topic!r}")

    def _wait_for_room(self, size: int) -> None:
        """With the lock held."""
        self._core.begin_waiting()
        try:
            freed = self._changed.wait_for(
                lambda: self._is_closed or self._intake.has_room(size), self._max_block_ms / 1000
            )
        finally:
            self._core.end_waiting()
        if self._is_closed:
            raise Closed("the producer was closed while a record waited for room")
        if not freed:
            raise self._core.buffer_full()

    def flush(self, timeout: float | None = None) -> None:
        """Waits until everything sent before is delivered or has failed, and callbacks have run.

        Raises TimedOut (seconds).
        """
        if threading.current_thread() is self._thread:
            raise Misused("flush() in a callback would wait for itself", "flush in another thread")
        with self._changed:
            before = self._core.begin_waiting()
            try:
                done = self._changed.wait_for(lambda: all(batch.is_flushed for batch in before), timeout)
            finally:
                self._core.end_waiting()
        if not done:
            raise not_delivered(before, timeout)

    def close(self, timeout: float | None = None) -> None:
        """Delivers what is left, at most for `timeout` seconds; then the rest fails. 0 fails it at once."""
        if self._is_closed:
            return
        try:
            if timeout != 0:
                run(self._calls.abort_before_closing(timeout))
                self.flush(timeout)
        except TimedOut as error:
            log.warning("%s", error)  # and the futures of what is left tell
        except ClientError as error:  # the transaction is no longer this producer's to abort
            log.warning("a transaction was left as it is: %s", error)
        finally:
            with self._changed:
                self._is_closed = True
                self._changed.notify_all()
            self._is_stopping = True
            self._cluster.network.wake()
            self._thread.join()  # what was not delivered has failed then
            self._intake.close()

    # -- transactions --------------------------------------------------------------------------------------

    init_transactions = blocking(TransactionCalls.init_transactions)
    begin_transaction = blocking(TransactionCalls.begin_transaction)
    send_offsets_to_transaction = blocking(TransactionCalls.send_offsets_to_transaction)
    commit_transaction = blocking(TransactionCalls.commit_transaction)
    abort_transaction = blocking(TransactionCalls.abort_transaction)
    detach_transaction = blocking(TransactionCalls.detach_transaction)

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

    async def _flush(self, timeout: float | None) -> None:
        self.flush(timeout)

    # -- the thread ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._is_stopping:
                self._cluster.network.poll(self._loop.begin_turn())
                self._loop.tell()
        except BaseException:
            log.exception("the producer's thread failed")
        self._loop.end()
        self._cluster.close()


def _cluster(bootstrap: str | Sequence[str], settings: TypedValues) -> Cluster:
    return Cluster(bootstrap, settings, auto_create=True)


@atexit.register
def _deliver_what_is_left() -> None:
    """A program that forgets to close its producers loses nothing, as long as it ends by itself."""
    for producer in list(_living):
        producer.close()
