"""From a time to an offset: the indexes lead close to it, batch headers closer, and one batch is decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ottla.log.segment import Segment
from ottla.model.limits import MIB
from ottla.model.values import NamedTuple
from ottla.records.batch import MAGIC, BatchHeader
from ottla.records.content import Record
from ottla.records.findings import CorruptRecords
from ottla.records.formats import records_of

_DECOMPRESSED_BYTES_MAX = 16 * MIB
_RECORDS_MAX = 100_000
"""What one lookup looks at. Ordinary batches are far below both; a few kilobytes that unfold to gigabytes, or
to millions of records, must not keep the broker from its work.
"""


class TimestampedOffset(NamedTuple):
    offset: int
    timestamp: int
    leader_epoch: int


def find_timestamp(
    segments: Iterable[Segment], timestamp: int, start_offset: int
) -> TimestampedOffset | None:
    """The first record from `start_offset` on that is at or after `timestamp`."""
    for segment in segments:
        if segment.size and segment.end_offset > start_offset and segment.max_timestamp >= timestamp:
            found = _in_segment(segment, timestamp, start_offset)
            if found is not None:
                return found
    return None


def _in_segment(segment: Segment, timestamp: int, start_offset: int) -> TimestampedOffset | None:
    entry = segment.time_index.floor(timestamp)
    known_offset = segment.base_offset + entry[1] if entry is not None else segment.base_offset
    start = segment.offset_index.position(max(known_offset, start_offset) - segment.base_offset)

    def matches(record: Record) -> bool:
        return record.timestamp >= timestamp and record.offset >= start_offset

    first_offset = segment.base_offset  # none of the batch at hand is smaller
    for position, header in segment.headers(start):
        if header.max_timestamp >= timestamp and header.last_offset >= start_offset and header.record_count:
            found = _in_batch(segment, position, header, max(first_offset, start_offset), matches)
            if found is not None:
                return found
            if header.base_offset >= start_offset:
                # It says so itself; looking further could take for ever.
                return _by_header(header, max(first_offset, start_offset))
        first_offset = header.next_offset
    return None


def find_max_timestamp(segments: Iterable[Segment]) -> TimestampedOffset | None:
    """The first record that has the largest timestamp."""
    newest = max(
        (segment for segment in segments if segment.size),
        key=lambda segment: segment.max_timestamp,
        default=None,
    )
    if newest is None:
        return None
    wanted = newest.max_timestamp
    start = newest.offset_index.position(newest.max_timestamp_offset - newest.base_offset)
    for position, header in newest.headers(start):
        if header.max_timestamp == wanted and header.record_count:
            if header.magic == 0:
                return None  # format 0 has no timestamps
            return _in_batch(
                newest, position, header, newest.base_offset, lambda record: record.timestamp == wanted
            )
    return None


def _in_batch(
    segment: Segment,
    position: int,
    header: BatchHeader,
    first_offset: int,
    matches: Callable[[Record], bool],
) -> TimestampedOffset | None:
    batch = segment.log.pread(header.size, position)
    try:
        records = records_of(batch, decompressed_bytes_max=_DECOMPRESSED_BYTES_MAX)
        for number, record in enumerate(records):
            if matches(record):
                return TimestampedOffset(record.offset, record.timestamp, header.leader_epoch)
            if number == _RECORDS_MAX:
                return _by_header(header, first_offset)
    except CorruptRecords:  # its records are the producer's mistake, or too large
        return _by_header(header, first_offset)
    return None


def _by_header(header: BatchHeader, first_offset: int) -> TimestampedOffset:
    """Less exact: a reader that starts there reads some records more than it wants.

    Only decoding tells where a compressed message of the old formats begins; `first_offset` is surely not
    behind that.
    """
    offset = header.base_offset if header.magic == MAGIC else first_offset
    return TimestampedOffset(offset, header.max_timestamp, header.leader_epoch)
