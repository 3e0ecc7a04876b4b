"""Which batches go to which broker when, and what an answer means for them. Pure: no socket, thread or clock.

Order within a partition: batches go out oldest first, and several may be in flight. When one must be tried
again, nothing more of its partition is sent until all that is in flight has come back; then they go again in
their order. With idempotence the broker keeps order and drops duplicates; without it, order under retries
holds only with one request in flight.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ottla.client.accumulator import Accumulator, Batch, Lane
from ottla.client.backoff import Backoff
from ottla.client.cluster_view import Broker, ClusterView
from ottla.client.errors import (
    BrokerError,
    BrokerUnreachable,
    ClientError,
    ConnectionFailed,
    ProducerFenced,
    TimedOut,
    broker_error,
    error_code,
)
from ottla.client.sequences import Sequences
from ottla.client.transactions import CONCURRENT_PAUSE_MS, State, Transactions
from ottla.model.errors import ErrorCode
from ottla.model.limits import MIB
from ottla.protocol.messages.produce import PartitionProduceResponse

_REQUEST_BYTES_MAX = 8 * MIB
"""Batches of one request together, except for a first one that is larger: far below what brokers refuse."""

_IDLE_MS = 60_000

_PERHAPS_WRITTEN = frozenset({ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.REQUEST_TIMED_OUT})
_SEQUENCE_ERRORS = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)


@dataclass(frozen=True, slots=True)
class SendRules:
    linger_ms: int
    delivery_timeout_ms: int
    retries: int
    in_flight_max: int  # requests per broker


class Sender:
    def __init__(
        self,
        batches: Accumulator,
        sequences: Sequences,
        rules: SendRules,
        backoff: Backoff,
        transactions: Transactions | None = None,
    ) -> None:
        self.batches = batches
        self.sequences = sequences
        self.transactions = transactions
        self.is_flushing = False  # nothing lingers
        self.wants_metadata = False  # a leader is unknown or has moved
        self.finished: list[Batch] = []  # done since the owner last looked
        self.telling: list[Batch] = []  # whose callbacks are running
        self._rules = rules
        self._backoff = backoff
        self._requests: dict[int, int] = {}  # in flight, by broker
        self._turn = 0

    # -- what to send --------------------------------------------------------------------------------------

    def drain(self, view: ClusterView, now_ms: int) -> list[tuple[Broker, list[Batch]]]:
        """Requests that may go now; their batches count as in flight."""
        self.sequences.maybe_raise_epoch(self.batches)
        chosen: dict[int, list[Batch]] = {}
        sizes: dict[int, int] = {}
        for lane in self._lanes_in_turn():
            batch = self.sequences.next_batch(lane)
            if batch is None or not self._is_due(batch, now_ms):
                continue
            if self.transactions is not None and not self.transactions.may_send(lane.target):
                continue
            leader = view.leader(lane.target)
            if leader is None:
                self.wants_metadata = True
                batch.error = view.leaderless(lane.target)  # told if time runs out
                continue
            full = sizes.get(leader.id, 0) + batch.size > _REQUEST_BYTES_MAX and leader.id in chosen
            if full or self._requests.get(leader.id, 0) >= self._rules.in_flight_max:
                continue
            self._take(batch)
            chosen.setdefault(leader.id, []).append(batch)
            sizes[leader.id] = sizes.get(leader.id, 0) + batch.size
        for broker_id in chosen:
            self._requests[broker_id] = self._requests.get(broker_id, 0) + 1
        return [(view.brokers[broker_id], batches) for broker_id, batches in chosen.items()]

    def _lanes_in_turn(self) -> list[Lane]:
        """Each time from another lane on, so that full requests leave none behind for ever."""
        lanes = list(self.batches.lanes.values())
        self._turn += 1
        start = self._turn % len(lanes) if lanes else 0
        return lanes[start:] + lanes[:start]

    def _is_due(self, batch: Batch, now_ms: int) -> bool:
        in_flight = batch.lane.in_flight
        if batch.attempts:
            return not in_flight and batch.not_before_ms <= now_ms
        if in_flight and not self._may_overtake(batch.lane):
            return False
        return self._lingers_until(batch) <= now_ms

    def _may_overtake(self, lane: Lane) -> bool:
        """Whether a further batch may go out while others are in flight, without any risk for their order.

        A broker takes whatever sequence comes first of a producer that is new to it: so the first batch goes
        alone. And while order is being restored after a failure, one goes after the other.
        """
        if self._rules.in_flight_max == 1 or any(batch.attempts > 1 for batch in lane.in_flight):
            return False
        return lane.is_acknowledged or not self.sequences.enabled

    def _lingers_until(self, batch: Batch) -> int:
        if self.is_flushing or not batch.is_open or self._is_committing:
            return 0
        return batch.created_ms + self._rules.linger_ms

    @property
    def _is_committing(self) -> bool:
        return self.transactions is not None and self.transactions.state is State.COMMITTING

    def _take(self, batch: Batch) -> None:
        batch.lane.queue.remove(batch)
        batch.lane.in_flight.append(batch)
        batch.is_open = False
        batch.attempts += 1
        self.sequences.assign(batch)

    def next_ms(self, now_ms: int) -> int:
        """Milliseconds until a batch is due or too old; what is in flight wakes us by itself."""
        soonest = now_ms + _IDLE_MS
        for lane in self.batches.lanes.values():
            if lane.queue:
                batch = lane.queue[0]
                due_ms = batch.not_before_ms if batch.attempts else self._lingers_until(batch)
                if due_ms > now_ms:
                    soonest = min(soonest, due_ms)
            for batch in (*lane.in_flight[:1], *([lane.queue[0]] if lane.queue else [])):
                soonest = min(soonest, batch.created_ms + self._rules.delivery_timeout_ms)
        return max(soonest - now_ms, 0)

    @property
    def problem(self) -> ClientError | None:
        """What the oldest batch that is not delivered waits for; None: nothing that is known."""
        first = [
            batch
            for lane in self.batches.lanes.values()
            for batch in (*lane.in_flight[:1], *list(lane.queue)[:1])
        ]
        return min(first, key=lambda batch: batch.created_ms).error if first else None

    # -- what came of it -----------------------------------------------------------------------------------

    def request_ended(self, broker_id: int) -> None:
        """An answer came, or none will: the broker may get another request."""
        self._requests[broker_id] -= 1

    def no_answer(self, batches: Iterable[Batch], error: ClientError, now_ms: int) -> None:
        """The request was lost, or refused as a whole."""
        for batch in batches:
            if not isinstance(error, BrokerUnreachable):
                batch.fate_unknown = True
            passing = isinstance(error, ConnectionFailed | TimedOut) and error.retriable
            self._failed(batch, error, now_ms, retriable=passing)
        self.wants_metadata = True

    def answered(self, batch: Batch, answer: PartitionProduceResponse, now_ms: int) -> None:
        code = error_code(answer.error_code)
        # Other errors say nothing about earlier tries of the same batch.
        if code in _SEQUENCE_ERRORS:
            batch.fate_unknown = False
        elif code in _PERHAPS_WRITTEN:
            batch.fate_unknown = True
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            append_time_ms = answer.log_append_time_ms
            self._delivered(
                batch,
                answer.base_offset if answer.base_offset >= 0 else None,
                append_time_ms if append_time_ms >= 0 else None,
            )
            return
        error = broker_error(answer.error_code, str(batch.lane.target), answer.error_message)
        if code is ErrorCode.MESSAGE_TOO_LARGE and len(batch.records) > 1 and not batch.is_done:
            self._split(batch)
            return
        if code in _SEQUENCE_ERRORS and self.sequences.enabled:
            self._sequence_refused(batch, error, now_ms)
            return
        self.wants_metadata |= error.retriable
        self._failed(batch, error, now_ms, retriable=error.retriable)

    def not_answered(self, batches: Iterable[Batch]) -> None:
        """acks=0: sent is all there is."""
        for batch in batches:
            self._delivered(batch, None, None)

    def expire(self, now_ms: int) -> None:
        """Fails what was not delivered within delivery.timeout.ms."""
        oldest_ms = now_ms - self._rules.delivery_timeout_ms
        for lane in self.batches.lanes.values():
            while lane.queue and lane.queue[0].created_ms <= oldest_ms:
                batch = lane.queue.popleft()
                self.sequences.failed(batch)
                self._finish(batch, self._too_late(batch))
            for batch in lane.in_flight:
                if batch.created_ms <= oldest_ms and not batch.is_done:
                    self._finish(batch, self._too_late(batch))

    def fail_queued(self, error: ClientError) -> None:
        """What waits is never sent: its transaction is lost. What is in flight comes back by itself."""
        for lane in self.batches.lanes.values():
            while lane.queue:
                batch = lane.queue.popleft()
                self.sequences.failed(batch)
                self._finish(batch, error)

    def fail_all(self, error: ClientError) -> None:
        """Nothing will be sent any more."""
        for lane in self.batches.lanes.values():
            for batch in (*lane.in_flight, *lane.queue):
                if not batch.is_done:
                    self._finish(batch, error)
            lane.queue.clear()
            lane.in_flight.clear()

    def _delivered(self, batch: Batch, offset: int | None, append_time_ms: int | None) -> None:
        batch.lane.is_acknowledged = True
        if not self._landed(batch) or batch.is_done:  # too late for its sender, but written
            return
        batch.base_offset = offset
        batch.append_time_ms = append_time_ms
        self._finish(batch, None)

    def _failed(self, batch: Batch, error: ClientError, now_ms: int, *, retriable: bool) -> None:
        lane = batch.lane
        if not self._landed(batch):
            return
        lost = self.transactions is not None and not self.transactions.is_sending
        if not batch.is_done and retriable and not lost and batch.attempts <= self._rules.retries:
            pause_ms = self._backoff.pause_ms(batch.attempts)
            if isinstance(error, BrokerError) and error.code is ErrorCode.CONCURRENT_TRANSACTIONS:
                pause_ms = min(pause_ms, CONCURRENT_PAUSE_MS)
            batch.not_before_ms = now_ms + pause_ms
            batch.error = error  # of the last try; told if time runs out
            lane.put_back(batch)
            return
        self.sequences.failed(batch)
        if not batch.is_done:
            self._finish(batch, error)

    def _sequence_refused(self, batch: Batch, error: ClientError, now_ms: int) -> None:
        """Not written. Behind an older batch it waits for its turn, else the epoch must be raised first."""
        lane = batch.lane
        older = any(each.order < batch.order for each in (*lane.in_flight, *lane.queue))
        if self.transactions is not None:
            fenced = isinstance(error, ProducerFenced)
            self._failed(batch, error, now_ms, retriable=older and not fenced)
            return
        if not older:
            self.sequences.is_broken = True
        self._failed(batch, error, now_ms, retriable=True)

    def _split(self, batch: Batch) -> None:
        self._landed(batch)
        for half in self.batches.split(batch):
            batch.lane.put_back(half)
        self.finished.append(batch)

    @staticmethod
    def _landed(batch: Batch) -> bool:
        """Takes it out of flight; false: `fail_all` has done that."""
        if batch not in batch.lane.in_flight:
            return False
        batch.lane.in_flight.remove(batch)
        return True

    def _finish(self, batch: Batch, error: ClientError | None) -> None:
        batch.error = error
        self.batches.finish(batch)
        self.finished.append(batch)
        if error is not None and self.transactions is not None:
            self.transactions.batch_failed(error)

    def _too_late(self, batch: Batch) -> ClientError:
        text = f"{batch.lane.target}: not delivered within {self._rules.delivery_timeout_ms} ms"
        if batch.error is not None:
            late = TimedOut(f"{text}: {batch.error.text}", batch.error.cure)
            late.__cause__ = batch.error
            return late
        return TimedOut(text, "the broker is too slow or away; see delivery.timeout.ms")
