"""The indexes of a segment, made anew from its batches as they are read one after the other."""

from __future__ import annotations

from ottla.log.segment import Segment
from ottla.records.batch import BatchHeader


class Reindexing:
    __slots__ = ("_interval_bytes", "_last_entry_position", "_max_offset", "_max_timestamp", "_segment")

    def __init__(self, segment: Segment, start: int, interval_bytes: int) -> None:
        """From the batch at `start` on; what the indexes know of those before it counts."""
        self._segment = segment
        self._interval_bytes = interval_bytes
        self._last_entry_position = start
        self._max_timestamp, self._max_offset = segment.time_index.last() or (-1, 0)

    @property
    def next_entry_position(self) -> int:
        """The first batch that begins behind it gets index entries; those before only need to be `passed`."""
        return self._last_entry_position + self._interval_bytes

    def passed(self, max_timestamp: int, offset: int) -> None:
        """Batches that get no entries, and the largest timestamp among them."""
        if max_timestamp > self._max_timestamp:
            self._max_timestamp, self._max_offset = max_timestamp, offset - self._segment.base_offset

    def add(self, position: int, header: BatchHeader) -> None:
        segment = self._segment
        relative_offset = header.last_offset - segment.base_offset
        if header.record_count:  # it may have been emptied
            self.passed(header.max_timestamp, header.last_offset)
        if position - self._last_entry_position > self._interval_bytes:
            segment.offset_index.append(relative_offset, position)
            segment.time_index.maybe_append(self._max_timestamp, self._max_offset)
            self._last_entry_position = position


def rebuild_indexes(segment: Segment, interval_bytes: int) -> None:
    """From the whole log, which must be whole; the files are complete and synced when it returns."""
    segment.offset_index.truncate(0)
    segment.time_index.truncate(0)
    reindexing = Reindexing(segment, 0, interval_bytes)
    for position, header in segment.headers(0):
        reindexing.add(position, header)
        segment.end_offset = header.next_offset
    segment.complete()
    segment.sync()
