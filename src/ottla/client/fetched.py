"""What a fetch brought of one partition, decoded as it is asked for. Pure.

Skips what a consumer must not see: records before its position (a broker sends whole batches) or from its
stop on, control records, and with read_committed the records of aborted transactions. The last batch of an
answer may be cut short; it is fetched again. Records are taken as objects (`take`) or into columns (`fill`).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from ottla.client.errors import ClientError
from ottla.model.topics import TopicPartition
from ottla.protocol.messages.fetch import AbortedTransaction
from ottla.records import formats
from ottla.records.batch import MAGIC, BatchHeader
from ottla.records.columns import OFFSET_END, Columns
from ottla.records.findings import CorruptRecords
from ottla.records.kernel_choice import record_kernel
from ottla.records.plain_records import plain_records

_CONTROL_TYPE = struct.Struct(">hh")  # version, type
_ABORT = 0


class ConsumedRecord(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: Any  # bytes or None, or what the deserializer made of them
    value: Any
    headers: tuple[tuple[str, bytes | None], ...] = ()


class CorruptFetch(ClientError):
    """A batch is damaged: on the way, or on the broker's disk."""


class Fetched:
    """One partition's part of an answer."""

    def __init__(
        self,
        target: TopicPartition,
        data: memoryview,
        offset: int,
        *,
        aborted: Sequence[AbortedTransaction] | None,
        check_crcs: bool,
        stop_offset: int = OFFSET_END,
    ) -> None:
        """`aborted` is None where uncommitted records are wanted too."""
        self.target = target
        self.offset = offset  # the next record's that a reader may see
        self.end_offset = offset  # behind the last whole batch, or the stop
        self._data = data
        self._batches = list(formats.scan(data))
        self._stop_offset = stop_offset
        if self._batches:
            self.end_offset = min(max(offset, self._batches[-1][1].next_offset), stop_offset)
        self._next_batch = 0
        self._read_committed = aborted is not None
        self._aborted = sorted(aborted or (), key=lambda each: each.first_offset)
        self._aborted_producers: set[int] = set()
        self._check_crcs = check_crcs
        self._open: _OpenBatch | None = None

    @property
    def is_used_up(self) -> bool:
        return self._open is None and self._next_batch == len(self._batches)

    @property
    def holds_nothing_whole(self) -> bool:
        """Bytes came, but not one whole batch."""
        return not self._batches and len(self._data) > 0

    def take(self, count: int) -> list[ConsumedRecord]:
        """The next records, at most `count`. Raises CorruptFetch, again and again until somebody seeks."""
        taken: list[ConsumedRecord] = []
        try:
            while len(taken) < count and not self.is_used_up:
                if self._open is None:
                    self._open_next()
                else:
                    self._take_from(self._open, taken, count - len(taken))
        except CorruptRecords as error:
            if not taken:
                raise self._corrupt(error) from None
        return taken

    def fill(self, columns: Columns) -> None:
        """The next records into `columns`, until they are full. Raises as `take` does."""
        before = columns.rows
        try:
            while not columns.is_full and not self.is_used_up:
                if self._open is None:
                    self._open_next()
                else:
                    self._fill_from(self._open, columns)
        except CorruptRecords as error:
            if columns.rows == before:
                raise self._corrupt(error) from None

    def _corrupt(self, error: CorruptRecords) -> CorruptFetch:
        return CorruptFetch(f"{self.target}: {error}", "seek past it, or look at the broker's log")

    def _take_from(self, batch: _OpenBatch, taken: list[ConsumedRecord], count: int) -> None:
        records = batch.next_records(self.target, count)
        if records:
            if records[0].offset < self.offset or records[-1].offset >= self._stop_offset:
                records = [record for record in records if self.offset <= record.offset < self._stop_offset]
            taken += records
            if records:
                self.offset = records[-1].offset + 1
        self._maybe_close(batch)

    def _fill_from(self, batch: _OpenBatch, columns: Columns) -> None:
        before = columns.rows
        batch.fill(self.target, columns, self.offset, self._stop_offset)
        if columns.rows > before:
            self.offset = columns.next_offset
        self._maybe_close(batch)

    def _maybe_close(self, batch: _OpenBatch) -> None:
        if batch.is_used_up:
            self._open = None
            self.offset = min(max(self.offset, batch.header.next_offset), self.end_offset)

    def _open_next(self) -> None:
        position, header = self._batches[self._next_batch]
        if header.last_offset < self.offset:
            self._next_batch += 1
            return
        if header.magic == MAGIC and header.base_offset >= self._stop_offset:
            self._next_batch = len(self._batches)
            return
        if self._check_crcs and not formats.verify_crc(self._data, header, position):
            raise CorruptRecords(f"the batch at offset {header.base_offset} fails its checksum")
        data = self._data[position : position + header.size]
        if self._is_hidden(data, header):
            self.offset = min(max(self.offset, header.next_offset), self.end_offset)
        else:
            self._open = _OpenBatch(data, header)
        self._next_batch += 1

    def _is_hidden(self, data: memoryview, header: BatchHeader) -> bool:
        """Control records always; of aborted transactions what stands before their marker (KIP-98)."""
        if self._read_committed:
            while self._aborted and self._aborted[0].first_offset <= header.last_offset:
                self._aborted_producers.add(self._aborted.pop(0).producer_id)
        if header.is_control:
            if self._read_committed and header.producer_id in self._aborted_producers:
                (marker,) = _OpenBatch(data, header).next_records(self.target, 1)
                if _CONTROL_TYPE.unpack_from(marker.key or b"\0\0\0\0")[1] == _ABORT:
                    self._aborted_producers.discard(header.producer_id)
            return True
        return header.is_transactional and header.producer_id in self._aborted_producers


class _OpenBatch:
    """A batch of which some records may have been taken."""

    def __init__(self, data: memoryview, header: BatchHeader) -> None:
        self.header, self._plain = plain_records(header, data)
        self._left = self.header.record_count
        self._position = 0
        self._append_time = header.max_timestamp if header.is_log_append_time else None

    @property
    def is_used_up(self) -> bool:
        return self._left <= 0

    @property
    def timestamp_type(self) -> int:
        """As Spark's and Java's consumers number them: 0 the producer's, 1 the broker's, -1 there is none."""
        return -1 if self.header.magic == 0 else int(self.header.is_log_append_time)

    def next_records(self, target: TopicPartition, count: int) -> list[ConsumedRecord]:
        """Raises CorruptRecords where a broken one is the next."""
        records, self._position, fault = record_kernel.decode_records(
            self._plain,
            self._position,
            min(count, self._left),
            self.header.base_offset,
            self.header.base_timestamp,
            self._append_time,
            ConsumedRecord,
            tuple(target),
        )
        if fault >= 0 and not records:
            raise CorruptRecords(f"a record of the batch at {self.header.base_offset} breaks at byte {fault}")
        self._left -= len(records)
        return records

    def fill(self, target: TopicPartition, columns: Columns, first_offset: int, stop_offset: int) -> None:
        self._position, self._left = columns.add(
            self._plain,
            self._position,
            self._left,
            origin=target,
            base_offset=self.header.base_offset,
            base_timestamp=self.header.base_timestamp,
            append_time=self._append_time,
            timestamp_type=self.timestamp_type,
            first_offset=first_offset,
            end_offset=stop_offset,
        )
