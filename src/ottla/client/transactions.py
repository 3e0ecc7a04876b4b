"""A transactional producer's life: what it may do when, and what must be asked of coordinators. Pure.

    UNINITIALIZED ─▶ INITIALIZING ─▶ READY ─▶ OPEN ─▶ COMMITTING ─▶ READY
                                              OPEN ─▶ MUST_ABORT ─▶ ABORTING ─▶ READY
                                              OPEN ─▶ DETACHED        anything ─▶ FATAL

The shell hands in what callers want (`initialize`, `begin`, `commit`, …), sends what `next_request` gives,
one request at a time, and hands answers to `take`. `sender` asks `may_send` for each partition and reports
batches that failed: a transaction that lost a record can only be aborted.

With transaction.version 2 (KIP-890) brokers add partitions by themselves and each transaction has an epoch of
its own, which the end of the one before gives. Before that, partitions and groups are added by requests, and
the epoch is raised by InitProducerId where a sequence was lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from ottla.client import transaction_requests as requests
from ottla.client.accumulator import Accumulator
from ottla.client.addresses import Address
from ottla.client.admin_values import CommittedOffset, GroupMetadata, OpenTransaction
from ottla.client.backoff import Backoff
from ottla.client.errors import (
    ClientError,
    ConnectionFailed,
    Misused,
    ProducerFenced,
    TimedOut,
    TransactionAborted,
    TransactionFailed,
)
from ottla.client.sequences import Sequences
from ottla.client.transaction_requests import Kind, Request, Verdict
from ottla.model.errors import ErrorCode
from ottla.model.offsets import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from ottla.model.topics import TopicPartition
from ottla.protocol.fields import Message

CONCURRENT_PAUSE_MS = 20  # the markers of the transaction before are on their way: that is soon over


class State(Enum):
    UNINITIALIZED = auto()
    INITIALIZING = auto()
    READY = auto()
    OPEN = auto()
    COMMITTING = auto()
    MUST_ABORT = auto()
    ABORTING = auto()
    DETACHED = auto()  # the transaction is open, and somebody else will end it
    FATAL = auto()


_NEXT: dict[State, tuple[State, ...]] = {
    State.UNINITIALIZED: (State.INITIALIZING,),
    State.INITIALIZING: (State.READY, State.FATAL),
    State.READY: (State.OPEN, State.FATAL),
    State.OPEN: (State.COMMITTING, State.ABORTING, State.MUST_ABORT, State.DETACHED, State.FATAL),
    State.COMMITTING: (State.READY, State.MUST_ABORT, State.FATAL),
    State.MUST_ABORT: (State.ABORTING, State.FATAL),
    State.ABORTING: (State.READY, State.MUST_ABORT, State.FATAL),  # once more, if the coordinator says so
    State.DETACHED: (),
    State.FATAL: (),
}

_NOT_NOW = {
    State.UNINITIALIZED: "call init_transactions() first",
    State.INITIALIZING: "init_transactions() has not returned yet; call it again to go on waiting",
    State.READY: "call begin_transaction() first",
    State.OPEN: "a transaction is open; commit or abort it first",
    State.COMMITTING: "a commit is under way; call commit_transaction() again to wait for its outcome",
    State.ABORTING: "an abort is under way; call abort_transaction() again to wait for it",
    State.DETACHED: "the transaction was handed over; close this producer",
}


@dataclass(eq=False, slots=True)
class Operation:
    """What a caller waits for."""

    is_done: bool = False
    error: ClientError | None = None


@dataclass(frozen=True, slots=True)
class PendingOffsets:
    group: GroupMetadata
    offsets: Mapping[TopicPartition, CommittedOffset]


class Transactions:
    def __init__(
        self,
        transactional_id: str,
        timeout_ms: int,
        sequences: Sequences,
        batches: Accumulator,
        backoff: Backoff,
        *,
        two_phase: bool = False,
    ) -> None:
        self.id = transactional_id
        self.timeout_ms = timeout_ms
        self.two_phase = two_phase
        self.state = State.UNINITIALIZED
        self.error: ClientError | None = None  # why it must abort, or why nothing goes any more
        self.level = 0  # transaction.version of the coordinator, as last heard
        self.is_v2 = False  # fixed when a transaction begins
        self.partitions: set[TopicPartition] = set()  # part of the transaction
        self.groups: set[str] = set()  # whose offsets are part of it
        self.coordinator: Address | None = None
        self.group_coordinator: Address | None = None
        self.offsets: PendingOffsets | None = None
        self.sequences = sequences
        self._batches = batches
        self._backoff = backoff
        self._new_partitions: set[TopicPartition] = set()  # to be added before they are sent to
        self._operation: Operation | None = None
        self._must_raise_epoch = False  # after the abort, by InitProducerId
        self._in_flight = False
        self._failures = 0
        self._not_before_ms = 0

    # -- what callers want ---------------------------------------------------------------------------------

    def initialize(self) -> Operation:
        if self.state is State.INITIALIZING and self._operation is not None:
            return self._operation
        if self.state is State.READY:
            raise Misused("the transactions of this producer are initialized already")
        self._need(State.UNINITIALIZED)
        self._go(State.INITIALIZING)
        return self._begin_operation()

    def begin(self) -> None:
        self._need(State.READY)
        self._go(State.OPEN)
        self.is_v2 = self.level >= requests.LEVEL_2
        self.partitions.clear()
        self.groups.clear()
        self._new_partitions.clear()

    def add_offsets(
        self, group: GroupMetadata, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> Operation:
        self._need(State.OPEN)
        if self.offsets is not None:
            raise Misused("offsets are being added already", "call from one thread at a time")
        self.offsets = PendingOffsets(group, offsets)
        self.group_coordinator = None
        return self._begin_operation()

    def commit(self) -> Operation:
        if self.state is State.COMMITTING and self._operation is not None:
            return self._operation
        self._need(State.OPEN)
        self._go(State.COMMITTING)
        return self._begin_operation()

    def abort(self) -> Operation:
        if self.state is State.ABORTING and self._operation is not None:
            return self._operation
        if self.state is not State.MUST_ABORT:
            self._need(State.OPEN)
        self._go(State.ABORTING)
        self.offsets = None
        self._end_operation(TransactionAborted("the transaction was aborted"))
        return self._begin_operation()

    def detach(self) -> OpenTransaction:
        """Everything is delivered; from now on the transaction is somebody else's to end."""
        self._need(State.OPEN)
        self._go(State.DETACHED)
        return OpenTransaction(
            self.id, self.sequences.producer_id, self.sequences.epoch, is_empty=not self._has_content
        )

    def check_open(self) -> None:
        """Whether a record may be sent now; raises why not."""
        if self.state is not State.OPEN:
            self._need(State.OPEN)

    @property
    def may_be_ended(self) -> bool:
        return self.state in (State.OPEN, State.MUST_ABORT)

    def _need(self, state: State) -> None:
        if self.state is state:
            return
        if self.state is State.MUST_ABORT:
            raise self._failed_transaction()
        if self.state is State.FATAL:
            assert self.error is not None
            raise self.error
        raise Misused("that cannot be done now", _NOT_NOW[self.state])

    def _failed_transaction(self) -> ClientError:
        assert self.error is not None
        if isinstance(self.error, ProducerFenced | TransactionFailed):
            return self.error
        return TransactionFailed(self.error)

    def _go(self, state: State) -> None:
        assert state in _NEXT[self.state], f"{self.state} to {state}"
        self.state = state

    def _begin_operation(self) -> Operation:
        self._failures = 0
        self._not_before_ms = 0
        self._operation = Operation()
        return self._operation

    def _end_operation(self, error: ClientError | None) -> None:
        if self._operation is not None:
            self._operation.error = error
            self._operation.is_done = True
            self._operation = None

    # -- batches -------------------------------------------------------------------------------------------

    @property
    def is_sending(self) -> bool:
        return self.state in (State.OPEN, State.COMMITTING)

    def may_send(self, target: TopicPartition) -> bool:
        """Whether a batch may go to this partition now; before version 2 it may have to be added first."""
        if not self.is_sending:
            return False
        if self.is_v2:
            self.partitions.add(target)
            return True
        if target in self.partitions:
            return True
        self._new_partitions.add(target)
        return False

    def batch_failed(self, error: ClientError) -> None:
        """A record of the transaction is lost, so it must not be committed."""
        if self.is_sending:
            self._must_abort(error)

    # -- what must be asked --------------------------------------------------------------------------------

    @property
    def _has_content(self) -> bool:
        return bool(self.partitions or self.groups)

    def next_request(self, now_ms: int) -> Request | None:
        """What to send now; counts as under way. A commit or abort with nothing to say ends here."""
        if self._in_flight or now_ms < self._not_before_ms:
            return None
        request = self._wanted()
        if request is not None:
            self._in_flight = True
        return request

    def next_ms(self, now_ms: int, idle_ms: int) -> int:
        waiting = self._operation is not None or bool(self._new_partitions)
        return max(self._not_before_ms - now_ms, 0) if waiting and now_ms < self._not_before_ms else idle_ms

    def _wanted(self) -> Request | None:
        match self.state:
            case State.INITIALIZING:
                return self._asked_coordinator(requests.init)
            case State.OPEN | State.COMMITTING if self._new_partitions:
                return self._asked_coordinator(
                    lambda known: requests.add_partitions(known, frozenset(self._new_partitions))
                )
            case State.OPEN if self.offsets is not None:
                return self._asked_offsets(self.offsets)
            case State.COMMITTING if not self._batches.unfinished and self._is_landed():
                return self._asked_end(commit=True)
            case State.ABORTING if self._is_landed():
                return self._asked_end(commit=False)
        return None

    def _is_landed(self) -> bool:
        return not any(True for _ in self._batches.in_flight())

    def _asked_coordinator(self, make: requests.Make) -> Request:
        return requests.find(self.id, Kind.FIND_COORDINATOR) if self.coordinator is None else make(self)

    def _asked_offsets(self, pending: PendingOffsets) -> Request:
        group_id = pending.group.group_id
        if not self.is_v2 and group_id not in self.groups:
            return self._asked_coordinator(lambda known: requests.add_offsets(known, group_id))
        if self.group_coordinator is None:
            return requests.find(group_id, Kind.FIND_GROUP_COORDINATOR)
        self.groups.add(group_id)
        return requests.commit_offsets(self, pending.group, pending.offsets)

    def _asked_end(self, *, commit: bool) -> Request | None:
        if self._must_raise_epoch:
            return self._asked_coordinator(requests.init)
        if self._has_content:
            return self._asked_coordinator(lambda known: requests.end(known, commit=commit))
        self._ended()
        return None

    # -- answers -------------------------------------------------------------------------------------------

    def take(self, request: Request, result: Message | ClientError, now_ms: int) -> None:
        self._in_flight = False
        if isinstance(result, ClientError):
            self._no_answer(request, result, now_ms)
            return
        code = requests.worst_code(request.kind, result)
        verdict = requests.judge(code)
        if verdict is Verdict.DONE:
            self._failures = 0
            self._done(request, result)
            return
        error = requests.problem(self.id, request.kind, code, result)
        if verdict is Verdict.ASK_AGAIN or verdict is Verdict.FIND_AGAIN:
            if verdict is Verdict.FIND_AGAIN:
                self._forget_coordinator(request.kind)
            self._pause(now_ms, is_short=code is ErrorCode.CONCURRENT_TRANSACTIONS)
        elif verdict is Verdict.FAIL or request.kind is Kind.INIT:
            self.fail(error)
        elif self.is_sending or request.kind is Kind.END:
            self._must_abort(error)

    def _no_answer(self, request: Request, error: ClientError, now_ms: int) -> None:
        if isinstance(error, ConnectionFailed | TimedOut) and error.retriable:
            self._forget_coordinator(request.kind)
            self._pause(now_ms)
        else:
            self.fail(error)

    def _forget_coordinator(self, kind: Kind) -> None:
        if kind in (Kind.COMMIT_OFFSETS, Kind.FIND_GROUP_COORDINATOR):
            self.group_coordinator = None
        else:
            self.coordinator = None

    def _pause(self, now_ms: int, *, is_short: bool = False) -> None:
        self._failures += 1
        pause_ms = self._backoff.pause_ms(self._failures)
        self._not_before_ms = now_ms + (min(pause_ms, CONCURRENT_PAUSE_MS) if is_short else pause_ms)

    def _done(self, request: Request, answer: Message) -> None:
        match request.kind:
            case Kind.FIND_COORDINATOR:
                self.coordinator = requests.found(answer)
            case Kind.FIND_GROUP_COORDINATOR:
                self.group_coordinator = requests.found(answer)
            case Kind.INIT:
                self._identified(*requests.identity(answer))
                if self.state is State.INITIALIZING:
                    self._go(State.READY)
                    self._end_operation(None)
                else:
                    self._ended()
            case Kind.ADD_PARTITIONS:
                self.partitions |= request.partitions
                self._new_partitions -= request.partitions
            case Kind.ADD_OFFSETS:
                self.groups.add(request.group_id)
            case Kind.COMMIT_OFFSETS:
                self.offsets = None
                if self.state is State.OPEN:
                    self._end_operation(None)
            case Kind.END:
                self._end_answered(answer)

    def _end_answered(self, answer: Message) -> None:
        producer_id, epoch = requests.identity(answer)
        if producer_id != NO_PRODUCER_ID and epoch != NO_PRODUCER_EPOCH:
            self._identified(producer_id, epoch)
        elif self.sequences.is_broken:
            self._must_raise_epoch = True  # `next_request` asks for it, and ends the abort
            return
        self._ended()

    def _identified(self, producer_id: int, epoch: int) -> None:
        self.sequences.restart(producer_id, epoch, self._batches)
        self._must_raise_epoch = False

    def _ended(self) -> None:
        self._go(State.READY)
        self.error = None
        self.offsets = None
        self._end_operation(None)

    # -- errors --------------------------------------------------------------------------------------------

    def _must_abort(self, error: ClientError) -> None:
        self._go(State.MUST_ABORT)
        self.error = error
        self.offsets = None
        self._new_partitions.clear()
        self._end_operation(self._failed_transaction())

    def fail(self, error: ClientError) -> None:
        """Nothing goes any more."""
        if self.state is not State.FATAL:
            if self.state is not State.DETACHED:
                self.state = State.FATAL
            self.error = error
            self._end_operation(error)
