"""What the batches of a log mean for its producers: those just appended, and those found at a start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ottla.log.producer_snapshots import ProducerSnapshots
from ottla.log.producer_state import CompletedTransaction, ProducerStates
from ottla.log.segment import Segment
from ottla.log.transaction_markers import read_marker
from ottla.records import kernel_choice
from ottla.records.batch import BatchHeader, CheckedBatch


def apply_appended(
    producers: ProducerStates, batches: Sequence[CheckedBatch], offset: int, append_time: int | None
) -> None:
    """The batches are in the log from `offset` on."""
    apply = producers.apply
    for batch in batches:
        header = batch.header
        if header.producer_id >= 0:
            if header.is_control:
                apply_marker(producers, header._replace(base_offset=offset), batch.body)
            else:
                apply(header, offset, header.max_timestamp if append_time is None else append_time)
        offset += header.last_offset_delta + 1


def rebuild_producers(
    producers: ProducerStates,
    snapshots: ProducerSnapshots,
    segments: Iterable[Segment],
    log_start_offset: int,
    end_offset: int,
    indexed_offset: int,
) -> None:
    """Bring `producers` to `end_offset`: from the newest snapshot, and the batches since then.

    Transactions that were aborted from `indexed_offset` on are added to the indexes of their segments.
    """
    snapshots.load(producers, end_offset, log_start_offset)
    for segment in segments:
        if segment.end_offset <= producers.end_offset or segment.size == 0:
            continue
        start = segment.position_of(producers.end_offset)
        for position, header in segment.headers(start, kernel_choice.scan_kernel.pass_unnamed):
            if header.producer_id < 0:
                continue
            if not header.is_control:
                producers.apply(header, header.base_offset, header.max_timestamp)
                continue
            completed = apply_marker(producers, header, segment.log.handle().pread(header.size, position))
            if completed is not None and completed.is_aborted and completed.last_offset >= indexed_offset:
                segment.txn_index.append(completed.as_aborted())
    producers.end_offset = end_offset


def apply_marker(
    producers: ProducerStates, header: BatchHeader, batch: bytes | memoryview
) -> CompletedTransaction | None:
    """A control batch is in the log: if it ends a transaction, the producer's is over."""
    marker = read_marker(batch)
    if marker is None:
        return None
    return producers.apply_marker(header, marker.coordinator_epoch, marker.is_abort)
