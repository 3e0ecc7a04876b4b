"""The segments of a log in the order of their offsets. The last one is active: it alone grows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import overload

from ottla.log.segment import Segment


class SegmentList:
    __slots__ = ("_segments", "active", "bases", "change_count")

    def __init__(self, segments: list[Segment]) -> None:
        self._segments = segments
        self.bases = [segment.base_offset for segment in segments]  # ascending, for bisecting
        self.active = segments[-1]
        self.change_count = 0

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    @overload
    def __getitem__(self, at: int) -> Segment: ...

    @overload
    def __getitem__(self, at: slice) -> list[Segment]: ...

    def __getitem__(self, at: int | slice) -> Segment | list[Segment]:
        return self._segments[at]

    def index_of(self, offset: int) -> int:
        """Which one holds `offset`; -1 when it lies before all of them."""
        return bisect_right(self.bases, offset) - 1

    def find(self, offset: int) -> tuple[Segment, int]:
        """Segment and position of the batch that holds or follows `offset`."""
        at = bisect_right(self.bases, offset) - 1
        while True:
            segment = self._segments[at]
            position = segment.position_of(offset)
            if position < segment.size or segment is self.active:
                return segment, position
            at += 1  # the offsets from here on were compacted away

    def holds(self, bases: Sequence[int]) -> bool:
        """Whether closed segments with these base offsets are there, as neighbours."""
        first = self.index_of(bases[0])
        return first >= 0 and self.bases[first : first + len(bases)] == list(bases) != self.bases[first:]

    def append(self, segment: Segment) -> None:
        """The new active one."""
        assert segment.base_offset > self.bases[-1]
        self.change_count += 1
        self._segments.append(segment)
        self.bases.append(segment.base_offset)
        self.active = segment

    def remove(self, first: int, end: int) -> Sequence[Segment]:
        """Take some out, but not all."""
        self.change_count += 1
        removed = self._segments[first:end]
        del self._segments[first:end]
        del self.bases[first:end]
        self.active = self._segments[-1]
        return removed

    def replace(self, bases: Sequence[int], segment: Segment) -> Sequence[Segment]:
        """`segment` takes the place of closed neighbours, those with the base offsets `bases`."""
        first = self.bases.index(bases[0])
        end = first + len(bases)
        assert self.holds(bases)
        self.change_count += 1
        removed = self._segments[first:end]
        segment.end_offset = removed[-1].end_offset
        self._segments[first:end] = [segment]
        self.bases[first:end] = [segment.base_offset]
        return removed

    def replace_all(self, segment: Segment) -> Sequence[Segment]:
        """Only `segment` stays, whether it was in the list or not; returns the others."""
        removed = [other for other in self._segments if other is not segment]
        self.change_count += 1
        self._segments[:] = [segment]
        self.bases[:] = [segment.base_offset]
        self.active = segment
        return removed
