"""The producer's loop: drains batches to brokers, takes their answers, tells who waits.

Its shell (a thread, or an asyncio task) runs the turns, and is alone in touching the network. What it shares
with callers (the accumulator and the sender's bookkeeping) is under the producer's lock; callbacks run
without it, so that they may send.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, cast

from ottla.client.accumulator import Batch
from ottla.client.cluster_view import Broker
from ottla.client.errors import ClientError, Closed, TransactionAborted, broker_error
from ottla.client.producer_core import ProducerCore
from ottla.client.settings import CODECS
from ottla.client.transaction_requests import FEATURE, PRODUCE_VERSION_BEFORE_LEVEL_2, Request
from ottla.client.transactions import State, Transactions
from ottla.model.topics import NO_TOPIC_ID, TopicId, TopicPartition
from ottla.protocol.apis import INIT_PRODUCER_ID, PRODUCE
from ottla.protocol.fields import Message
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.records.batch import TRANSACTIONAL
from ottla.records.content import Record, build_batch
from ottla.records.rows import EncodedRecords

_VERSION_WITHOUT_IDS = 12
_VERSION_END = 32_767
_IDLE_MS = 60_000
_COORDINATOR = "transactions"  # a connection of their own: a Produce may wait for replicas

log = logging.getLogger(__name__)


class Changed(Protocol):
    """The producer's lock, and its way to tell those who wait."""

    def __enter__(self) -> object: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None: ...

    def notify_all(self) -> None: ...


