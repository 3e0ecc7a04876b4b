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
from collections.abc import Sequence
from types import TracebackType

from ottla.client.accumulator import Accumulator, Batch, Headers, OnDelivery, checked_headers, size_of
from ottla.client.cluster import Cluster
from ottla.client.cluster_view import Topic
from ottla.client.delivery import SendFuture
from ottla.client.errors import (
    BufferFull,
    ClientError,
    Closed,
    InvalidSetting,
    MessageTooLarge,
    TimedOut,
    UnknownPartition,
    UnknownTopic,
    broker_error,
)
from ottla.client.partitioners import Partitioner, built_in
from ottla.client.producing import ProducerLoop
from ottla.client.sender import Sender, SendRules
from ottla.client.sequences import Sequences
from ottla.client.settings import PRODUCER_SETTINGS, load
from ottla.client.transacting import TransactionCalls
from ottla.client.transactions import Transactions
from ottla.model.config_types import TypedValues
from ottla.model.errors import ErrorCode
from ottla.model.topics import topic_name_problem

_IN_FLIGHT_IDEMPOTENT_MAX = 5  # a broker remembers that many batches of a producer (KIP-98)
_UNKNOWN_TOPIC_ANSWERS = 5  # with the pauses between them more than a second
_TIMESTAMP_END_MS = 2**63 - 1

log = logging.getLogger(__name__)

_living: weakref.WeakSet[Producer] = weakref.WeakSet()


