"""How far a group is behind: in records, and in seconds since the oldest unread one was written.

Records are counted by their offsets, as every Kafka tool does: the markers of transactions count too.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from ottla.client.admin import Admin
from ottla.client.reading import read
from ottla.model.topics import TopicPartition


class Backlog(NamedTuple):
    records: int
    seconds: float


def backlog(bootstrap: str, group: str, topic: str, **settings: Any) -> Backlog:
    """By what the group has committed; a partition without a commit counts from its start.

    Settings are those that every client takes (`security.protocol` …).
    """
    with Admin(bootstrap, **settings) as admin:
        partitions = admin.partitions_of(topic)
        committed = admin.group_offsets(group)
        first = admin.earliest_offsets(partitions)
        ends = admin.latest_offsets(partitions)
    records = 0
    oldest_ms: list[int] = []
    for place in partitions:
        offset = max(committed[place].offset, first[place]) if place in committed else first[place]
        records += max(ends[place] - offset, 0)
        if ends[place] > offset:
            oldest_ms += _time_of(bootstrap, place, offset, settings)
    seconds = time.time() - min(oldest_ms) / 1000 if oldest_ms else 0.0
    return Backlog(records, max(seconds, 0.0))


def _time_of(bootstrap: str, place: TopicPartition, offset: int, settings: Mapping[str, Any]) -> list[int]:
    """Of the record at or behind an offset; none when only markers or compacted ones are left there."""
    with read(bootstrap, place.topic, start=offset, partitions=[place.partition], **settings) as reading:
        while not reading.is_over:
            records = reading.poll(1.0)
            if records:
                return [records[0].timestamp_ms]
    return []
