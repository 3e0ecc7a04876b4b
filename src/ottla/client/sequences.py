"""Who a producer is to brokers, so that they drop what they have already (KIP-98, KIP-360). Pure.

Each batch carries the producer's id and epoch and the sequence of its first record; a broker writes sequences
of a partition without gaps, and each once. When a batch that had its sequence fails for good, those behind
it can never be written: the producer raises its epoch, and every partition counts from 0 again. That must
wait until no batch of the old epoch may still turn out to be written, or it would be written twice.
"""

from __future__ import annotations

from ottla.client.accumulator import Accumulator, Batch, Lane, next_sequence
from ottla.model.offsets import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE

_EPOCH_MAX = 32_767


class Sequences:
    def __init__(self, *, enabled: bool, transactional: bool = False) -> None:
        self.enabled = enabled
        self.transactional = transactional  # coordinators raise the epoch, never this class
        self.producer_id = NO_PRODUCER_ID
        self.epoch = NO_PRODUCER_EPOCH
        self.is_broken = False  # a sequence is missing: the epoch must be raised

    @property
    def is_ready(self) -> bool:
        """Whether batches can be given sequences, or need none."""
        return not self.enabled or self.producer_id != NO_PRODUCER_ID

    def begin(self, producer_id: int, epoch: int) -> None:
        """A broker has given this producer its identity."""
        self.producer_id = producer_id
        self.epoch = epoch

    def restart(self, producer_id: int, epoch: int, batches: Accumulator) -> None:
        """A coordinator has given a transactional producer its (next) identity; nothing is under way."""
        if (producer_id, epoch) == (self.producer_id, self.epoch):
            return
        self.begin(producer_id, epoch)
        self._count_from_zero(batches)

    def next_batch(self, lane: Lane) -> Batch | None:
        """The lane's oldest; while the epoch waits to be raised, the oldest whose fate must be known."""
        if not self.is_ready or not lane.queue:
            return None
        if not self.is_broken:
            return lane.queue[0]
        return next((batch for batch in lane.queue if batch.fate_unknown), None)

    def assign(self, batch: Batch) -> None:
        """For its first try; a retry keeps its sequence."""
        if not self.enabled or batch.base_sequence != NO_SEQUENCE:
            return
        lane = batch.lane
        batch.base_sequence = lane.next_sequence
        lane.next_sequence = next_sequence(lane.next_sequence, len(batch.records))

    def failed(self, batch: Batch) -> None:
        """The batch will not be tried again."""
        if batch.base_sequence != NO_SEQUENCE:
            self.is_broken = True

    def maybe_raise_epoch(self, batches: Accumulator) -> None:
        if self.transactional or not self.is_broken or any(True for _ in batches.in_flight()):
            return
        waiting = list(batches.waiting())
        if any(batch.fate_unknown for batch in waiting):
            return
        if self.epoch < _EPOCH_MAX:
            self.epoch += 1
        else:
            self.producer_id = NO_PRODUCER_ID  # a new one is asked for
        for batch in waiting:
            batch.base_sequence = NO_SEQUENCE
            batch.encoded = None
        self._count_from_zero(batches)

    def _count_from_zero(self, batches: Accumulator) -> None:
        self.is_broken = False
        for lane in batches.lanes.values():
            lane.next_sequence = 0
            lane.is_acknowledged = False
