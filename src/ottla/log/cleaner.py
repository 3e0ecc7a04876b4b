"""One cleaning pass over a log: of records with the same key only the last one stays.

First the keys of the dirty part go into a map with their last offsets, as many as fit; then every segment up
to there is copied without the records that the map knows a later one of, several small ones into one. What
comes out are `.cleaned` files, synced. They are put in their place by the log's owner (`segment_swap`); until
then the log does not know of them, and what is left of a pass that was cut off goes at the next start.

Runs in a process of its own (`node.cleaner_child`): nothing here may touch the broker's state.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence

from ottla.log import file_names, txn_index
from ottla.log.batch_filter import BatchFilter
from ottla.log.cleaned_segment import CleanedSegment
from ottla.log.cleaned_transactions import CleanedTransactions
from ottla.log.cleaning_job import Cleaned, CleanedGroup, CleaningJob, SourceSegment
from ottla.log.cleaning_plan import group_segments
from ottla.log.dedupe_map import DedupeMap, map_for
from ottla.log.files import FileHandle, Files
from ottla.log.txn_index import AbortedTransaction
from ottla.model.errors import CorruptData
from ottla.records.batch import BatchHeader
from ottla.records.formats import header_at, scan, verify_crc
from ottla.records.plain_records import plain_records

Throttle = Callable[[int], None]  # is told how many bytes were read or written, and takes its time
Report = Callable[[CleanedGroup], None]


class Cleaner:
    def __init__(self, files: Files, job: CleaningJob, throttle: Throttle, report: Report) -> None:
        self._files = files
        self._job = job
        self._throttle = throttle
        self._report = report
        self._bytes_read = 0
        self._bytes_written = 0

    def run(self) -> Cleaned:
        """CorruptRecords, CorruptData: this log cannot be cleaned; OSError: not now."""
        job = self._job
        aborted = self._aborted_transactions()
        dedupe = self._map_keys(aborted)
        segments = [segment for segment in job.segments if segment.base_offset <= dedupe.latest_offset]
        chosen = BatchFilter(
            dedupe,
            transactions := CleanedTransactions(aborted),
            job.producers,
            job.end_offset,
            job.now_ms,
            job.delete_retention_ms,
        )
        self._old_tombstones_ms = self._tombstones_of_old_formats_ms()
        for group in group_segments(segments, job.segment_bytes, job.segment_index_bytes):
            self._clean_group(group, chosen, transactions)
        return Cleaned(dedupe.latest_offset + 1, self._bytes_read, self._bytes_written)

    # -- the map -------------------------------------------------------------------------------------------

    def _map_keys(self, aborted: Sequence[AbortedTransaction]) -> DedupeMap:
        job = self._job
        start = job.first_dirty_offset
        dedupe = map_for(job.end_offset - start, job.dedupe_bytes, job.dedupe_load_factor)
        transactions = CleanedTransactions(each for each in aborted if each.last_offset >= start)
        for segment in job.segments:
            if segment.end_offset <= start:
                continue
            for header, batch in self._batches(segment):
                if header.last_offset < start:
                    continue
                is_aborted = transactions.can_discard(header, batch)
                is_data = header.record_count != 0 and not (header.is_control or is_aborted)
                if is_data and not dedupe.put(*plain_records(header, batch), start):
                    return dedupe
                dedupe.latest_offset = max(dedupe.latest_offset, header.last_offset)
            dedupe.latest_offset = segment.end_offset - 1
        return dedupe

    # -- copying -------------------------------------------------------------------------------------------

    def _clean_group(
        self, group: Sequence[SourceSegment], chosen: BatchFilter, transactions: CleanedTransactions
    ) -> None:
        job = self._job
        cleaned = CleanedSegment(
            self._files, job.directory, group[0].base_offset, job.index_interval_bytes, self._wrote
        )
        try:
            for segment in group:
                keep_old = self._modified_ms(segment) > self._old_tombstones_ms
                for header, batch in self._batches(segment):
                    filtered = chosen.filter(header, batch, keep_old_tombstones=keep_old)
                    if filtered is not None:
                        cleaned.append(filtered)
            cleaned.complete(transactions.take_retained(), self._modified_ms(group[-1]))
        except BaseException:
            cleaned.discard()
            raise
        self._report(CleanedGroup(group[0].base_offset, [segment.base_offset for segment in group]))

    def _modified_ms(self, segment: SourceSegment) -> int:
        return self._files.modified_ms(self._path(segment.base_offset, file_names.LOG))

    def _tombstones_of_old_formats_ms(self) -> int:
        """Tombstones of formats 0 and 1 go with segments that were written last before this time: the age of
        what was cleaned already is measured, because such messages cannot say when they may go.
        """
        clean = [each for each in self._job.segments if each.base_offset < self._job.first_dirty_offset]
        return self._modified_ms(clean[-1]) - self._job.delete_retention_ms if clean else 0

    def _wrote(self, size: int) -> None:
        self._bytes_written += size
        self._throttle(size)

    # -- reading -------------------------------------------------------------------------------------------

    def _batches(self, segment: SourceSegment) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Every batch of a segment, checked as recovery would: whole, in order, as its checksum says."""
        handle = self._files.open(self._path(segment.base_offset, file_names.LOG), writable=False)
        try:
            position, next_offset = 0, segment.base_offset
            read_bytes = self._job.read_bytes
            while position < segment.size:
                data = memoryview(handle.pread(min(read_bytes, segment.size - position), position))
                self._bytes_read += len(data)
                self._throttle(len(data))
                used = 0
                for at, header in scan(data):
                    if not next_offset <= header.base_offset <= header.last_offset < segment.end_offset:
                        raise _damaged(handle, position + at, f"offset {header.base_offset} is out of order")
                    if not verify_crc(data, header, at):
                        raise _damaged(handle, position + at, "the checksum of the batch is wrong")
                    used = at + header.size
                    next_offset = header.next_offset
                    yield header, data[at:used]
                read_bytes = self._job.read_bytes
                if used == 0:
                    read_bytes = _size_of_larger(handle, data, position, segment.size)
                position += used
        finally:
            handle.close()

    def _aborted_transactions(self) -> list[AbortedTransaction]:
        """Of the segments to clean and of all behind them: a transaction is named where it ended."""
        aborted: list[AbortedTransaction] = []
        for base_offset in (*(segment.base_offset for segment in self._job.segments), *self._job.later_bases):
            with contextlib.suppress(FileNotFoundError):  # most have none
                data = self._files.read_all(self._path(base_offset, file_names.TXN_INDEX))
                aborted += txn_index.decode_aborted(data[: len(data) - len(data) % txn_index.ENTRY_BYTES])
        return aborted

    def _path(self, base_offset: int, suffix: str) -> str:
        return os.path.join(self._job.directory, file_names.offset_name(base_offset, suffix))


def _size_of_larger(handle: FileHandle, data: memoryview, position: int, file_size: int) -> int:
    """The size of a batch of which `data` is only the beginning."""
    header = header_at(data)
    if header is None or not len(data) < header.size <= file_size - position:
        raise _damaged(handle, position, f"the {file_size - position} bytes from there on are no whole batch")
    return header.size


def _damaged(handle: FileHandle, position: int, problem: str) -> CorruptData:
    return CorruptData(
        f"{handle.name} at position {position}: {problem}; restore the file, or delete the topic"
    )
