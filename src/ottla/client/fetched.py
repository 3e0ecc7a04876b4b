"""What a fetch brought of one partition, decoded as it is asked for. Pure.

Skips what a consumer must not see: records before its position (a broker sends whole batches), control
records, and with read_committed the records of aborted transactions. The last batch of an answer may be cut
short; it is fetched again.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from ottla.client.errors import ClientError
from ottla.model.limits import DECOMPRESSED_BYTES_MAX
from ottla.model.topics import TopicPartition
from ottla.protocol.messages.fetch import AbortedTransaction
from ottla.records import formats
from ottla.records.batch import HEADER_BYTES, MAGIC, BatchHeader
from ottla.records.compression import decompress
from ottla.records.findings import CorruptRecords
from ottla.records.kernel_choice import record_kernel

_CONTROL_TYPE = struct.Struct(">hh")  # version, type
_ABORT = 0


class ConsumedRecord(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
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
    ) -> None:
        """`aborted` is None where uncommitted records are wanted too."""
        self.target = target
        self.offset = offset  # the next record's that a reader may see
        self.end_offset = offset  # behind the last whole batch
        self._data = data
        self._batches = list(formats.scan(data))
        if self._batches:
            self.end_offset = max(offset, self._batches[-1][1].next_offset)
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
                raise CorruptFetch(
                    f"{self.target}: {error}", "seek past it, or look at the broker's log"
                ) from None
        return taken

    def _take_from(self, batch: _OpenBatch, taken: list[ConsumedRecord], count: int) -> None:
        records = batch.next_records(self.target, count)
        if records:
            if records[0].offset < self.offset:
                records = [record for record in records if record.offset >= self.offset]
            taken += records
            if records:
                self.offset = records[-1].offset + 1
        if batch.is_used_up:
            self._open = None
            self.offset = max(self.offset, batch.header.next_offset)

    def _open_next(self) -> None:
        position, header = self._batches[self._next_batch]
        if header.last_offset < self.offset:
            self._next_batch += 1
            return
        if self._check_crcs and not formats.verify_crc(self._data, header, position):
            raise CorruptRecords(f"the batch at offset {header.base_offset} fails its checksum")
        batch = _OpenBatch(self._data[position : position + header.size], header)
        self._next_batch += 1
        if self._is_hidden(batch):
            self.offset = max(self.offset, header.next_offset)
        else:
            self._open = batch

    def _is_hidden(self, batch: _OpenBatch) -> bool:
        """Control records always; of aborted transactions what stands before their marker (KIP-98)."""
        header = batch.header
        if self._read_committed:
            while self._aborted and self._aborted[0].first_offset <= header.last_offset:
                self._aborted_producers.add(self._aborted.pop(0).producer_id)
        if header.is_control:
            if self._read_committed and header.producer_id in self._aborted_producers:
                (marker,) = batch.next_records(self.target, 1)
                if _CONTROL_TYPE.unpack_from(marker.key or b"\0\0\0\0")[1] == _ABORT:
                    self._aborted_producers.discard(header.producer_id)
            return True
        return header.is_transactional and header.producer_id in self._aborted_producers


class _OpenBatch:
    """A batch of which some records may have been taken."""

    def __init__(self, data: memoryview, header: BatchHeader) -> None:
        self.header = header
        self._left = header.record_count
        self._position = 0
        if header.magic == MAGIC:
            self._plain = decompress(header.codec, data[HEADER_BYTES:], DECOMPRESSED_BYTES_MAX)
            self._append_time = header.max_timestamp if header.is_log_append_time else None
        else:
            self._old_records = formats.records_of(data)
            self._left = 1

    @property
    def is_used_up(self) -> bool:
        return self._left <= 0

    def next_records(self, target: TopicPartition, count: int) -> list[ConsumedRecord]:
        if self.header.magic != MAGIC:
            self._left = 0
            return [ConsumedRecord._make((*target, *record)) for record in self._old_records]
        wanted = min(count, self._left)
        records, self._position, fault = record_kernel.decode_records(
            self._plain,
            self._position,
            wanted,
            self.header.base_offset,
            self.header.base_timestamp,
            self._append_time,
            ConsumedRecord,
            tuple(target),
        )
        if fault >= 0:
            raise CorruptRecords(f"a record of the batch at {self.header.base_offset} breaks at byte {fault}")
        self._left -= wanted
        return records
