"""Stories of consumer groups (KIP-848): heartbeats that are right, late and wrong, and what is told."""

from __future__ import annotations

from typing import Any

from calls import topic_id_of
from compat.waiting import eventually
from interop.stories.group_stories import (
    Member as ClassicMember,
)
from interop.stories.group_stories import (
    commit_request,
    delete_request,
    described,
    fetch_request,
    leave_request,
    listed,
)
from interop.stories.transcript import Side
from ottla.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest
from ottla.protocol.messages.offset_commit import OffsetCommitRequest
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest
from ottla.protocol.messages.sync_group import SyncGroupRequest


class Member:
    """A member of the new protocol as a story knows it."""

    def __init__(
        self, side: Side, group: str, topic: str, label: str = "one", instance_id: str | None = None
    ) -> None:
        self.side = side
        self.group, self.topic, self.instance_id = group, topic, instance_id
        self.id = side.name(f"member {label}")
        self.epoch = 0

    def request(self, **changes: Any) -> ConsumerGroupHeartbeatRequest:
        terms = {
            "group_id": self.group,
            "member_id": self.id,
            "member_epoch": self.epoch,
            "instance_id": self.instance_id,
        }
        return ConsumerGroupHeartbeatRequest(**{**terms, **changes})

    def join_request(self, **changes: Any) -> ConsumerGroupHeartbeatRequest:
        terms: dict[str, Any] = {
            "member_epoch": 0,
            "rebalance_timeout_ms": 60_000,
            "subscribed_topic_names": [self.topic],
            "topic_partitions": [],
        }
        return self.request(**{**terms, **changes})

    def join(self, what: str = "joins", **changes: Any) -> ConsumerGroupHeartbeatResponse:
        return self._heard(self.side.ask(what, self.join_request(**changes), 1))

    def beat(self, what: str = "lives", **changes: Any) -> ConsumerGroupHeartbeatResponse:
        return self._heard(self.side.ask(what, self.request(**changes), 1))

    def owning(self, *partitions: int) -> list[TopicPartitions]:
        if not partitions:
            return []
        return [TopicPartitions(topic_id_of(self.side.client, self.topic), partitions)]

    def _heard(self, answer: ConsumerGroupHeartbeatResponse) -> ConsumerGroupHeartbeatResponse:
        if not answer.error_code:
            self.epoch = answer.member_epoch
        return answer


def topic_of(side: Side, partitions: int = 1) -> str:
    """A topic that the coordinator knows whole; Kafka's hears of it some time after it can be written to."""
    topic = side.topic(partitions=partitions)

    def is_known() -> bool:
        answer = side.client.call(Member(side, side.group("scout"), topic).join_request(), 1)
        assigned = answer.assignment.topic_partitions if answer.assignment else ()
        return sum(len(each.partitions) for each in assigned) == partitions

    assert eventually(is_known, 60)
    return topic


def told(side: Side, what: str, *groups: str) -> None:
    for version in side.versions(ConsumerGroupDescribeRequest):
        side.ask(what, ConsumerGroupDescribeRequest(groups), version)
    described(side, what, *groups)


def heartbeats_that_mean_nothing(side: Side) -> None:
    topic, group = topic_of(side), side.group()
    member = Member(side, group, topic)
    for version in side.versions(ConsumerGroupHeartbeatRequest):
        wrong: dict[str, dict[str, Any]] = {
            "no group": {"group_id": ""},
            "no member": {"member_id": "", "member_epoch": 5},
            "no time": {"rebalance_timeout_ms": -1},
            "no partitions": {"topic_partitions": None},
            "owns something": {"topic_partitions": member.owning(0)},
            "no topics": {"subscribed_topic_names": None},
            "an empty instance": {"instance_id": ""},
            "an empty rack": {"rack_id": ""},
            "an unknown assignor": {"server_assignor": "nonsense"},
            "an empty assignor": {"server_assignor": ""},
            "epoch -3": {"member_epoch": -3},
            "leaves for a while, and is not static": {"member_epoch": -2},
        }
        for what, changes in wrong.items():
            side.ask(what, member.join_request(**changes), version)
    side.ask("no member, 1", member.join_request(member_id=""), 1)
    side.ask(
        "a pattern that is none",
        member.join_request(subscribed_topic_names=None, subscribed_topic_regex="("),
        1,
    )
    told(side, "nobody is in it", group)
    for epoch in (5, -1):
        side.ask(f"of no group with epoch {epoch}", member.request(member_epoch=epoch), 1)
    side.ask("of no group, static", member.request(member_epoch=-2, instance_id="i"), 1)


