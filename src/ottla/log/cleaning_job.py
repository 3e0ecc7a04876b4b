"""What a cleaner is told to do, and what it reports: plain values, because it may be another process.

The job names files and offsets; nothing of the log that the broker goes on changing is shared.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from ottla.log.batch_filter import LastRecord
from ottla.model.values import NamedTuple, asdict, dataclass


class SourceSegment(NamedTuple):
    """A closed segment as the log had it when the pass began."""

    base_offset: int
    end_offset: int
    size: int
    offset_index_bytes: int
    time_index_bytes: int


@dataclass(frozen=True, slots=True)
class CleaningJob:
    directory: str
    segments: tuple[SourceSegment, ...]  # all before the first one that may not be cleaned
    later_bases: tuple[int, ...]  # of the segments behind them: transactions may end there
    first_dirty_offset: int  # what is before it was cleaned by an earlier pass
    end_offset: int  # where the segments end
    producers: dict[int, LastRecord]
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    dedupe_bytes: int
    dedupe_load_factor: float
    read_bytes: int
    bytes_per_second: float

    def encode(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, text: str) -> CleaningJob:
        fields = json.loads(text)
        fields["segments"] = tuple(SourceSegment(*segment) for segment in fields["segments"])
        fields["later_bases"] = tuple(fields["later_bases"])
        fields["producers"] = {int(key): LastRecord(*last) for key, last in fields["producers"].items()}
        return cls(**fields)


class CleanedGroup(NamedTuple):
    """A new segment is complete and synced; its files end in `.cleaned`."""

    base_offset: int
    replaced: Sequence[int]  # base offsets of the segments whose place it takes


class Cleaned(NamedTuple):
    """The pass is over; all its groups were reported before."""

    end_offset: int  # the next pass begins here
    bytes_read: int
    bytes_written: int
