"""Which segments have outlived retention, by size or by time. Decides only; the log moves its start.

Always a run from the oldest on, and never one that holds records at or behind the high watermark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.log.partition_log import PartitionLog


def expired_count(log: PartitionLog, now_ms: int, high_watermark: int) -> int:
    """How many of the oldest segments may go; all of them only if the last is not empty."""
    config = log.config
    count = 0
    if config.cleanup_delete:
        if config.retention_bytes >= 0:
            count = _beyond_size(log, config.retention_bytes)
        if config.retention_ms >= 0:
            count = max(count, _older_than(log, now_ms - config.retention_ms))
    segments = log.segments
    while count and segments[count - 1].end_offset > high_watermark:
        count -= 1
    if count == len(segments) and segments[-1].size == 0:
        count -= 1
    return count


def _beyond_size(log: PartitionLog, size_max: int) -> int:
    excess = log.size_bytes - size_max
    count = 0
    for segment in log.segments:
        excess -= segment.size
        if excess < 0:
            break
        count += 1
    return count


def _older_than(log: PartitionLog, timestamp: int) -> int:
    count = 0
    for segment in log.segments:
        if segment.newest_ms >= timestamp:
            break
        count += 1
    return count