def a_member_and_its_epochs(side: Side) -> None:
    topic, group = topic_of(side, 4), side.group()
    one, two = Member(side, group, topic), Member(side, group, topic, "two")
    one.join()
    one.beat()
    one.beat("tells what it owns", topic_partitions=one.owning(0, 1, 2, 3))
    told(side, "one member", group)
    for epoch in (one.epoch + 1, 77):
        side.ask("another epoch", one.request(member_epoch=epoch), 1)
        side.ask(
            "another epoch, with partitions",
            one.request(member_epoch=epoch, topic_partitions=one.owning(0)),
            1,
        )
    side.ask("a stranger", one.request(member_id="stranger", member_epoch=1), 1)
    two.join()
    told(side, "the first must give up some", group)
    answer = one.beat("is told to give up some")
    kept = (
        [each for part in answer.assignment.topic_partitions for each in part.partitions]
        if answer.assignment
        else []
    )
    two.beat("has none yet")
    one.beat("has given them up", topic_partitions=one.owning(*kept))
    two.beat("may have them")
    told(side, "two members", group)
    one.beat("subscribes to nothing", subscribed_topic_names=[], topic_partitions=one.owning(*kept))
    told(side, "one with nothing", group)
    side.ask("leaves", one.request(member_epoch=-1), 1)
    side.ask("leaves again", one.request(member_epoch=-1), 1)
    told(side, "one has left", group)
    side.ask("is not empty", DeleteGroupsRequest([group]), 2)
    side.ask("leaves", two.request(member_epoch=-1), 1)
    told(side, "all have left", group)
    side.ask("is empty", DeleteGroupsRequest([group]), 2)
    told(side, "deleted", group)


def members_with_an_instance(side: Side) -> None:
    topic, group = topic_of(side, 2), side.group()
    first = Member(side, group, topic, "first", "instance")
    first.join()
    second = Member(side, group, topic, "second", "instance")
    side.ask("while the first lives", second.join_request(), 1)
    side.ask("as the first", second.request(member_epoch=first.epoch), 1)
    side.ask("leaves for a while", first.request(member_epoch=-2), 1)
    told(side, "away", group)
    side.ask("beats while away", first.request(), 1)
    second.join("is back")
    told(side, "back", group)
    side.ask("the first is fenced", first.request(), 1)
    side.ask("the first leaves", first.request(member_epoch=-1), 1)
    side.ask("an unknown instance", first.request(instance_id="unknown"), 1)
    side.ask("leaves for good", second.request(member_epoch=-1), 1)
    told(side, "gone", group)


def offsets_of_consumer_groups(side: Side) -> None:
    topic, other, group = topic_of(side), side.topic("other"), side.group()
    member = Member(side, group, topic)
    member.join()
    for version in side.versions(OffsetCommitRequest):
        for what, epoch, member_id in (
            ("its epoch", member.epoch, member.id),
            ("an old epoch", member.epoch - 1, member.id),
            ("a later epoch", member.epoch + 1, member.id),
            ("no epoch", -1, member.id),
            ("a stranger", member.epoch, "stranger"),
            ("nobody", -1, ""),
        ):
            side.ask(what, commit_request(side, group, topic, version, epoch, member_id), version)
    for version in side.versions(OffsetFetchRequest, 9):
        for what, epoch, told_id in (
            ("its epoch", member.epoch, member.id),
            ("an old epoch", member.epoch - 1, member.id),
            ("a later epoch", member.epoch + 1, member.id),
            ("a stranger", member.epoch, "stranger"),
            ("nobody", -1, None),
        ):
            side.ask(what, fetch_request(side, group, topic, version, told_id, epoch), version)
    side.ask("of a topic that is read", delete_request(group, topic, 0), 0)
    side.ask("of one that is not", delete_request(group, other, 0), 0)


def classic_calls_to_a_consumer_group(side: Side) -> None:
    topic, group = topic_of(side), side.group()
    member = Member(side, group, topic)
    member.join()
    for version in side.versions(HeartbeatRequest):
        side.ask("of the new protocol", HeartbeatRequest(group, member.epoch, member.id), version)
    for version in side.versions(SyncGroupRequest):
        request = SyncGroupRequest(group, member.epoch, member.id, None, "consumer", "range")
        side.ask("of the new protocol", request, version)
    side.ask("of the new protocol", leave_request(group, 5, (member.id, None), ("stranger", None)), 5)
    told(side, "after a classic leave", group)
    member.join("joins, or is still in")
    classic = ClassicMember(side, group, topic)
    for version in side.versions(JoinGroupRequest):
        answer = side.client.call(classic.join_request(member_id="stranger"), version)
        side.note(f"a stranger, JoinGroup {version}", (answer.error_code, answer.protocol_name))
        side.ask("another type", classic.join_request(protocol_type="connect"), version)


def lists_of_both_kinds(side: Side) -> None:
    topic = topic_of(side)
    classic, new = side.group("classic one"), side.group("new one")
    ClassicMember(side, classic, topic).settle()
    Member(side, new, topic).join()
    listed(side, "all", classic, new)
    for types in (["classic"], ["consumer"], ["Consumer", "classic"]):
        listed(side, f"of {types}", classic, new, types_filter=types)
    for states in (["Stable"], ["Reconciling", "Assigning"], ["Empty"]):
        listed(side, f"in {states}", classic, new, states_filter=states)
    told(side, "both", classic, new)


STORIES = [
    heartbeats_that_mean_nothing,
    a_member_and_its_epochs,
    members_with_an_instance,
    offsets_of_consumer_groups,
    classic_calls_to_a_consumer_group,
    lists_of_both_kinds,
]
