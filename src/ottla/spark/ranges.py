"""Ranges of offsets: what one Spark task reads. Cutting them into tasks, and holding back what is over a
limit. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from ottla.model.topics import TopicPartition
from ottla.spark.offsets import Offsets


@dataclass(frozen=True, slots=True)
class OffsetRange:
    topic: str
    partition: int
    start_offset: int
    end_offset: int  # exclusive

    @property
    def target(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def size(self) -> int:
        return self.end_offset - self.start_offset

    def cut(self, parts: int) -> list[OffsetRange]:
        """In equal pieces, none of them empty."""
        parts = min(parts, self.size)
        edges = [self.start_offset + self.size * each // parts for each in range(parts + 1)]
        return [OffsetRange(self.topic, self.partition, start, end) for start, end in pairwise(edges)]


def ranges_between(
    start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]
) -> list[OffsetRange]:
    """Those that hold something, in the order of topics and partitions."""
    return [
        OffsetRange(target.topic, target.partition, start[target], end[target])
        for target in sorted(end)
        if target in start and end[target] > start[target]
    ]


def cut_into_tasks(
    ranges: Iterable[OffsetRange], *, min_partitions: int | None, records_max: int | None
) -> list[OffsetRange]:
    """By the largest allowed piece first; then, if there are too few, by each one's share of the whole."""
    pieces = list(ranges)
    if records_max is not None:
        pieces = [piece for each in pieces for piece in each.cut(-(-each.size // records_max))]
    if min_partitions is None or len(pieces) >= min_partitions:
        return pieces
    total = sum(piece.size for piece in pieces)
    cut: list[OffsetRange] = []
    left = min_partitions
    for piece in pieces:
        # What is left of the wanted tasks is shared by what is left of the records, so that rounding adds up.
        parts = max(1, -(-left * piece.size // total)) if total else 1
        made = piece.cut(parts)
        cut += made
        left = max(left - len(made), 0)
        total -= piece.size
    return cut


def hold_back(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], limit: int) -> Offsets:
    """The ends that keep all partitions together within `limit` records, each getting its share.

    A partition that has anything gets at least one record, so that no small one is starved by a large one.
    """
    sizes = {target: max(end[target] - start.get(target, end[target]), 0) for target in end}
    total, waiting = sum(sizes.values()), sum(map(bool, sizes.values()))
    if total <= limit:
        return dict(end)
    more = max(limit - waiting, 0)  # than one for each, to be shared among the others
    return {
        target: start[target] + 1 + more * (size - 1) // max(total - waiting, 1) if size else end[target]
        for target, size in sizes.items()
    }
