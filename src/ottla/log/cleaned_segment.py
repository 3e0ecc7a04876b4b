"""The segment that a cleaning pass writes: `.cleaned` files, of no meaning until they are swapped in."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence

from ottla.log import file_names
from ottla.log.batch_filter import Filtered
from ottla.log.files import Files
from ottla.log.open_files import OpenFiles
from ottla.log.segment import create_segment
from ottla.log.txn_index import AbortedTransaction
from ottla.model.offsets import NO_TIMESTAMP
from ottla.records.batch import Bytes

_WRITE_BYTES = 32 * 1024
"""Written at once, and then the least distance of two index entries; a lookup reads that much at the most."""


_SYNC_BYTES = 8 * 1024 * 1024
"""Synced at the latest after that many: a producer's sync may have to wait for all that is dirty."""


class CleanedSegment:
    def __init__(
        self,
        files: Files,
        directory: str,
        base_offset: int,
        index_interval_bytes: int,
        wrote: Callable[[int], None],
    ) -> None:
        self._files = files
        self._directory = directory
        self._stem = os.path.join(directory, file_names.offset_name(base_offset, ""))
        self._index_interval_bytes = index_interval_bytes
        self._wrote = wrote  # is told of every write's size
        self._segment = create_segment(OpenFiles(files), directory, base_offset, stage=file_names.CLEANED)
        self._unsynced_bytes = 0
        self._begin_write()

    def _begin_write(self) -> None:
        self._chunks: list[Bytes] = []  # batches to be written together
        self._size = 0
        self._first_offset = self._first_batch_end = self._last_offset = 0  # of those
        self._max_timestamp, self._max_timestamp_offset = NO_TIMESTAMP, 0

    def append(self, batch: Filtered) -> None:
        header, data = batch
        if not self._chunks:
            self._first_offset, self._first_batch_end = header.base_offset, header.last_offset
        self._chunks.append(bytes(data))  # what was read goes with the next read
        self._size += len(data)
        self._last_offset = header.last_offset
        if header.max_timestamp > self._max_timestamp and header.record_count:
            self._max_timestamp, self._max_timestamp_offset = header.max_timestamp, header.last_offset
        if self._size >= _WRITE_BYTES:
            self._write()

    def _write(self) -> None:
        self._segment.append(
            self._chunks,
            self._size,
            self._first_offset,
            self._first_batch_end,
            self._last_offset,
            self._max_timestamp,
            self._max_timestamp_offset,
            self._index_interval_bytes,
        )
        self._wrote(self._size)
        self._unsynced_bytes += self._size
        if self._unsynced_bytes >= _SYNC_BYTES:
            self._segment.log.sync()
            self._unsynced_bytes = 0
        self._begin_write()

    def complete(self, aborted: Sequence[AbortedTransaction], modified_ms: int) -> None:
        """Everything written and synced, names included; the file is as old as the newest it replaces."""
        if self._chunks:
            self._write()
        for transaction in aborted:
            self._segment.txn_index.append(transaction)
        self._segment.seal()
        self._segment.sync()
        self._files.set_modified_ms(self._segment.log.path, modified_ms)
        self._segment.release()
        self._files.sync_directory(self._directory)

    def discard(self) -> None:
        self._segment.release()
        for suffix in file_names.SEGMENT_SUFFIXES:
            with contextlib.suppress(OSError):
                self._files.remove(self._stem + suffix + file_names.CLEANED)
