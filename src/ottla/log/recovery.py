"""After a crash: find out how far a log is whole, cut off the rest, and rebuild what was not written in time.

Below the recovery point everything was synced. From there on batches are checked one by one, in order; the
first that is torn, damaged or out of order ends the log, because nothing behind it was acknowledged.
Indexes are rebuilt on the way. Damage below the recovery point is not a crash's trace and is never cut
away: CorruptData.
"""

from __future__ import annotations

import logging

from ottla.log.files import Files
from ottla.log.leader_epochs import LeaderEpochs
from ottla.log.reindexing import Reindexing
from ottla.log.segment import RELATIVE_OFFSET_MAX, Segment, rename_deleted
from ottla.log.sparse_index import SparseIndex
from ottla.model.errors import CorruptData
from ottla.records import kernel_choice
from ottla.records.batch import HEADER_BYTES, MAGIC, BatchHeader
from ottla.records.formats import BATCH_BYTES_MIN, header_at, verify_crc

_log = logging.getLogger(__name__)

_READ_BYTES = 4 * 1024 * 1024


def recover_segments(
    files: Files,
    segments: list[Segment],
    recovery_point: int,
    index_interval_bytes: int,
    epochs: LeaderEpochs,
    *,
    is_dense: bool,
) -> bool:
    """Cut `segments` to what is whole. The last one's `end_offset` is the log's then.

    False: nothing was found behind the recovery point and nothing was cut, so all is durable as it is. (With
    a recovery point of 0 that cannot be known: there may never have been a sync. And entries that an index
    has lost must go from its file too, or another power cut would show them among those of new batches.)
    `is_dense`: nothing was compacted behind the recovery point, so that a segment there which ends before the
    next one begins has lost its tail.
    The segment before the recovery point is looked at too: it may have been sealed after the last sync.
    """
    first = max(0, sum(segment.base_offset < recovery_point for segment in segments) - 1)
    is_only_last = first == len(segments) - 1
    size_before = segments[-1].size
    is_index_cut = False
    for at in range(first, len(segments)):
        segment = segments[at]
        limit = segments[at + 1].base_offset if at + 1 < len(segments) else None
        is_torn = _recover(segment, recovery_point, limit, index_interval_bytes, epochs)
        is_index_cut |= segment.offset_index.is_cut or segment.time_index.is_cut
        if limit is None:
            break
        if is_torn or (is_dense and segment.end_offset < limit and limit > recovery_point):
            _drop(files, segments, at + 1)
            break
        segment.end_offset = limit
    last = segments[-1]
    is_as_synced = last.size == size_before and last.end_offset == recovery_point > 0
    return is_index_cut or not (is_only_last and is_as_synced)


def _drop(files: Files, segments: list[Segment], first: int) -> None:
    for segment in segments[first:]:
        _log.warning("%s follows a torn segment and is dropped", segment.log.path)
        for path in rename_deleted(files, segment):
            files.remove(path)
    del segments[first:]


def _recover(
    segment: Segment,
    recovery_point: int,
    limit_offset: int | None,
    index_interval_bytes: int,
    epochs: LeaderEpochs,
) -> bool:
    """Find the segment's valid end, cut there, rebuild its indexes; whether batches were lost by that."""
    start, next_offset = trust_indexes(segment, recovery_point)
    segment.txn_index.trust_up_to(recovery_point)  # later ones are added when the producers are rebuilt
    epochs.truncate_end(next_offset)  # the batches tell, and the file may be older than a truncation
    file_size = segment.size
    reindexing = Reindexing(segment, start, index_interval_bytes)
    end_offset = segment.base_offset + RELATIVE_OFFSET_MAX + 1
    if limit_offset is not None:
        end_offset = min(end_offset, limit_offset)
    valid_size, next_offset = _check_batches(
        segment, start, next_offset, end_offset, recovery_point, reindexing, epochs
    )
    segment.end_offset = next_offset
    is_torn = valid_size < file_size and next_offset != limit_offset  # else it is only reserved space
    if is_torn and next_offset < recovery_point:
        raise CorruptData(
            f"{segment.log.path} is whole up to offset {next_offset}, but was synced up to {recovery_point}; "
            "restore the file from a backup, or delete the topic"
        )
    if valid_size < file_size:
        _log.warning(
            "%s: cut off %d bytes from offset %d on", segment.log.path, file_size - valid_size, next_offset
        )
        segment.cut(valid_size)
    return is_torn


