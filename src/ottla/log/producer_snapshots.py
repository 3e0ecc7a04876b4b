"""`<offset>.snapshot`: the producers of a partition as they were at that offset.

Format, version 1: int16 version, uint32 CRC32C of what follows, int32 count, then per producer
int64 id, int16 epoch, int32 last sequence, int64 last offset, int32 offset delta, int64 timestamp,
int32 coordinator epoch, int64 first offset of the open transaction (-1: none). Only the last batch of a
producer is kept, as Kafka does. A damaged snapshot is worth nothing but loses nothing: the log has it all.
"""

from __future__ import annotations

import contextlib
import logging
import os
from bisect import insort
from collections.abc import Container
from struct import Struct

from ottla.log import file_names
from ottla.log.open_files import OpenFiles, PooledFile
from ottla.log.producer_state import AppendedBatch, ProducerEntry, ProducerStates
from ottla.model.errors import CorruptData
from ottla.model.offsets import NO_SEQUENCE
from ottla.records.crc import crc32c

_log = logging.getLogger(__name__)

_VERSION = 1
_HEAD = Struct(">hIi")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")
_CRC_END = 6


def encode_snapshot(entries: dict[int, ProducerEntry]) -> bytes:
    parts = [_COUNT.pack(len(entries))]
    for producer_id, entry in entries.items():
        last = entry.batches[-1] if entry.batches else AppendedBatch(NO_SEQUENCE, -1, 0, entry.last_timestamp)
        parts.append(
            _ENTRY.pack(
                producer_id,
                entry.epoch,
                last.last_sequence,
                last.last_offset,
                last.offset_delta,
                entry.last_timestamp,
                entry.coordinator_epoch,
                -1 if entry.txn_first_offset is None else entry.txn_first_offset,
            )
        )
    body = b"".join(parts)
    return _HEAD.pack(_VERSION, crc32c(body), len(entries))[:_CRC_END] + body


def decode_snapshot(data: bytes) -> dict[int, ProducerEntry]:
    if len(data) < _HEAD.size:
        raise CorruptData(f"a producer snapshot has at least {_HEAD.size} bytes, this one {len(data)}")
    version, crc, count = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise CorruptData(f"producer snapshots have version {_VERSION}, this one {version}")
    if crc32c(memoryview(data)[_CRC_END:]) != crc:
        raise CorruptData("the producer snapshot's CRC does not fit its content")
    if len(data) != _HEAD.size + count * _ENTRY.size:
        raise CorruptData(f"{count} producers do not fill a snapshot of {len(data)} bytes")
    entries = {}
    for (
        producer_id,
        epoch,
        sequence,
        offset,
        delta,
        timestamp,
        coordinator_epoch,
        first,
    ) in _ENTRY.iter_unpack(memoryview(data)[_HEAD.size :]):
        batches = (AppendedBatch(sequence, offset, delta, timestamp),) if offset >= 0 else ()
        entries[producer_id] = ProducerEntry(
            epoch, coordinator_epoch, timestamp, first if first >= 0 else None, batches
        )
    return entries


class ProducerSnapshots:
    """The snapshot files of one partition."""

    __slots__ = ("_directory", "_files", "_offsets", "_pool")

    def __init__(self, pool: OpenFiles, directory: str, offsets: list[int]) -> None:
        self._pool = pool
        self._files = pool.files
        self._directory = directory
        self._offsets = sorted(offsets)

    @property
    def latest_offset(self) -> int:
        return self._offsets[-1] if self._offsets else -1

    def take(self, producers: ProducerStates, offset: int) -> PooledFile:
        """Write the snapshot of `offset`, replacing one of that name; the caller sees to its sync."""
        self._files.write_new(self._path(offset), encode_snapshot(producers.entries())).close()
        if offset not in self._offsets:
            insort(self._offsets, offset)
        return self._pool.existing(self._path(offset))

    def load(self, producers: ProducerStates, offset_max: int, log_start_offset: int) -> None:
        """Set `producers` to the newest good snapshot up to `offset_max`, else to nothing at the log's
        start.
        """
        for offset in reversed(self._offsets):
            if log_start_offset <= offset <= offset_max:
                try:
                    producers.load(decode_snapshot(self._files.read_all(self._path(offset))), offset)
                    return
                except CorruptData as damage:
                    _log.warning("%s is not used: %s", self._path(offset), damage)
                    self._delete(offset)
        producers.load({}, log_start_offset)

    def delete_below(self, offset: int) -> None:
        for taken in [taken for taken in self._offsets if taken < offset]:
            self._delete(taken)

    def delete_above(self, offset: int) -> bool:
        """Those are of a log that was cut off. Whether there were any: the caller must make that durable, or
        they could come back when the log has grown past them.
        """
        above = [taken for taken in self._offsets if taken > offset]
        for taken in above:
            self._delete(taken)
        return bool(above)

    def delete_except(self, offsets: Container[int]) -> None:
        """Keep those, and the newest one (of the last stop or checkpoint)."""
        for taken in self._offsets[:-1]:
            if taken not in offsets:
                self._delete(taken)

    def _delete(self, offset: int) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._files.remove(self._path(offset))
        self._offsets.remove(offset)

    def _path(self, offset: int) -> str:
        return os.path.join(self._directory, file_names.offset_name(offset, file_names.SNAPSHOT))
