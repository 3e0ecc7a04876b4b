"""Sticky assignment: as even as can be; then in the members' racks (KIP-881); then where it was. Pure.

What members own is kept, the rest is dealt out, loads are levelled, and at last partitions that are far from
their reader change places with others as long as that brings something nearer and unbalances nothing. So a
partition leaves its reader only if that gains something.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

from ottla.client.group_members import Assigned, Members, all_partitions, in_order, racks_of
from ottla.client.nearness import Nearness, ReplicaRacks
from ottla.model.topics import TopicPartition

_LOOKED_AT_MAX = 64  # partitions of one member before one is moved away from its rack: it may have thousands


def owners_of(partition_counts: Mapping[str, int], members: Members) -> dict[TopicPartition, str]:
    """Who has each partition; of several who claim one, the member of the latest generation."""
    claims: dict[TopicPartition, tuple[int, str]] = {}
    for member_id in in_order(members):
        member = members[member_id]
        for target in member.owned:
            there = target.partition < partition_counts.get(target.topic, 0)
            if there and target.topic in member.topics:
                claims[target] = max(claims.get(target, (-2, "")), (member.generation, member_id))
    return {target: member_id for target, (_, member_id) in claims.items()}


def sticky_shares(partition_counts: Mapping[str, int], members: Members, racks: ReplicaRacks) -> Assigned:
    partitions = all_partitions(partition_counts, members)
    shares = _Shares(members, Nearness(partitions, racks_of(members), racks))
    owners = owners_of(partition_counts, members)
    for target, member_id in sorted(owners.items()):
        shares.assigned[member_id].append(target)
    shares.deal([target for target in partitions if target not in owners], len(partitions))
    shares.level()
    if shares.nearness.matters:
        shares.bring_near()
    return shares.assigned


class _Shares:
    def __init__(self, members: Members, nearness: Nearness) -> None:
        self._order = in_order(members)
        alike: dict[frozenset[str], frozenset[str]] = {}  # equal ones are one, and so compared at once
        self._topics = {key: alike.setdefault(each.topics, each.topics) for key, each in members.items()}
        self.nearness = nearness
        self.assigned: Assigned = {member_id: [] for member_id in self._order}
        self._readers: dict[str, list[str]] = {}  # by topic
        self._barren: dict[str, set[tuple[str | None, frozenset[str]]]] = {}

    def readers(self, topic: str) -> list[str]:
        found = self._readers.get(topic)
        if found is None:
            found = [each for each in self._order if topic in self._topics[each]]
            self._readers[topic] = found
        return found

    def load(self, member_id: str) -> int:
        return len(self.assigned[member_id])

    # -- dealing -------------------------------------------------------------------------------------------

    def deal(self, targets: list[TopicPartition], total: int) -> None:
        """Each to the reader that has least; where racks matter, to a near one that has not got enough."""
        if not self.nearness.matters:
            for target in targets:
                self._give(min(self.readers(target.topic), key=self.load), target)
            return
        near = {
            target: [each for each in self.readers(target.topic) if self._near(each, target)]
            for target in targets
        }
        enough = -(-total // len(self._order))
        for target in sorted(targets, key=lambda each: (len(near[each]), each)):  # who has no choice is first
            readers = self.readers(target.topic)
            choices = (near[target], [each for each in readers if not self.nearness.is_far(each, target)])
            for choice in choices:
                takers = [each for each in choice if self.load(each) < enough]
                if takers:
                    break
            else:
                takers = readers
            self._give(min(takers, key=self.load), target)

    def _give(self, member_id: str, target: TopicPartition) -> None:
        self.assigned[member_id].append(target)

    # -- levelling -----------------------------------------------------------------------------------------

    def level(self) -> None:
        """Moves partitions from those with most to those with least, as long as that levels anything."""
        moved = True
        while moved:  # again, because what one gave up may let another give
            moved = False
            givers = [(-self.load(member_id), place) for place, member_id in enumerate(self._order)]
            heapify(givers)
            while givers:
                place = heappop(givers)[1]
                if self._give_one_up(self._order[place]) or self._pass_one_on(self._order[place]):
                    moved = True
                    heappush(givers, (-self.load(self._order[place]), place))

    def _give_one_up(self, giver: str) -> bool:
        """One that its taker is not farther from, if there is such; `bring_near` does the rest."""
        worse: tuple[TopicPartition, str] | None = None
        takers: dict[str, Sequence[str]] = {}  # by topic
        for looked, target in enumerate(reversed(self.assigned[giver])):
            if worse is not None and looked >= _LOOKED_AT_MAX:
                break
            if target.topic not in takers:
                takers[target.topic] = self._poorer_readers(target.topic, self.load(giver))
            for taker in takers[target.topic]:
                if self._far(taker, target) <= self._far(giver, target):
                    self._move(target, giver, taker)
                    return True
                worse = worse or (target, taker)
        if worse is not None:
            self._move(worse[0], giver, worse[1])
        return worse is not None

    def _pass_one_on(self, giver: str) -> bool:
        """Over others that give one up in turn, to somebody who reads none of the giver's topics."""
        if self.load(giver) - min(map(self.load, self._order)) <= 1:
            return False
        came: dict[str, tuple[str, TopicPartition]] = {}  # from whom, and with what
        holders = [giver]
        for holder in holders:  # it grows: those who can be reached directly are first
            for target in {each.topic: each for each in self.assigned[holder]}.values():
                for taker in self.readers(target.topic):
                    if taker == giver or taker in came:
                        continue
                    came[taker] = (holder, target)
                    if self.load(giver) - self.load(taker) > 1:
                        self._pass_along(came, giver, taker)
                        return True
                    holders.append(taker)
        return False

    def _pass_along(self, came: Mapping[str, tuple[str, TopicPartition]], giver: str, taker: str) -> None:
        while taker != giver:
            holder, target = came[taker]
            self._move(target, holder, taker)
            taker = holder

    def _poorer_readers(self, topic: str, load: int) -> Sequence[str]:
        """Those with least, if that is less than `load` by more than one."""
        readers = self.readers(topic)
        least = min(map(self.load, readers))
        return [each for each in readers if self.load(each) == least] if load - least > 1 else ()

    def _near(self, member_id: str, target: TopicPartition) -> bool:
        return self.nearness.is_near(member_id, target)

    def _far(self, member_id: str, target: TopicPartition) -> bool:
        return self.nearness.is_far(member_id, target)

    def _move(self, target: TopicPartition, giver: str, taker: str) -> None:
        self.assigned[giver].remove(target)
        self.assigned[taker].append(target)

    # -- nearer --------------------------------------------------------------------------------------------

    def bring_near(self) -> None:
        gained = True
        while gained:  # every step brings one nearer, so there is an end
            gained = False
            for holder in self._order:
                for target in [each for each in self.assigned[holder] if self._far(holder, each)]:
                    gained = self._bring_nearer(target, holder) or gained

    def _bring_nearer(self, target: TopicPartition, holder: str) -> bool:
        if target not in self.assigned[holder]:  # it went the other way already
            return False
        near = [each for each in self.readers(target.topic) if self._near(each, target)]
        for taker in near:
            if self.load(holder) > self.load(taker):
                self._moved(target, holder, taker)
                return True
        for taker in near:
            back = self._in_return(taker, holder)
            if back is not None:
                self._moved(target, holder, taker)
                self._moved(back, taker, holder)
                return True
        return False

    def _in_return(self, taker: str, holder: str) -> TopicPartition | None:
        """What `taker` could give for a partition that is near to it, without a loss."""
        topics = self._topics[holder]
        asking = (self.nearness.rack_of(holder), topics)
        barren = self._barren.setdefault(taker, set())  # who asked in vain since the taker's share changed
        if asking in barren:
            return None
        for target in self.assigned[taker]:
            if target.topic in topics and self._far(holder, target) <= self._far(taker, target):
                return target
        barren.add(asking)
        return None

    def _moved(self, target: TopicPartition, giver: str, taker: str) -> None:
        self._move(target, giver, taker)
        self._barren.pop(giver, None)
        self._barren.pop(taker, None)