class ProducerLoop:
    def __init__(self, core: ProducerCore, changed: Changed) -> None:
        settings = core.settings
        self.wanted_topics: set[str] = set()  # asked for by callers, under the lock
        self._cluster = core.cluster
        self._sender = core.sender
        self._changed = changed
        self._acks = -1 if settings.text("acks") in ("all", "-1") else int(settings.text("acks"))
        self._timeout_ms = settings.integer("request.timeout.ms")
        codec = settings.text("compression.type")
        self.codec = CODECS.index(codec)
        leveled = codec in ("gzip", "lz4", "zstd")
        self.codec_level = settings.integer(f"compression.{codec}.level") if leveled else None
        self._heard: tuple[int, ClientError | None] = (0, None)  # what callers who wait for a topic were told
        self._identity_asked = False
        self._identity_failures = 0
        self._identity_not_before_ms = 0
        self._flags = TRANSACTIONAL if core.transactions is not None else 0
        self._transactional_id = None if core.transactions is None else core.transactions.id

    def begin_turn(self) -> int:
        """Sends what is due; milliseconds until there is something to do, if nothing comes before."""
        cluster, sender = self._cluster, self._sender
        now_ms = cluster.now_ms()
        with self._changed:
            cluster.metadata.want(self.wanted_topics)
            sender.expire(now_ms)
            if sender.transactions is not None:
                self._drop_what_is_lost(sender.transactions)
        while requests := self._drained(now_ms):
            for broker, batches in requests:
                self._send(broker, batches)
        with self._changed:
            wait_ms = sender.next_ms(now_ms)
            if sender.wants_metadata:
                sender.wants_metadata = False
                cluster.metadata.ask_again()
        wait_ms = min(wait_ms, self._identity_turn(now_ms), cluster.tick(now_ms))
        return 0 if sender.finished else wait_ms

    def end(self) -> None:
        """There will be no further turn: what was not delivered has failed."""
        with self._changed:
            self._sender.fail_all(Closed("the producer was closed before the record was delivered"))
        self.tell()

    def _drained(self, now_ms: int) -> list[tuple[Broker, list[Batch]]]:
        with self._changed:
            return self._sender.drain(self._cluster.metadata.view, now_ms)

    # -- transactions ----------------------------------------------------------------------------------------

    def _identity_turn(self, now_ms: int) -> int:
        """Who this producer is, and its transactions; milliseconds until there is something to do."""
        transactions = self._sender.transactions
        if transactions is None:
            return self._maybe_ask_identity(now_ms)
        with self._changed:
            before = transactions.state
            request = transactions.next_request(now_ms)
            if transactions.state is not before:
                self._changed.notify_all()
        if request is not None:
            self._ask_coordinator(transactions, request)
        return transactions.next_ms(now_ms, _IDLE_MS)

    def _ask_coordinator(self, transactions: Transactions, request: Request) -> None:
        address = request.address or self._cluster.any_address()

        def take(result: Message | ClientError, _version: int) -> None:
            with self._changed:
                if request.address is not None and request.address == transactions.coordinator:
                    level = self._cluster.network.finalized_level(address, FEATURE, _COORDINATOR)
                    transactions.level = level if isinstance(result, Message) else transactions.level
                transactions.take(request, result, self._cluster.now_ms())
                self._drop_what_is_lost(transactions)
                self._changed.notify_all()

        self._cluster.send(
            address,
            request.api,
            request.message,
            take,
            version_max=request.version_max,
            purpose=_COORDINATOR,
        )

    def _drop_what_is_lost(self, transactions: Transactions) -> None:
        """With the lock held: records of a transaction that can only be aborted fail at once."""
        if transactions.state is State.FATAL:
            assert transactions.error is not None
            self._sender.fail_all(transactions.error)
        elif transactions.state in (State.MUST_ABORT, State.ABORTING):
            error = transactions.error or TransactionAborted("its transaction was aborted")
            self._sender.fail_queued(error)

    # -- identity ------------------------------------------------------------------------------------------

    def _maybe_ask_identity(self, now_ms: int) -> int:
        """Asks for a producer id when one is needed; milliseconds until it should be asked again."""
        if self._sender.sequences.is_ready or self._identity_asked:
            return _IDLE_MS
        if now_ms < self._identity_not_before_ms:
            return self._identity_not_before_ms - now_ms
        self._identity_asked = True
        self._cluster.send(
            self._cluster.any_address(), INIT_PRODUCER_ID, InitProducerIdRequest(), self._take_identity
        )
        return _IDLE_MS

    def _take_identity(self, result: Message | ClientError, _version: int) -> None:
        self._identity_asked = False
        if isinstance(result, InitProducerIdResponse) and not result.error_code:
            self._identity_failures = 0
            with self._changed:
                self._sender.sequences.begin(result.producer_id, result.producer_epoch)
            return
        if isinstance(result, InitProducerIdResponse):
            result = broker_error(result.error_code, "producer id")
        assert isinstance(result, ClientError)
        self._identity_failures += 1
        pause_ms = self._cluster.backoff.pause_ms(self._identity_failures)
        self._identity_not_before_ms = self._cluster.now_ms() + pause_ms
        if not result.retriable:
            with self._changed:
                self._sender.fail_all(result)

    # -- requests ------------------------------------------------------------------------------------------

    def _send(self, broker: Broker, batches: list[Batch]) -> None:
        by_place = {batch.lane.target: batch for batch in batches}
        view = self._cluster.metadata.view
        by_topic: dict[str, list[PartitionProduceData]] = {}
        for target, batch in by_place.items():
            data = PartitionProduceData(target.partition, self._encoded(batch))
            by_topic.setdefault(target.topic, []).append(data)
        ids = {topic: view.topic_id(topic) for topic in by_topic}
        request = ProduceRequest(
            transactional_id=self._transactional_id,
            acks=self._acks,
            timeout_ms=self._timeout_ms,
            topic_data=[TopicProduceData(topic, ids[topic], data) for topic, data in by_topic.items()],
        )
        names = {topic_id: topic for topic, topic_id in ids.items()}

        def take(result: Message | ClientError, _version: int) -> None:
            with self._changed:
                self._sender.request_ended(broker.id)
                if isinstance(result, ClientError):
                    self._sender.no_answer(by_place.values(), result, self._cluster.now_ms())
                elif self._acks == 0:
                    self._sender.not_answered(by_place.values())
                else:
                    assert isinstance(result, ProduceResponse)
                    self._take_answer(result, dict(by_place), names)

        self._cluster.send(
            broker.address,
            PRODUCE,
            request,
            take,
            version_max=self._produce_version_max(NO_TOPIC_ID in names),
            is_answered=self._acks != 0,
        )

    def _produce_version_max(self, lacks_ids: bool) -> int:
        transactions = self._sender.transactions
        if transactions is not None and not transactions.is_v2:
            return PRODUCE_VERSION_BEFORE_LEVEL_2
        return _VERSION_WITHOUT_IDS if lacks_ids else _VERSION_END

    def _take_answer(
        self, answer: ProduceResponse, by_place: dict[TopicPartition, Batch], names: dict[TopicId, str]
    ) -> None:
        now_ms = self._cluster.now_ms()
        for topic in answer.responses:
            name = topic.name or names.get(topic.topic_id, "")
            for partition in topic.partition_responses:
                batch = by_place.pop(TopicPartition(name, partition.index), None)
                if batch is not None:
                    self._sender.answered(batch, partition, now_ms)
        if by_place:
            lost = ClientError("the broker's answer says nothing about this partition")
            self._sender.no_answer(by_place.values(), lost, now_ms)

    def _encoded(self, batch: Batch) -> bytes | memoryview:
        if batch.encoded is None:
            sequences = self._sender.sequences
            identity = {
                "flags": self._flags,
                "producer_id": sequences.producer_id,
                "producer_epoch": sequences.epoch,
                "base_sequence": batch.base_sequence,
            }
            if isinstance(batch.records, EncodedRecords):
                batch.encoded = batch.records.batch(**identity)
            else:
                records = cast("list[Record]", batch.records)
                batch.encoded = build_batch(records, codec=self.codec, level=self.codec_level, **identity)
        return batch.encoded

    # -- those who wait ------------------------------------------------------------------------------------

    def tell(self) -> None:
        heard = (self._cluster.metadata.version, self._cluster.hopeless)
        if not self._sender.finished and self._heard == heard:
            return
        self._heard = heard
        with self._changed:
            finished = self._sender.telling = self._sender.finished
            self._sender.finished = []
            self._changed.notify_all()
        for batch in finished:
            if batch.halves is None:
                for index, callback in batch.callbacks:
                    delivery = batch.delivery(index) if batch.error is None else None
                    self._call(callback, delivery, batch.error)
                if batch.on_done is not None:
                    self._call(batch.on_done, batch)
        if finished:  # those who flush wait for the callbacks too
            with self._changed:
                for batch in finished:
                    batch.is_told = True
                self._sender.telling = []
                self._changed.notify_all()

    @staticmethod
    def _call(callback: Callable[..., object], *given: object) -> None:
        try:
            callback(*given)
        except Exception:
            log.exception("a delivery callback failed")
