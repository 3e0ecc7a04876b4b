"""Every partition this broker holds, by name and by id, those that are on their way, and those it should hold
but cannot, with the reason.

The one place that knows which partitions are offline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ottla.log.partition_log import PartitionLog
from ottla.model.errors import ErrorCode, Refused
from ottla.model.topics import TopicId
from ottla.model.values import dataclass
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
        self._expected: set[tuple[str, int]] = set()  # their files are being made
        self.on_add: list[Callable[[Partition], None]] = []  # hear of each that can be used from now on

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._by_id.values())

    def add(self, partition: Partition) -> None:
        self._by_name[partition.topic, partition.index] = partition
        self._by_id[partition.topic_id, partition.index] = partition
        self._by_log[partition.log] = partition
        self._offline.pop((partition.topic, partition.index), None)
        self._expected.discard((partition.topic, partition.index))
        for listener in self.on_add:
            listener(partition)

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

    # -- on their way ----------------------------------------------------------------------------------------

    def expect(self, topic: str, index: int) -> None:
        """It is ours, and `add` or `set_offline` follows."""
        self._expected.add((topic, index))

    def is_expected(self, topic: str, index: int) -> bool:
        return (topic, index) in self._expected

    # -- offline -------------------------------------------------------------------------------------------

    def set_offline(self, offline: OfflinePartition) -> None:
        """From now on it is refused with its reason."""
        self.remove(offline.topic_id, offline.index)
        self._expected.discard((offline.topic, offline.index))
        self._offline[offline.topic, offline.index] = offline

    def forget(self, topic: str, index: int) -> None:
        """It was deleted: it is neither offline nor expected any more."""
        self._offline.pop((topic, index), None)
        self._expected.discard((topic, index))

    @property
    def offline(self) -> list[OfflinePartition]:
        """What a person must look at."""
        return list(self._offline.values())

    def check_online(self, topic: str) -> None:
        """Raises Refused when partitions of the topic are offline."""
        offline = [each for each in self._offline.values() if each.topic == topic]
        if offline:
            raise Refused(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"topic '{topic}' is there, but {len(offline)} of its partitions cannot be used: "
                f"{offline[0]}: {offline[0].reason}",
            )

    def is_offline(self, topic: str, index: int) -> bool:
        return (topic, index) in self._offline

    def missing(self, topic: str, index: int) -> Refused:
        """The answer to who asks for a partition that is not served."""
        if (topic, index) in self._expected:
            return Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"the files of {topic}-{index} are being made")
        offline = self._offline.get((topic, index))
        if offline is None:
            return Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return Refused(ErrorCode.KAFKA_STORAGE_ERROR, f"{offline} is offline: {offline.reason}")
