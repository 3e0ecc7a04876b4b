"""What a cleaning pass makes of one batch: the same, a shorter one, an empty one, or nothing.

Offsets never change. A batch that loses records keeps its base offset, last offset, producer and sequence,
and is compressed anew with its own codec. The last batch of a producer stays although it is empty, so that
its sequence survives, and so does the last batch of the pass, for the offset. Tombstones get a time from
which they may go (KIP-534), kept in the batch's base timestamp, when a pass meets them first; so do markers
of transactions without data. Messages of formats 0 and 1 keep their format, and can say none of this.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.log.cleaned_transactions import CleanedTransactions
from ottla.log.dedupe_map import DedupeMap
from ottla.model.offsets import NO_TIMESTAMP
from ottla.model.values import NamedTuple
from ottla.records import kernel_choice
from ottla.records.batch import (
    CODEC_MASK,
    DELETE_HORIZON,
    MAGIC,
    BatchHeader,
    Bytes,
    header_bytes,
    read_header,
)
from ottla.records.compression import compress
from ottla.records.formats import records_of
from ottla.records.legacy import build_legacy, read_legacy_header
from ottla.records.plain_records import broken, plain_records

_INT64_MAX = 2**63 - 1


class LastRecord(NamedTuple):
    """The last thing that a partition knows of a producer."""

    epoch: int
    last_offset: int | None  # of its data; None: only a marker is known


class Filtered(NamedTuple):
    header: BatchHeader
    data: Bytes  # the whole batch


class BatchFilter:
    def __init__(
        self,
        dedupe: DedupeMap,
        transactions: CleanedTransactions,
        producers: Mapping[int, LastRecord],
        end_offset: int,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        self._dedupe = dedupe
        self._transactions = transactions
        self._producers = producers
        self._end_offset = end_offset  # of the part of the log that may be cleaned at all
        self._now_ms = now_ms
        self._new_horizon_ms = min(now_ms + delete_retention_ms, _INT64_MAX)

    def filter(
        self, header: BatchHeader, batch: memoryview, *, keep_old_tombstones: bool = True
    ) -> Filtered | None:
        """What stays of the batch. Raises CorruptRecords."""
        if header.magic < MAGIC:
            return self._old_messages(header, batch, keep_old_tombstones)
        can_discard = self._transactions.can_discard(header, batch)
        horizon_ms = header.delete_horizon_ms
        if header.is_control:
            if can_discard and horizon_ms is not None and horizon_ms <= self._now_ms:
                return self._without_records(header)
            return self._marker(header, batch, gets_horizon=can_discard and horizon_ms is None)
        if can_discard or header.record_count == 0:
            return self._without_records(header)
        return self._data(header, batch)

    def _data(self, header: BatchHeader, batch: memoryview) -> Filtered | None:
        _, plain = plain_records(header, batch)
        keep = bytearray(header.record_count)
        horizon_ms = header.delete_horizon_ms
        kept, tombstones = self._dedupe.choose(
            header, plain, keep, keep_tombstones=horizon_ms is None or self._now_ms < horizon_ms
        )
        if kept == 0:
            return self._without_records(header)
        gets_horizon = tombstones > 0 and horizon_ms is None
        if kept == header.record_count and not gets_horizon:
            return Filtered(header, batch)
        return _rewritten(header, plain, keep, kept, self._new_horizon_ms if gets_horizon else horizon_ms)

    def _old_messages(self, header: BatchHeader, batch: memoryview, keep_tombstones: bool) -> Filtered | None:
        shown, plain = plain_records(header, batch)
        keep = bytearray(shown.record_count)
        kept, _ = self._dedupe.choose(shown, plain, keep, keep_tombstones=keep_tombstones)
        if kept == shown.record_count:
            return Filtered(header, batch)
        if kept == 0:
            return None
        append_time_ms = header.max_timestamp if header.is_log_append_time else None
        stay = [record for record, stays in zip(records_of(batch), keep, strict=True) if stays]
        data = build_legacy(stay, header.magic, header.codec, append_time_ms=append_time_ms)
        return Filtered(read_legacy_header(data, 0), data)

    def _marker(self, header: BatchHeader, batch: memoryview, *, gets_horizon: bool) -> Filtered | None:
        if header.record_count == 0:
            return self._without_records(header)
        if not gets_horizon:
            return Filtered(header, batch)
        count = header.record_count
        _, plain = plain_records(header, batch)
        return _rewritten(header, plain, bytearray(b"\1") * count, count, self._new_horizon_ms)

    def _without_records(self, header: BatchHeader) -> Filtered | None:
        """An empty batch where one must stay, else nothing."""
        if not (self._is_last_of_producer(header) or header.next_offset == self._end_offset):
            return None
        attributes = header.attributes & ~(CODEC_MASK | DELETE_HORIZON)
        empty = header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP, record_count=0)
        data = header_bytes(empty, b"")
        return Filtered(read_header(data), data)

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self._producers.get(header.producer_id) if header.has_producer else None
        if last is None:
            return False
        if last.last_offset is not None:
            return header.last_offset == last.last_offset
        return header.is_control and header.producer_epoch == last.epoch


def _rewritten(
    header: BatchHeader, plain: Bytes, keep: bytearray, kept: int, horizon_ms: int | None
) -> Filtered:
    records, base_timestamp, max_timestamp, fault = kernel_choice.compaction_kernel.copy_records(
        plain, header.record_count, keep, kept, header.base_timestamp, horizon_ms
    )
    if fault >= 0:
        raise broken(header, -1, fault)
    attributes = header.attributes & ~DELETE_HORIZON | (0 if horizon_ms is None else DELETE_HORIZON)
    changed = header._replace(
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=header.max_timestamp if header.is_log_append_time else max_timestamp,
        record_count=kept,
    )
    body = compress(header.codec, records)
    data = b"".join((header_bytes(changed, body), body))
    return Filtered(read_header(data), data)
