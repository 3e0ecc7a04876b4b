"""Which members of a group are in a rack that has a replica of a partition (KIP-881). Pure.

Racks decide only where they tell members apart: some member is in a rack that has replicas, and not every
partition has replicas in every such rack. Otherwise nobody is far from anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.model.topics import TopicPartition

ReplicaRacks = Mapping[TopicPartition, frozenset[str]]
"""The racks in which each partition has a replica; a partition that is missing has none that is known."""

_NONE: frozenset[str] = frozenset()


class Nearness:
    def __init__(
        self,
        partitions: Iterable[TopicPartition],
        member_racks: Mapping[str, str],
        replica_racks: ReplicaRacks,
    ) -> None:
        """`member_racks` has the members that told theirs."""
        known = [replica_racks.get(target, _NONE) for target in partitions] if member_racks else []
        everywhere = _NONE.union(*known)
        self.matters = not everywhere.isdisjoint(member_racks.values()) and any(
            racks != everywhere for racks in known
        )
        self._member_racks = member_racks if self.matters else {}
        self._replica_racks = replica_racks

    def is_near(self, member_id: str, target: TopicPartition) -> bool:
        return self._member_racks.get(member_id) in self._replica_racks.get(target, _NONE)

    def is_far(self, member_id: str, target: TopicPartition) -> bool:
        """Whether the member would read from another rack. One that does not tell its rack is never far."""
        rack = self._member_racks.get(member_id)
        return rack is not None and rack not in self._replica_racks.get(target, _NONE)

    def rack_of(self, member_id: str) -> str | None:
        return self._member_racks.get(member_id)

    def racks_of(self, target: TopicPartition) -> frozenset[str]:
        return self._replica_racks.get(target, _NONE)
