"""Every partition this broker holds, by name and by id."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.log.partition_log import PartitionLog
from ottla.model.topics import TopicId
from ottla.replica.partition import Partition


class Partitions:
    def __init__(self) -> None:
        self._by_name: dict[tuple[str, int], Partition] = {}
        self._by_id: dict[tuple[TopicId, int], Partition] = {}
        self._by_log: dict[PartitionLog, Partition] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._by_id.values())

    def add(self, partition: Partition) -> None:
        self._by_name[partition.topic, partition.index] = partition
        self._by_id[partition.topic_id, partition.index] = partition
        self._by_log[partition.log] = partition

    def remove(self, topic_id: TopicId, index: int) -> Partition | None:
        partition = self._by_id.pop((topic_id, index), None)
        if partition is not None:
            del self._by_log[partition.log]
            if self._by_name.get((partition.topic, index)) is partition:
                del self._by_name[partition.topic, index]
        return partition

    def named(self, topic: str, index: int) -> Partition | None:
        return self._by_name.get((topic, index))

    def with_id(self, topic_id: TopicId, index: int) -> Partition | None:
        return self._by_id.get((topic_id, index))

    def of_log(self, log: PartitionLog) -> Partition | None:
        return self._by_log.get(log)
