"""Every partition this broker holds, by name and by id, and those it should hold but cannot, with the reason.

The one place that knows which partitions are offline.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ottla.log.partition_log import PartitionLog
from ottla.model.errors import ErrorCode, Refused
from ottla.model.topics import TopicId
from ottla.replica.partition import Partition


@dataclass(frozen=True, slots=True)
class OfflinePartition:
    """A partition of ours whose files cannot be used."""

    topic: str
    topic_id: TopicId
    index: int
    reason: str
    is_unmade: bool = False  # it never had files: they are made as soon as that works

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"


class Partitions:
    def __init__(self) -> None:
        self._by_name: dict[tuple[str, int], Partition] = {}
        self._by_id: dict[tuple[TopicId, int], Partition] = {}
        self._by_log: dict[PartitionLog, Partition] = {}
        self._offline: dict[tuple[str, int], OfflinePartition] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._by_id.values())

    def add(self, partition: Partition) -> None:
        self._by_name[partition.topic, partition.index] = partition
        self._by_id[partition.topic_id, partition.index] = partition
        self._by_log[partition.log] = partition
        self._offline.pop((partition.topic, partition.index), None)

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

    # -- offline -------------------------------------------------------------------------------------------

    def set_offline(self, offline: OfflinePartition) -> None:
        """From now on it is refused with its reason."""
        self.remove(offline.topic_id, offline.index)
        self._offline[offline.topic, offline.index] = offline

    def forget_offline(self, topic: str, index: int) -> None:
        """It was deleted."""
        self._offline.pop((topic, index), None)

    @property
    def offline(self) -> list[OfflinePartition]:
        """What a person must look at."""
        return list(self._offline.values())

    def is_offline(self, topic: str, index: int) -> bool:
        return (topic, index) in self._offline

    def missing(self, topic: str, index: int) -> Refused:
        """The answer to who asks for a partition that is not served."""
        offline = self._offline.get((topic, index))
        if offline is None:
            return Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return Refused(ErrorCode.KAFKA_STORAGE_ERROR, f"{offline} is offline: {offline.reason}")