class Producer(TransactionCalls):
    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        partitioner: str | Partitioner | None = None,
        **settings: object,
    ) -> None:
        if isinstance(partitioner, str):
            settings = {**settings, "partitioner.class": partitioner}
        loaded = load(settings, PRODUCER_SETTINGS)
        transactional_id = loaded.text_or_none("transactional.id")
        idempotent = _is_idempotent(settings, loaded)
        if transactional_id is not None and not idempotent:
            raise InvalidSetting(
                "transactional.id needs idempotence",
                "leave enable.idempotence, acks, retries and max.in.flight.requests.per.connection unset",
            )
        sequences = Sequences(enabled=idempotent, transactional=transactional_id is not None)
        rules = _rules(loaded, idempotent=sequences.enabled)
        self._max_block_ms = loaded.integer("max.block.ms")
        self._buffer_bytes = loaded.integer("buffer.memory")
        self._record_bytes_max = loaded.integer("max.request.size")
        self._cluster = Cluster(bootstrap, loaded, auto_create=True)
        self._batches = Accumulator(loaded.integer("batch.size"))
        self._transactions = None
        if transactional_id is not None:
            self._transactions = Transactions(
                transactional_id,
                loaded.integer("transaction.timeout.ms"),
                sequences,
                self._batches,
                self._cluster.backoff,
                two_phase=loaded.flag("transaction.two.phase.commit.enable"),
            )
        self._sender = Sender(self._batches, sequences, rules, self._cluster.backoff, self._transactions)
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)  # batches are done, or topics known
        self._loop = ProducerLoop(self._cluster, self._sender, loaded, self._changed)
        self._choice = built_in(loaded.text("partitioner.class"), loaded.integer("metadata.max.age.ms"))
        self._partitioner = None if partitioner is None or isinstance(partitioner, str) else partitioner
        self._keyless: dict[str, Batch] = {}  # the batch that keyless records of a topic fill
        self._is_closed = False
        self._waiters = 0  # callers who wait for room: nothing lingers then
        self._loop.start()
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
        value: bytes | None = None,
        key: bytes | None = None,
        *,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> SendFuture:
        """Puts a record into the buffer. `on_delivery(delivery, error)` runs on the producer's thread."""
        if type(value) is not bytes and value is not None:
            value = bytes(memoryview(value))
        if type(key) is not bytes and key is not None:
            key = bytes(memoryview(key))
        if headers:
            headers = checked_headers(headers)
        size = size_of(key, value, headers)
        if size > self._record_bytes_max:
            raise self._too_large(size)
        known = self._cluster.metadata.view.topics.get(topic)
        if known is None:
            known = self._wait_for_topic(topic)
        now_ms = time.monotonic_ns() // 1_000_000
        if timestamp_ms is None:
            timestamp_ms = time.time_ns() // 1_000_000
        elif not 0 <= timestamp_ms < _TIMESTAMP_END_MS:
            raise ValueError(f"{timestamp_ms} is no timestamp in milliseconds since 1970")
        if self._partitioner is not None and partition is None:
            view = self._cluster.metadata.view
            partition = self._partitioner.partition(topic, key, key, value, value, view)
        with self._lock:
            if self._is_closed:
                raise Closed("the producer is closed")
            if self._batches.bytes + size > self._buffer_bytes:
                self._wait_for_room(size)
            if self._transactions is not None:
                self._transactions.check_open()
            chosen = self._choose(topic, key, known, now_ms) if partition is None else partition
            if not 0 <= chosen < len(known.partitions):
                raise UnknownPartition(topic, chosen, len(known.partitions))
            batch, index = self._batches.append(
                topic, chosen, timestamp_ms, key, value, headers, size, now_ms
            )
            if on_delivery is not None:
                batch.callbacks.append((index, on_delivery))
            if partition is None and key is None:
                self._keyless[topic] = batch
        if index == 0 or not batch.is_open:
            self._cluster.network.wake()
        return SendFuture(batch, index, self._changed)

    def _choose(self, topic: str, key: bytes | None, known: Topic, now_ms: int) -> int:
        if key is None:
            batch = self._keyless.get(topic)
            if batch is not None and not batch.is_open:
                self._choice.batch_ended(topic)
                del self._keyless[topic]
        return self._choice.choose(key, known, now_ms)

    def partition_count(self, topic: str) -> int:
        """Of a topic that is there, or that the broker creates when it is asked for."""
        known = self._cluster.metadata.view.topics.get(topic) or self._wait_for_topic(topic)
        return len(known.partitions)

    @property
    def buffered_bytes(self) -> int:
        """Of records that are not delivered yet."""
        return self._batches.bytes

    # -- waiting -------------------------------------------------------------------------------------------

    def _wait_for_topic(self, topic: str) -> Topic:
        problem = topic_name_problem(topic)
        if problem is not None:
            raise broker_error(ErrorCode.INVALID_TOPIC_EXCEPTION, "", problem)
        with self._changed:
            self._loop.wanted_topics.add(topic)
            self._cluster.network.wake()
            self._changed.wait_for(lambda: self._topic_outcome(topic), self._max_block_ms / 1000)
            outcome = self._topic_outcome(topic)
            if isinstance(outcome, Topic):
                return outcome
            self._loop.wanted_topics.discard(topic)
        if outcome is not None:
            raise outcome
        raise self._cluster.timed_out(f"finding the partitions of topic {topic!r}")

    def _topic_outcome(self, topic: str) -> Topic | ClientError | None:
        """The topic, or why it cannot be had; None: not known yet."""
        if self._is_closed:
            return Closed("the producer is closed")
        metadata = self._cluster.metadata
        known = metadata.view.topics.get(topic)
        if known is not None and known.partitions:
            return known
        code = metadata.problems.get(topic, ErrorCode.NONE)
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            # A broker that has just been told of a new topic knows it soon, or it is not there.
            return UnknownTopic(topic) if metadata.refusals >= _UNKNOWN_TOPIC_ANSWERS else None
        return None if code in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE) else broker_error(code, topic)

    def _wait_for_room(self, size: int) -> None:
        """With the lock held."""
        self._waiters += 1
        self._sender.is_flushing = True
        self._cluster.network.wake()
        try:
            freed = self._changed.wait_for(
                lambda: self._is_closed or self._batches.bytes + size <= self._buffer_bytes,
                self._max_block_ms / 1000,
            )
        finally:
            self._waiters -= 1
            self._sender.is_flushing = self._waiters > 0
        if self._is_closed:
            raise Closed("the producer was closed while a record waited for room")
        if not freed:
            raise BufferFull(
                f"the buffer of {self._buffer_bytes} bytes was full for {self._max_block_ms} ms",
                "send slower, or raise buffer.memory or max.block.ms; the broker may be slow or away",
            )

    def flush(self, timeout: float | None = None) -> None:
        """Waits until everything sent before is delivered or has failed. Raises TimedOut (seconds)."""
        with self._changed:
            before = [*self._batches.waiting(), *self._batches.in_flight()]
            self._waiters += 1
            self._sender.is_flushing = True
            self._cluster.network.wake()
            try:
                done = self._changed.wait_for(lambda: all(_is_over(batch) for batch in before), timeout)
            finally:
                self._waiters -= 1
                self._sender.is_flushing = self._waiters > 0
        if not done:
            left = sum(len(batch.records) for batch in before if not _is_over(batch))
            raise TimedOut(f"{left} records are not delivered after {timeout} s")

    def close(self, timeout: float | None = None) -> None:
        """Delivers what is left, at most for `timeout` seconds; then the rest fails. 0 fails it at once."""
        if self._is_closed:
            return
        try:
            if timeout != 0:
                self._abort_before_closing(timeout)
                self.flush(timeout)
        except TimedOut as error:
            log.warning("%s", error)  # and the futures of what is left tell
        except ClientError as error:  # the transaction is no longer this producer's to abort
            log.warning("a transaction was left as it is: %s", error)
        finally:
            with self._changed:
                self._is_closed = True
                self._changed.notify_all()
            self._loop.stop()

    def _too_large(self, size: int) -> MessageTooLarge:
        return MessageTooLarge(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the record may take {size} bytes, max.request.size is {self._record_bytes_max}",
            "raise max.request.size of the producer and max.message.bytes of the topic, or send less",
        )


