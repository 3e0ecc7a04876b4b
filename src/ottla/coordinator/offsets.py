"""How far groups have read: committed offsets, and those of transactions that are still open.

Changed only by `apply…`; everything else looks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ottla.coordinator.group_records import OffsetCommitKey, OffsetCommitValue
from ottla.model.values import NamedTuple

TopicOffsets = Mapping[str, Mapping[int, OffsetCommitValue]]


class Place(NamedTuple):
    """What a commit is for."""

    group_id: str
    topic: str
    partition: int


class Offsets:
    def __init__(self) -> None:
        self._by_group: dict[str, dict[str, dict[int, OffsetCommitValue]]] = {}
        self._open: dict[int, dict[Place, OffsetCommitValue | None]] = {}  # by producer id
        self._open_of_group: dict[str, dict[Place, set[int]]] = {}  # which producers, by what they touch

    # -- looking -------------------------------------------------------------------------------------------

    def groups(self) -> Iterator[str]:
        return iter(self._by_group)

    def topics(self) -> set[str]:
        return {topic for topics in self._by_group.values() for topic in topics}

    def of_group(self, group_id: str) -> TopicOffsets:
        return self._by_group.get(group_id, {})

    def has_any(self, group_id: str) -> bool:
        return group_id in self._by_group or group_id in self._open_of_group

    def get(self, place: Place) -> OffsetCommitValue | None:
        return self._by_group.get(place.group_id, {}).get(place.topic, {}).get(place.partition)

    def is_open(self, place: Place) -> bool:
        """Whether a transaction that has not ended is about to change it."""
        return place in self._open_of_group.get(place.group_id, ())

    def places(self, group_id: str) -> list[Place]:
        """Everything the group has an offset for, of open transactions too."""
        places = {
            Place(group_id, topic, partition): None
            for topic, partitions in self.of_group(group_id).items()
            for partition in partitions
        }
        places.update(dict.fromkeys(self._open_of_group.get(group_id, ())))
        return list(places)

    # -- changing ------------------------------------------------------------------------------------------

    def apply(self, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
        if key.group in self._open_of_group:
            place = Place(key.group, key.topic, key.partition)
            for producer_id in self._open_of_group[key.group].pop(place, ()):
                del self._open[producer_id][place]  # it was written earlier, so it must not win later
            self._drop_if_empty(key.group)
        self._set(key.group, key.topic, key.partition, value)

    def apply_open(self, key: OffsetCommitKey, value: OffsetCommitValue | None, producer_id: int) -> None:
        """A commit that counts once its transaction is committed."""
        place = Place(key.group, key.topic, key.partition)
        self._open.setdefault(producer_id, {})[place] = value
        self._open_of_group.setdefault(key.group, {}).setdefault(place, set()).add(producer_id)

    def apply_marker(self, producer_id: int, committed: bool) -> None:
        for place, value in self._open.pop(producer_id, {}).items():
            producers = self._open_of_group[place.group_id][place]
            producers.discard(producer_id)
            if not producers:
                del self._open_of_group[place.group_id][place]
                self._drop_if_empty(place.group_id)
            if committed:
                self._set(*place, value)

    def _set(self, group_id: str, topic: str, partition: int, value: OffsetCommitValue | None) -> None:
        topics = self._by_group.get(group_id)
        if value is not None:
            if topics is None:
                topics = self._by_group[group_id] = {}
            partitions = topics.get(topic)
            if partitions is None:
                partitions = topics[topic] = {}
            partitions[partition] = value
        elif topics is not None:
            partitions = topics.get(topic, {})
            partitions.pop(partition, None)
            if not partitions:
                topics.pop(topic, None)
            if not topics:
                del self._by_group[group_id]

    def _drop_if_empty(self, group_id: str) -> None:
        if group_id in self._open_of_group and not self._open_of_group[group_id]:
            del self._open_of_group[group_id]
