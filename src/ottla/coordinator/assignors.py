"""Who reads what: the assignors that the broker offers to consumer groups (KIP-848).

- `uniform` gives everybody as much as the others, and leaves partitions where they were as far as it can.
- `range` gives neighbouring partitions of each topic to one member, and the same ones of every topic where
  members have the same subscription, so that topics with equal keys can be joined. It does not look at what
  was before.

Every partition of a subscribed topic goes to exactly one member that is subscribed to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ottla.coordinator.consumer_members import NO_SLOTS, Slot, Slots
from ottla.model.topics import TopicId
from ottla.model.values import dataclass


@dataclass(slots=True, frozen=True)
class Question:
    subscriptions: Mapping[str, frozenset[TopicId]]  # by member id, in the order in which members are served
    partitions: Mapping[TopicId, int]  # how many each topic has
    before: Mapping[str, Slots]  # the last answer

    def slots(self) -> list[Slot]:
        subscribed = frozenset[TopicId]().union(*self.subscriptions.values())
        return [
            Slot(topic_id, partition)
            for topic_id in sorted(subscribed & self.partitions.keys())
            for partition in range(self.partitions[topic_id])
        ]

    def subscribers(self) -> dict[TopicId, list[str]]:
        found: dict[TopicId, list[str]] = {}
        for member_id, topics in self.subscriptions.items():
            for topic_id in topics & self.partitions.keys():
                found.setdefault(topic_id, []).append(member_id)
        return found


Answer = dict[str, Slots]


def assign_range(question: Question) -> Answer:
    given: dict[str, list[Slot]] = {member_id: [] for member_id in question.subscriptions}
    for topic_id, members in question.subscribers().items():
        share, extra = divmod(question.partitions[topic_id], len(members))
        first = 0
        for number, member_id in enumerate(members):
            end = first + share + (number < extra)
            given[member_id] += (Slot(topic_id, partition) for partition in range(first, end))
            first = end
    return {member_id: frozenset(slots) for member_id, slots in given.items()}


def assign_uniform(question: Question) -> Answer:
    if not question.subscriptions:
        return {}
    if len(set(question.subscriptions.values())) == 1:
        return _share_equally(question)
    return _Balance(question).answer()


def _share_equally(question: Question) -> Answer:
    """All members want the same."""
    slots = question.slots()
    share, extra = divmod(len(slots), len(question.subscriptions))
    free = dict.fromkeys(slots)
    kept: dict[str, list[Slot]] = {}
    for member_id in question.subscriptions:
        mine = sorted(slot for slot in question.before.get(member_id, NO_SLOTS) if slot in free)
        kept[member_id] = mine[: share + (extra > 0)]
        extra -= len(kept[member_id]) > share
        for slot in kept[member_id]:
            del free[slot]
    left = iter(free)
    for mine in kept.values():
        wanted = share - len(mine)
        if wanted >= 0 and extra > 0:
            wanted += 1
            extra -= 1
        mine += (next(left) for _ in range(wanted))
    return {member_id: frozenset(mine) for member_id, mine in kept.items()}


class _Balance:
    """Members want different topics: partitions move from who has more to who has less, while that helps."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._subscribers = question.subscribers()
        self._given: dict[str, set[Slot]] = {member_id: set() for member_id in question.subscriptions}

    def answer(self) -> Answer:
        for slot in self._keep():
            self._given[self._poorest(slot)].add(slot)
        # Each move makes the sum of the squares of all shares smaller, so there is an end.
        while sum(self._give_away(member_id) for member_id in self._given):
            pass
        return {member_id: frozenset(slots) for member_id, slots in self._given.items()}

    def _keep(self) -> list[Slot]:
        """Leaves what can stay; returns the rest, those that few can take first."""
        free = dict.fromkeys(self._question.slots())
        for member_id, topics in self._question.subscriptions.items():
            for slot in self._question.before.get(member_id, NO_SLOTS):
                if slot.topic_id in topics and slot in free:
                    del free[slot]
                    self._given[member_id].add(slot)
        return sorted(free, key=lambda slot: (len(self._subscribers[slot.topic_id]), slot))

    def _poorest(self, slot: Slot) -> str:
        return min(self._subscribers[slot.topic_id], key=lambda member_id: len(self._given[member_id]))

    def _give_away(self, member_id: str) -> int:
        """How many went."""
        mine = self._given[member_id]
        moved = 0
        for slot in sorted(mine):
            other = self._given[self._poorest(slot)]
            if len(mine) - len(other) >= 2:
                mine.remove(slot)
                other.add(slot)
                moved += 1
        return moved


ASSIGNORS: Mapping[str, Callable[[Question], Answer]] = {"uniform": assign_uniform, "range": assign_range}
