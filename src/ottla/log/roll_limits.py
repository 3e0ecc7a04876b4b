"""When a segment has grown enough: by size, by age, by index entries, or by offsets beyond 32 bits."""

from __future__ import annotations

from ottla.log import time_index
from ottla.log.segment import RELATIVE_OFFSET_MAX, Segment
from ottla.model.configs import TopicConfig


class RollLimits:
    """Asked on every append: what the settings say is worked out once."""

    __slots__ = ("_index_entries_max", "_segment_ms_max", "segment_bytes_max")

    def __init__(self, config: TopicConfig) -> None:
        self.segment_bytes_max = config.segment_bytes
        self._segment_ms_max = config.segment_ms_max
        self._index_entries_max = config.segment_index_bytes // time_index.ENTRY_BYTES  # the larger ones

    def are_passed(
        self, segment: Segment, size: int, last_offset: int, max_timestamp: int, now_ms: int
    ) -> bool:
        """Whether `size` bytes, up to `last_offset`, belong into the next segment."""
        if segment.size == 0:
            return last_offset - segment.base_offset > RELATIVE_OFFSET_MAX
        first_timestamp = segment.first_timestamp
        if first_timestamp is None:
            first_timestamp = segment.load_first_timestamp()
        age_ms = max_timestamp - first_timestamp if first_timestamp >= 0 else now_ms - segment.created_ms
        return (
            segment.size + size > self.segment_bytes_max
            or age_ms > self._segment_ms_max - segment.roll_jitter_ms
            or len(segment.offset_index) >= self._index_entries_max
            or last_offset - segment.base_offset > RELATIVE_OFFSET_MAX
        )
