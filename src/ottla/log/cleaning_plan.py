"""What of a log may be cleaned, how dirty it is, and which segments become one. Decides only; pure.

Never cleaned: the active segment, and segments with records that are not stable (behind the high watermark,
or of an open transaction), not synced, or younger than `min.compaction.lag.ms`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.log import offset_index, time_index
from ottla.log.batch_filter import LastRecord
from ottla.log.cleaning_job import CleaningJob, SourceSegment
from ottla.log.partition_log import PartitionLog
from ottla.log.segment import RELATIVE_OFFSET_MAX, Segment
from ottla.model.values import NamedTuple

_READ_BYTES_MIN = 64 * 1024
_LONG_MAX = 2**63 - 1


class Resources(NamedTuple):
    """What one pass may use."""

    dedupe_bytes: int
    dedupe_load_factor: float
    read_bytes: int
    bytes_per_second: float


class Cleanable(NamedTuple):
    """What a pass over a log would find."""

    log: PartitionLog
    first_dirty_offset: int
    end_offset: int  # base of the first segment that may not be cleaned
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool  # something in it waits for longer than max.compaction.lag.ms

    @property
    def dirty_ratio(self) -> float:
        in_all = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / in_all if in_all else 0.0

    @property
    def is_due(self) -> bool:
        if self.dirty_bytes == 0 or self.first_dirty_offset >= self.end_offset:
            return False
        return self.is_overdue or self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio


def find_cleanable(
    log: PartitionLog, cleaned_offset: int | None, stable_offset: int, now_ms: int
) -> Cleanable:
    """`cleaned_offset`: where the last pass ended, as its checkpoint says; `stable_offset`: the partition's
    last stable offset.
    """
    first_dirty = log.log_start_offset if cleaned_offset is None else cleaned_offset
    if not log.log_start_offset <= first_dirty <= log.log_end_offset:
        first_dirty = log.log_start_offset  # records were deleted, or the log was cut: begin anew
    closed = log.segments[:-1]
    limit = min(stable_offset, log.synced_offset, log.segments[-1].base_offset)
    dirty = [segment for segment in closed if segment.end_offset > first_dirty]
    limit = min(limit, _first_young_offset(log, dirty, now_ms))
    end_offset = next((each.base_offset for each in closed if each.end_offset > limit), None)
    if end_offset is None:
        end_offset = log.segments[-1].base_offset
    return Cleanable(
        log,
        first_dirty,
        end_offset,
        clean_bytes=sum(each.size for each in closed if each.base_offset < first_dirty),
        dirty_bytes=sum(each.size for each in dirty if each.end_offset <= end_offset),
        is_overdue=_is_overdue(log, dirty, now_ms),
    )


def _first_young_offset(log: PartitionLog, dirty: Sequence[Segment], now_ms: int) -> int:
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in dirty:
            if segment.newest_ms > now_ms - lag_ms:
                return segment.base_offset
    return _LONG_MAX


def _is_overdue(log: PartitionLog, dirty: Sequence[Segment], now_ms: int) -> bool:
    lag_ms = log.config.max_compaction_lag_ms
    if lag_ms >= now_ms:
        return False  # the default, for ever
    return any(0 < segment.load_first_timestamp() < now_ms - lag_ms for segment in dirty)


def make_job(cleanable: Cleanable, now_ms: int, resources: Resources) -> CleaningJob:
    log, config = cleanable.log, cleanable.log.config
    closed = [segment for segment in log.segments if segment.end_offset <= cleanable.end_offset]
    closed = [segment for segment in closed if segment is not log.segments[-1]]
    producers = {}
    for producer_id, entry in log.producers.entries().items():
        last_offset = entry.batches[-1].last_offset if entry.batches else None
        if last_offset is None or last_offset < cleanable.end_offset:
            producers[producer_id] = LastRecord(entry.epoch, last_offset)
    return CleaningJob(
        directory=log.directory,
        segments=tuple(map(_source, closed)),
        later_bases=tuple(each.base_offset for each in log.segments[len(closed) :]),
        first_dirty_offset=cleanable.first_dirty_offset,
        end_offset=cleanable.end_offset,
        producers=producers,
        now_ms=now_ms,
        delete_retention_ms=config.delete_retention_ms,
        segment_bytes=config.segment_bytes,
        segment_index_bytes=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
        dedupe_bytes=resources.dedupe_bytes,
        dedupe_load_factor=resources.dedupe_load_factor,
        read_bytes=max(resources.read_bytes, _READ_BYTES_MIN),
        bytes_per_second=resources.bytes_per_second,
    )


def _source(segment: Segment) -> SourceSegment:
    return SourceSegment(
        segment.base_offset,
        segment.end_offset,
        segment.size,
        len(segment.offset_index) * offset_index.ENTRY_BYTES,
        len(segment.time_index) * time_index.ENTRY_BYTES,
    )


def group_segments(
    segments: Sequence[SourceSegment], bytes_max: int, index_bytes_max: int
) -> list[list[SourceSegment]]:
    """Neighbours whose content fits one segment even if nothing of it goes, and whose offsets do."""
    groups: list[list[SourceSegment]] = []
    for segment in segments:
        if groups and _fit_together([*groups[-1], segment], bytes_max, index_bytes_max):
            groups[-1].append(segment)
        else:
            groups.append([segment])
    return groups


def _fit_together(group: Sequence[SourceSegment], bytes_max: int, index_bytes_max: int) -> bool:
    return (
        sum(each.size for each in group) <= bytes_max
        and sum(each.offset_index_bytes for each in group) <= index_bytes_max
        and sum(each.time_index_bytes for each in group) <= index_bytes_max
        and group[-1].end_offset - 1 - group[0].base_offset <= RELATIVE_OFFSET_MAX
    )
