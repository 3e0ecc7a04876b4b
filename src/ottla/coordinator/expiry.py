"""When offsets are forgotten (KIP-211): `offsets.retention.minutes` after they were of use.

- A classic group without members: counted from when the last one left.
- A classic group of consumers that is stable, and a consumer group (KIP-848) at any time: from the commit,
  for topics that nobody in it reads any more.
- A group that nobody ever joined (commits only): from the commit.
- Other groups with members: never. A commit that brought its own retention (version 4 and older) keeps to it.
"""

from __future__ import annotations

from ottla.coordinator.group_records import OffsetCommitKey, OffsetCommitValue, offset_record
from ottla.coordinator.groups import Group
from ottla.coordinator.offsets import Offsets, Place
from ottla.coordinator.state_log import StateRecord


def expired_offsets(
    group: Group, offsets: Offsets, wall_ms: int, retention_ms: int
) -> tuple[list[StateRecord], bool]:
    """Tombstones, and whether nothing is left after them."""
    records = []
    is_all = True
    can_expire = group.can_expire
    for topic, partitions in offsets.of_group(group.id).items():
        for partition, value in partitions.items():
            place = Place(group.id, topic, partition)
            if (
                can_expire
                and not group.is_subscribed(topic)
                and _is_expired(group, value, wall_ms, retention_ms)
                and not offsets.is_open(place)
            ):
                records.append(offset_record(OffsetCommitKey(*place), None))
            else:
                is_all = False
    has_open = any(offsets.is_open(place) for place in offsets.places(group.id))
    return records, is_all and not has_open


def _is_expired(group: Group, value: OffsetCommitValue, wall_ms: int, retention_ms: int) -> bool:
    if value.expire_timestamp_ms >= 0:
        return wall_ms >= value.expire_timestamp_ms
    idle_since_ms = group.idle_since_ms
    since_ms = value.commit_timestamp_ms if idle_since_ms is None else idle_since_ms
    return wall_ms - since_ms >= retention_ms
