"""One decision about a consumer group, whichever protocol the member that causes it speaks.

A member comes or changes, the group's epoch follows, the assignor makes a target, and the member moves
towards it. Each step gives records; what the log holds of the group changes when these are applied, not
before, so this knows the group as it will be then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.coordinator.assignors import ASSIGNORS, Question
from ottla.coordinator.consumer_group import ConsumerGroup
from ottla.coordinator.consumer_members import (
    JOINS,
    NO_SLOTS,
    ConsumerMember,
    MemberState,
    Slot,
    Slots,
    to_record,
)
from ottla.coordinator.consumer_reconciliation import reconcile
from ottla.coordinator.consumer_records import (
    ConsumerGroupKey,
    ConsumerGroupValue,
    ConsumerKey,
    ConsumerValue,
    MemberAssignmentKey,
    MemberKey,
    MemberTargetKey,
    MemberTargetValue,
    PatternKey,
    PatternValue,
    TargetKey,
    TargetValue,
    consumer_record,
)
from ottla.coordinator.consumer_removal import forget
from ottla.coordinator.group_config import GroupConfig
from ottla.coordinator.known_topics import KnownTopic, Topics, existing, metadata_hash
from ottla.coordinator.state_log import Now, StateRecord
from ottla.coordinator.topic_patterns import matching_topics
from ottla.model.errors import ErrorCode, Refused
from ottla.model.values import replace


class Change:
    def __init__(self, group: ConsumerGroup, topics: Topics, config: GroupConfig, now: Now) -> None:
        self.records: list[StateRecord] = []
        self.group = group
        self.topics = topics
        self.config = config
        self.now = now
        self.replaced: ConsumerMember | None = None  # the static member whose place the new one takes
        # What the group will be when the records are applied.
        self.members: Mapping[str, ConsumerMember] = group.members
        self.targets: Mapping[str, Slots] = group.targets
        self.patterns: Mapping[str, tuple[str, ...]] = group.patterns
        self.epoch = group.epoch

    def record(self, key: ConsumerKey, value: ConsumerValue | None) -> None:
        self.records.append(consumer_record(key, value))

    # -- who comes -----------------------------------------------------------------------------------------

    def new_member(self, member_id: str) -> ConsumerMember:
        size_max = self.config.consumer_size_max
        if len(self.group.members) >= size_max:
            raise Refused(
                ErrorCode.GROUP_MAX_SIZE_REACHED, f"group {self.group.id} has {size_max} members already"
            )
        return ConsumerMember(member_id)

    def replace_static(self, known: ConsumerMember, member_id: str) -> ConsumerMember:
        """It takes over what the other was meant to have; whatever that one still reads, it is fenced now."""
        group = self.group
        self.replaced = known
        target = group.targets.get(known.id, NO_SLOTS)
        self.records += forget(group.id, known.id)
        self.record(MemberTargetKey(group.id, member_id), MemberTargetValue(to_record(target)))
        self.members = {each: member for each, member in group.members.items() if each != known.id}
        self.targets = {
            **{each: slots for each, slots in group.targets.items() if each != known.id},
            member_id: target,
        }
        return replace(
            known,
            id=member_id,
            epoch=JOINS,
            previous_epoch=JOINS,
            state=MemberState.STABLE,
            pending_revocation=NO_SLOTS,
        )

    # -- what it wants -------------------------------------------------------------------------------------

    def take(self, before: ConsumerMember, member: ConsumerMember) -> bool:
        """Whether the assignor has to look at it."""
        known = self.group.members.get(member.id)
        if member != before or known is None:
            self.record(MemberKey(self.group.id, member.id), member.metadata())
            self.members = {**self.members, member.id: member}
        if before.pattern not in (None, member.pattern):
            self.records += self.group.unused_patterns(self.members.values())
        is_new = known is None and self.replaced is None
        return is_new or not member.has_same_subscription(before)

    def resolve_pattern(self, pattern: str, names: Iterable[str]) -> bool:
        """Whether it stands for other topics now.

        Only when the topics have changed since, or the pattern is new: it costs time for every topic.
        """
        group, version = self.group, self.topics.version
        if group.pattern_versions.get(pattern) == version:
            return False
        found = matching_topics(pattern, names)
        group.pattern_versions[pattern] = version
        if found == group.patterns.get(pattern):
            return False
        self.record(PatternKey(group.id, pattern), PatternValue(found, max(version, 0), self.now.wall_ms))
        self.patterns = {**group.patterns, pattern: found}
        return True

    # -- has the group changed, and what does the assignor say ---------------------------------------------

    def find_target(self, is_changed: bool) -> int:
        """The epoch of the target that the member follows, after a look at the topics if that is due."""
        group, version = self.group, self.topics.version
        is_behind = is_changed or group.epoch > group.target_epoch
        if not is_behind and group.topics_version == version:
            return group.target_epoch
        group.topics_version = version
        topics = subscribed_topics(self.members.values(), self.patterns, self.topics)
        topics_hash = metadata_hash(topics)
        if is_changed or (topics_hash != group.metadata_hash and not is_behind):
            self.epoch += 1
        if (self.epoch, topics_hash) != (group.epoch, group.metadata_hash):
            self.record(ConsumerGroupKey(group.id), ConsumerGroupValue(self.epoch, topics_hash))
        if self.epoch > group.target_epoch:
            self._assign(topics)
            self.record(TargetKey(group.id), TargetValue(self.epoch))
        return self.epoch

    def _assign(self, topics: Mapping[str, KnownTopic]) -> None:
        group = self.group
        in_order = sorted(
            self.members.values(), key=lambda each: (each.instance_id is None, each.instance_id or each.id)
        )
        question = Question(
            {
                each.id: frozenset(
                    topics[name].id for name in each.subscribed(self.patterns) if name in topics
                )
                for each in in_order
            },
            {topic.id: topic.partitions for topic in topics.values()},
            self.targets,
        )
        answer = ASSIGNORS[assignor_of(self.members.values(), self.config)](question)
        for member_id, slots in answer.items():
            if slots != self.targets.get(member_id):
                self.record(MemberTargetKey(group.id, member_id), MemberTargetValue(to_record(slots)))
        self.targets = answer

    # -- what the member can have now ----------------------------------------------------------------------

    def reconcile(self, member: ConsumerMember, target_epoch: int, owned: Slots | None) -> ConsumerMember:
        """`owned` is what it says it has, None for what it said last."""

        def is_free(slot: Slot) -> bool:
            owner = self.group.owners.get(slot)
            return owner in (None, member.id) or (self.replaced is not None and owner == self.replaced.id)

        target = self.targets.get(member.id, NO_SLOTS)
        after = reconcile(member, target, target_epoch, owned, is_free)
        if after != member or self.replaced is not None:
            self.record(MemberAssignmentKey(self.group.id, member.id), after.assignment())
        return after


def subscribed_topics(
    members: Iterable[ConsumerMember], patterns: Mapping[str, tuple[str, ...]], topics: Topics
) -> dict[str, KnownTopic]:
    """Those that exist."""
    return existing(topics, frozenset[str]().union(*(each.subscribed(patterns) for each in members)))


def assignor_of(members: Iterable[ConsumerMember], config: GroupConfig) -> str:
    """What most members want and the broker offers; of equals, what earlier members want."""
    votes: dict[str, int] = {}
    for member in members:
        if member.assignor in config.consumer_assignors:
            assert member.assignor is not None
            votes[member.assignor] = votes.get(member.assignor, 0) + 1
    return max(votes, key=votes.__getitem__, default=config.consumer_assignors[0])