def _is_over(batch: Batch) -> bool:
    if batch.halves is not None:
        return all(_is_over(half) for half in batch.halves)
    return batch.is_done


def _is_idempotent(given: dict[str, object], loaded: TypedValues) -> bool:
    """On unless other settings contradict it; asked for explicitly, a contradiction is refused."""
    explicit = any(name.replace("_", ".") == "enable.idempotence" for name in given)
    if not loaded.flag("enable.idempotence"):
        return False
    acks_all = loaded.text("acks") in ("all", "-1")
    if explicit and not acks_all:
        raise InvalidSetting(
            "enable.idempotence needs acks=all", "leave acks unset, or switch idempotence off"
        )
    in_flight = loaded.integer("max.in.flight.requests.per.connection")
    if explicit and in_flight > _IN_FLIGHT_IDEMPOTENT_MAX:
        raise InvalidSetting(
            f"enable.idempotence allows at most {_IN_FLIGHT_IDEMPOTENT_MAX} requests in flight",
            "lower max.in.flight.requests.per.connection",
        )
    if explicit and loaded.integer("retries") == 0:
        raise InvalidSetting("enable.idempotence needs retries", "leave retries unset")
    return acks_all and in_flight <= _IN_FLIGHT_IDEMPOTENT_MAX and loaded.integer("retries") > 0


def _rules(loaded: TypedValues, *, idempotent: bool) -> SendRules:
    linger_ms = loaded.integer("linger.ms")
    delivery_timeout_ms = loaded.integer("delivery.timeout.ms")
    if delivery_timeout_ms < linger_ms:
        raise InvalidSetting("delivery.timeout.ms is shorter than linger.ms", "lower linger.ms")
    return SendRules(
        linger_ms=linger_ms,
        delivery_timeout_ms=delivery_timeout_ms,
        retries=loaded.integer("retries"),
        in_flight_max=loaded.integer("max.in.flight.requests.per.connection"),
    )


@atexit.register
def _deliver_what_is_left() -> None:
    """A program that forgets to close its producers loses nothing, as long as it ends by itself."""
    for producer in list(_living):
        producer.close()
