"""One partition of an internal topic that this broker leads: a coordinator's state, and the way to its log.

What a decision writes is applied to the state at once and appended at the end of the turn, everything of the
turn with one write; who waits for it hears when the high watermark has passed it, so after the disk has it.
If the append fails, the state is ahead of its log and is thrown away; it is loaded anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from ottla.coordinator.state_log import StateMachine, StateRecord
from ottla.model.errors import CorruptData, ErrorCode, Refused
from ottla.model.offsets import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from ottla.model.values import NamedTuple
from ottla.records.batch import HEADER_BYTES, TRANSACTIONAL, CheckedBatch, read_header
from ottla.records.content import build_batch
from ottla.replica.events import Event
from ottla.replica.partition import Partition
from ottla.server.parking import ParkingKey

if TYPE_CHECKING:
    from ottla.server.state_topic import StateTopic

log = logging.getLogger(__name__)

M = TypeVar("M", bound=StateMachine)
Done = Callable[[Refused | None], None]

_RECORD_BYTES_MAX = 32
"""What a record takes besides key and value: five varints and a count of headers."""


class Producer(NamedTuple):
    """The transaction that records belong to."""

    id: int
    epoch: int


class _Write(NamedTuple):
    records: Sequence[StateRecord]
    size: int
    producer: Producer | None
    done: Done


class StatePartition(Generic[M]):
    def __init__(self, topic: StateTopic[M], partition: Partition, machine: M) -> None:
        self.partition = partition
        self.machine = machine
        self.is_loaded = False
        self.is_given_up = False  # deleted, led by another broker, or to be loaded anew
        self._topic = topic
        self._writes: list[_Write] = []  # of this turn
        self._later: list[_Write] = []  # applied, to be appended with the next ones

    @property
    def index(self) -> int:
        return self.partition.index

    @property
    def is_lost(self) -> bool:
        """What is written does not come back: another state has taken over, or the log is offline."""
        return self.is_given_up or self.partition.unavailable is not None

    def check_writable(self) -> None:
        """Refused when a write would fail: better than to decide something that must be taken back."""
        try:
            self.partition.check_in_sync()
            self.partition.log.check_room()
        except (Refused, OSError) as problem:
            raise Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(problem)) from None

    # -- writing -------------------------------------------------------------------------------------------

    def write(self, records: Sequence[StateRecord], done: Done, producer: Producer | None = None) -> None:
        """Applies the records now; `done` follows when they are durable, or with what went wrong.

        They are in the log all or not at all. Refused, with nothing applied, when they do not fit one batch.
        """
        size = 0
        for key, value in records:
            size += len(key) + _RECORD_BYTES_MAX
            if value is not None:
                size += len(value)
        if size > self._batch_bytes_max:
            raise Refused(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"{len(records)} records of {size} bytes do not fit a batch of {self.partition.topic}",
            )
        producer_id = NO_PRODUCER_ID if producer is None else producer.id
        for record in records:
            self.machine.apply(record, producer_id)
        self._queue(_Write(records, size, producer, done))

    def write_later(self, record: StateRecord) -> None:
        """Applies the record now; it is appended with whatever is written next, or when that is `urged`.

        For what costs nobody but who loads the log without it, and finds it out again.
        """
        key, value = record
        self.machine.apply(record, NO_PRODUCER_ID)
        self._later.append(_Write((record,), len(key) + len(value or b"") + _RECORD_BYTES_MAX, None, _ignore))

    @property
    def has_later(self) -> bool:
        """Something waits to be appended with the next write."""
        return bool(self._later)

    def urge(self) -> None:
        """What was to be written later is written in this turn."""
        if self._later:
            self._queue(_Write((), 0, None, _ignore))

    def when_durable(self, done: Done) -> None:
        """`done` when all that was written before is durable: at once, if it is already."""
        if self._writes or self._later or self.partition.high_watermark < self.partition.log_end_offset:
            self._queue(_Write((), 0, None, done))
        else:
            done(None)

    def _queue(self, write: _Write) -> None:
        if not self._writes:
            self._topic.mark_dirty(self)
        self._writes.append(write)

    @property
    def _batch_bytes_max(self) -> int:
        config = self.partition.config
        return min(config.max_message_bytes, config.segment_bytes) - HEADER_BYTES

    # -- appending -----------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Once in a turn."""
        writes = self._later + self._writes
        self._later, self._writes = [], []
        if self.is_lost:
            _tell(writes, Refused(ErrorCode.NOT_COORDINATOR))
            return
        services = self._topic.services
        try:
            batches = self._batches(writes, services.clock.wall_ms())
            if batches:
                self.partition.append(batches, services.clock.wall_ms())
        except (OSError, CorruptData) as error:
            refusal = self.partition.storage_refusal(error)
            log.error("%s could not be written and is loaded anew: %s", self.partition, refusal.text)
            _tell(writes, Refused(ErrorCode.NOT_COORDINATOR, refusal.text))
            self._topic.reload(self)
            return
        self._wait(writes, self.partition.log_end_offset)

    def _batches(self, writes: Sequence[_Write], now_ms: int) -> list[CheckedBatch]:
        """As few as possible; each transaction's records are in batches of their own."""
        batches: list[CheckedBatch] = []
        run: list[StateRecord] = []
        run_size = 0
        run_producer: Producer | None = None
        bytes_max = self._batch_bytes_max
        for write in writes:
            if not write.records:
                continue
            if run and (run_size + write.size > bytes_max or write.producer != run_producer):
                batches.append(self._batch(run, run_producer, now_ms))
                run, run_size = [], 0
            run += write.records
            run_size += write.size
            run_producer = write.producer
        if run:
            batches.append(self._batch(run, run_producer, now_ms))
        return batches

    def _batch(self, records: Sequence[StateRecord], producer: Producer | None, now_ms: int) -> CheckedBatch:
        built = build_batch(
            [(offset, now_ms, key, value, ()) for offset, (key, value) in enumerate(records)],
            codec=self._topic.codec,
            flags=TRANSACTIONAL if producer is not None else 0,
            producer_id=producer.id if producer is not None else NO_PRODUCER_ID,
            producer_epoch=producer.epoch if producer is not None else NO_PRODUCER_EPOCH,
            base_sequence=NO_SEQUENCE,
        )
        view = memoryview(built)
        return CheckedBatch(read_header(view), view)

    def _wait(self, writes: list[_Write], end_offset: int) -> None:
        partition, services = self.partition, self._topic.services

        def attempt() -> bool:
            if self.is_lost:
                _tell(writes, Refused(ErrorCode.NOT_COORDINATOR))
            elif partition.high_watermark >= end_offset:
                _tell(writes, None)
            else:
                return False
            return True

        def expire() -> None:
            _tell(writes, Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, "written, but not safe in time"))

        if attempt():
            return
        services.parking.park(
            [ParkingKey(partition.topic_id, partition.index, Event.HIGH_WATERMARK)],
            services.clock.monotonic_ms() + self._topic.commit_timeout_ms,
            attempt,
            expire,
            lambda error: log.error("%s: an answer failed", partition, exc_info=error),
        )


def _tell(writes: Sequence[_Write], refusal: Refused | None) -> None:
    """Each of them, also when one fails, which is a bug of ours."""
    for write in writes:
        try:
            write.done(refusal)
        except Exception:
            log.exception("what follows a write failed")


def _ignore(refusal: Refused | None) -> None:
    """Nobody waits."""
