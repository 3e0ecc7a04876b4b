"""Range assignment: of each topic neighbouring partitions for each member, near ones first (KIP-881). Pure.

How many partitions a member gets of a topic does not depend on racks; which ones does. Topics with the same
members and as many partitions are kept together: a member has the same partitions of each, and takes one
because it is near only where it is near in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ottla.client.group_members import Assigned, Members, in_order, racks_of
from ottla.client.nearness import Nearness, ReplicaRacks
from ottla.model.topics import TopicPartition


class _Topic:
    """What of a topic is still to be given out, and to whom."""

    def __init__(
        self,
        name: str,
        count: int,
        readers: tuple[str, ...],
        member_racks: Mapping[str, str],
        racks: ReplicaRacks,
    ) -> None:
        self.name = name
        self.count = count
        self.readers = readers
        self.left = list(range(count))
        self.share, self._more = divmod(count, len(readers))  # so many of the readers get one more
        self._given = dict.fromkeys(readers, 0)
        told = {member_id: member_racks[member_id] for member_id in readers if member_id in member_racks}
        self.nearness = Nearness((self.partition(index) for index in self.left), told, racks)
        self._told, self._racks = told, racks

    def partition(self, index: int) -> TopicPartition:
        return TopicPartition(self.name, index)

    def room(self, member_id: str) -> int:
        return self.share + (self._more > 0) - self._given[member_id]

    def matches(self, member_id: str, index: int) -> bool:
        """Also where racks do not decide for this topic: they may for those it is kept together with."""
        rack = self._told.get(member_id)
        return rack is None or rack in self._racks.get(self.partition(index), ())

    def give(self, member_id: str, indexes: Sequence[int]) -> None:
        before = self._given[member_id]
        self._given[member_id] += len(indexes)
        self._more -= before <= self.share < self._given[member_id]
        taken = set(indexes)
        self.left = [index for index in self.left if index not in taken]


def range_shares(partition_counts: Mapping[str, int], members: Members, racks: ReplicaRacks) -> Assigned:
    order, member_racks = in_order(members), racks_of(members)
    topics = []
    for name in sorted(partition_counts):
        readers = tuple(member_id for member_id in order if name in members[member_id].topics)
        if readers and partition_counts[name]:
            topics.append(_Topic(name, partition_counts[name], readers, member_racks, racks))
    assigned: Assigned = {member_id: [] for member_id in members}
    if any(topic.nearness.matters for topic in topics):
        _give_near(topics, assigned)
    for topic in topics:
        _give_ranges(topic, lambda _member_id, _index: True, assigned)
    for targets in assigned.values():
        targets.sort()
    return assigned


def _give_near(topics: Sequence[_Topic], assigned: Assigned) -> None:
    together: dict[tuple[tuple[str, ...], int], list[_Topic]] = {}
    for topic in topics:
        together.setdefault((topic.readers, topic.count), []).append(topic)
    for alike in together.values():
        if len(alike) > 1:
            _give_near_together(alike, assigned)
        elif alike[0].nearness.matters:
            _give_ranges(alike[0], alike[0].matches, assigned)


def _give_near_together(topics: Sequence[_Topic], assigned: Assigned) -> None:
    first = topics[0]  # all of them give out the same
    for index in range(first.count):
        for member_id in first.readers:
            if first.room(member_id) > 0 and all(topic.matches(member_id, index) for topic in topics):
                for topic in topics:
                    topic.give(member_id, [index])
                    assigned[member_id].append(topic.partition(index))
                break


def _give_ranges(topic: _Topic, may_have: Callable[[str, int], bool], assigned: Assigned) -> None:
    for member_id in topic.readers:
        wanted = [index for index in topic.left if may_have(member_id, index)][
            : max(topic.room(member_id), 0)
        ]
        topic.give(member_id, wanted)
        assigned[member_id] += [topic.partition(index) for index in wanted]