def _check_batches(
    segment: Segment,
    position: int,
    next_offset: int,
    end_offset: int,
    checked_offset: int,
    reindexing: Reindexing,
    epochs: LeaderEpochs,
) -> tuple[int, int]:
    """Where the batches from `position` on are no longer whole and in order, and the offset there.

    Checksums are looked at from `checked_offset` on. Small batches that need neither index entries nor a new
    epoch are passed over by the kernel, many at once; everything else is judged here.
    """
    handle = segment.log.handle()
    read_bytes = _READ_BYTES
    while position < segment.size:
        data = handle.pread(min(read_bytes, segment.size - position), position)
        at = 0
        while True:
            last_at = reindexing.next_entry_position - position
            at, next_offset, *newest = kernel_choice.scan_kernel.pass_valid(
                data, at, last_at, next_offset, end_offset, checked_offset, epochs.latest
            )
            reindexing.passed(*newest)
            header = header_at(data, at)
            if header is None or header.size > len(data) - at:
                break
            if not next_offset <= header.base_offset <= header.last_offset < end_offset or (
                header.last_offset >= checked_offset and not verify_crc(data, header, at)
            ):
                return position + at, next_offset
            next_offset = header.next_offset
            reindexing.add(position + at, header)
            if header.leader_epoch > epochs.latest:
                epochs.assign(header.leader_epoch, header.base_offset)
            at += header.size
        position += at
        if at == 0:  # no whole batch in what was read: a larger one, or none at all
            read_bytes = _size_claimed(data)
            if not len(data) < read_bytes <= segment.size - position:
                break
        else:
            read_bytes = _READ_BYTES
    return position, next_offset


def _size_claimed(data: bytes) -> int:
    """How long the batch at the beginning of `data` says it is; 0 when it is none."""
    header = header_at(data)
    return header.size if header is not None else 0


def trust_indexes(segment: Segment, recovery_point: int) -> tuple[int, int]:
    """Keep the part of the indexes that speaks of synced batches and holds together; drop the rest.

    Returns the position and offset of the batch where checking must begin. Index files are not synced with
    every round, so a power cut can leave holes of zeros in them; those break the rising order.
    """
    base = segment.base_offset
    offset_index, time_index = segment.offset_index, segment.time_index
    synced = recovery_point - base - 1
    time_index.truncate(_rising(time_index, 2**63 - 1, synced))
    # Only as far as the time index goes too: behind its last entry there may have been larger timestamps.
    timed = min(synced, (time_index.last() or (0, -1))[1])
    kept = _rising(offset_index, timed, segment.size - BATCH_BYTES_MIN)
    if kept:
        relative_offset, position = offset_index.entry(kept - 1)
        previous = offset_index.entry(kept - 2)[0] if kept > 1 else -1
        header = _whole_batch_at(segment, position)
        if header is not None and _leads_to(header, base, previous, relative_offset):
            # Entries of the time index behind it stay: they may speak for batches before it as well.
            offset_index.truncate(kept)
            return position, header.base_offset
    offset_index.truncate(0)
    time_index.truncate(0)
    return 0, base


def _whole_batch_at(segment: Segment, position: int) -> BatchHeader | None:
    """What is in the middle of a batch can look like a header, but not like one with its checksum."""
    log = segment.log.handle()
    header = header_at(log.pread(HEADER_BYTES, position))
    if header is None or header.size > segment.size - position:
        return None
    return header if verify_crc(log.pread(header.size, position), header) else None


def _leads_to(header: BatchHeader, base: int, previous: int, relative_offset: int) -> bool:
    """Whether an entry of `relative_offset`, behind one of `previous`, may point at this batch.

    Brokers of the old formats noted the first offset of an append, which the header of a compressed message
    does not tell.
    """
    first = header.base_offset - base
    return previous < first and (first <= relative_offset or header.magic < MAGIC)


def _rising(index: SparseIndex, key_max: int, value_max: int) -> int:
    """How many of the first entries rise, within the limits."""
    count = 0
    key_before, value_before = -1, -1
    for key, value in index:
        if not (key_before < key <= key_max and value_before <= value <= value_max):
            break
        key_before, value_before = key, value
        count += 1
    return count
