"""The index files of a segment against its batches, which come one by one from the walk through the log.

An index may know less than the log, as its end is written late; what it says must be true. Zeros at its end
are space that Apache Kafka reserves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from struct import Struct

from ottla.log.inspection.findings import Finding, FindingKind
from ottla.log.offset_index import OffsetIndex
from ottla.log.sparse_index import Entry, SparseIndex
from ottla.log.time_index import TimeIndex
from ottla.model.offsets import NO_TIMESTAMP
from ottla.records.batch import BatchHeader


def decode_entries(index_type: type[SparseIndex], data: bytes) -> tuple[list[Entry], int]:
    """The entries, without reserved space; and how many bytes are left over at the end."""
    entry: Struct = index_type.ENTRY
    rest = len(data) % entry.size
    whole = data[: len(data) - rest]
    used = len(whole.rstrip(b"\0"))
    count = -(-used // entry.size)
    return list(entry.iter_unpack(whole[: count * entry.size])), rest


def check_order(
    path: str, index_type: type[SparseIndex], entries: list[Entry], rest: int
) -> Iterator[Finding]:
    """Keys must rise; values must not fall."""
    size = index_type.ENTRY.size
    if rest:
        yield Finding(
            FindingKind.INDEX, path, f"entries have {size} bytes, {rest} are left over", len(entries) * size
        )
    key_before, value_before = -1, -1
    for number, (key, value) in enumerate(entries):
        if key < key_before or value < value_before or (key == key_before and number):
            problem = f"entry ({key}, {value}) follows ({key_before}, {value_before})"
            yield Finding(FindingKind.INDEX, path, problem, number * size)
            return  # what follows has lost its meaning
        key_before, value_before = key, value


class OffsetIndexCheck:
    """Every position is where a batch begins, and no batch before it holds the entry's offset."""

    def __init__(self, path: str, entries: list[Entry], base_offset: int) -> None:
        self.findings: list[Finding] = []
        self._path = path
        self._left = deque(enumerate(entries))
        self._base_offset = base_offset
        self._last_offset = base_offset - 1  # of the batches seen

    def see(self, position: int, header: BatchHeader) -> None:
        while self._left and self._left[0][1][1] < position:
            self._misled("no batch begins there")
        while self._left and self._left[0][1][1] == position:
            if self._base_offset + self._left[0][1][0] <= self._last_offset:
                self._misled(f"the batch before it already holds offsets up to {self._last_offset}")
            else:
                self._left.popleft()
        self._last_offset = header.last_offset

    def finish(self, size: int) -> None:
        """`size` is how much of the log was seen."""
        while self._left:
            position = self._left[0][1][1]
            self._misled("no batch begins there" if position < size else f"the log ends at {size}")

    def _misled(self, problem: str) -> None:
        number, (relative_offset, position) = self._left.popleft()
        offset = self._base_offset + relative_offset
        text = f"the entry of offset {offset} leads to position {position}: {problem}"
        self.findings.append(
            Finding(FindingKind.INDEX, self._path, text, number * OffsetIndex.ENTRY.size, offset)
        )


class TimeIndexCheck:
    """No record up to an entry's offset has a larger timestamp than the entry."""

    def __init__(self, path: str, entries: list[Entry], base_offset: int) -> None:
        self.findings: list[Finding] = []
        self._path = path
        self._left = deque(enumerate(entries))
        self._base_offset = base_offset
        self._max_timestamp = NO_TIMESTAMP  # of the batches seen

    def see(self, header: BatchHeader) -> None:
        while self._left and self._offset < header.last_offset:
            self._compare()  # the entry speaks of the batches before this one
        self._max_timestamp = max(self._max_timestamp, header.max_timestamp)

    def finish(self, end_offset: int) -> None:
        while self._left and self._offset < end_offset:
            self._compare()
        while self._left:
            self._report(f"is behind the log's last offset {end_offset - 1}")

    @property
    def _offset(self) -> int:
        return self._base_offset + self._left[0][1][1]

    def _compare(self) -> None:
        if self._max_timestamp > self._left[0][1][0]:
            self._report(f"is wrong: up to there {self._max_timestamp} is the largest timestamp")
        else:
            self._left.popleft()

    def _report(self, problem: str) -> None:
        offset = self._offset
        number, (timestamp, _) = self._left.popleft()
        text = f"the entry of timestamp {timestamp} at offset {offset} {problem}"
        self.findings.append(
            Finding(FindingKind.INDEX, self._path, text, number * TimeIndex.ENTRY.size, offset)
        )
