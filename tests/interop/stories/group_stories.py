"""Stories of groups: what coordinators say to members, old members, strangers and administrators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calls import topic_id_of
from interop.stories.transcript import Side
from ottla.model.errors import ErrorCode
from ottla.protocol.consumer_protocol import Subscription, encode_subscription
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from wire import WireClient

_STATIC_SINCE = {JoinGroupRequest: 5, SyncGroupRequest: 3, HeartbeatRequest: 3, OffsetCommitRequest: 7}


class Member:
    """A member of a classic group as a story knows it."""

    def __init__(
        self,
        side: Side,
        group: str,
        topic: str,
        instance_id: str | None = None,
        client: WireClient | None = None,
    ) -> None:
        self.side = side
        self.client = client or side.connect()
        self.group, self.topic, self.instance_id = group, topic, instance_id
        self.id, self.generation = "", -1

    def join_request(self, **changes: Any) -> JoinGroupRequest:
        subscription = encode_subscription(Subscription([self.topic]), 1)
        terms: dict[str, Any] = {
            "group_id": self.group,
            "session_timeout_ms": 60_000,
            "rebalance_timeout_ms": 60_000,
            "member_id": self.id,
            "group_instance_id": self.instance_id,
            "protocol_type": "consumer",
            "protocols": [JoinGroupRequestProtocol("range", subscription)],
        }
        return JoinGroupRequest(**{**terms, **changes})

    def join(self, version: int = 9, **changes: Any) -> JoinGroupResponse:
        """Noted, with the id it is given first."""
        answer = self.side.ask("joins", self.join_request(**changes), version, self.client)
        self.id = answer.member_id
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            answer = self.side.ask("joins with its id", self.join_request(**changes), version, self.client)
        self.id, self.generation = answer.member_id, answer.generation_id
        assert isinstance(answer, JoinGroupResponse)
        return answer

    def sync_request(self, *members: str, version: int = 5) -> SyncGroupRequest:
        return SyncGroupRequest(
            self.group,
            self.generation,
            self.id,
            self.instance_id,
            "consumer",
            "range",
            [SyncGroupRequestAssignment(each, b"part") for each in members],
        )

    def settle(self, version: int = 9) -> None:
        """Alone in a stable group."""
        self.join(version)
        self.side.ask("is assigned all", self.sync_request(self.id), 5, self.client)

    def told_by_all(self, what: str, **changes: Any) -> None:
        """What each API of a member says, in each version."""
        side, instance_id = self.side, self.instance_id
        terms = {"group": self.group, "generation": self.generation, "member": self.id, **changes}
        group, generation, member = terms["group"], terms["generation"], terms["member"]
        for version in side.versions(HeartbeatRequest, self._since(HeartbeatRequest)):
            side.ask(what, HeartbeatRequest(group, generation, member, instance_id), version)
        for version in side.versions(SyncGroupRequest, self._since(SyncGroupRequest)):
            request = SyncGroupRequest(group, generation, member, instance_id, "consumer", "range")
            side.ask(what, request, version)
        for version in side.versions(OffsetCommitRequest, self._since(OffsetCommitRequest)):
            side.ask(
                what,
                commit_request(side, group, self.topic, version, generation, member, instance_id),
                version,
            )

    def told_when_leaving(self, what: str, **changes: Any) -> None:
        terms = {"group": self.group, "member": self.id, "instance": self.instance_id, **changes}
        for version in self.side.versions(LeaveGroupRequest, 3 if terms["instance"] is not None else 0):
            self.side.ask(
                what, leave_request(terms["group"], version, (terms["member"], terms["instance"])), version
            )

    def _since(self, kind: type[Any]) -> int:
        return 0 if self.instance_id is None else _STATIC_SINCE[kind]


def leave_request(group: str, version: int, *members: tuple[str, str | None]) -> LeaveGroupRequest:
    if version < 3:
        return LeaveGroupRequest(group, members[0][0])
    return LeaveGroupRequest(group, members=[MemberIdentity(*each) for each in members])


def commit_request(
    side: Side,
    group: str,
    topic: str,
    version: int,
    generation: int = -1,
    member: str = "",
    instance_id: str | None = None,
    *,
    metadata: str = "note",
    partitions: Sequence[int] = (0,),
) -> OffsetCommitRequest:
    committed = [OffsetCommitRequestPartition(each, 5, committed_metadata=metadata) for each in partitions]
    named = OffsetCommitRequestTopic(topic, partitions=committed)
    if version >= 10:
        named = OffsetCommitRequestTopic(topic_id=topic_id_of(side.client, topic), partitions=committed)
    return OffsetCommitRequest(group, generation, member, instance_id, topics=[named])


def fetch_request(
    side: Side,
    group: str,
    topic: str | None,
    version: int,
    member: str | None = None,
    epoch: int = -1,
    *,
    partitions: Sequence[int] = (0,),
    require_stable: bool = False,
) -> OffsetFetchRequest:
    if version < 8:
        topics = None if topic is None else [OffsetFetchRequestTopic(topic, partitions)]
        return OffsetFetchRequest(group, topics, require_stable=require_stable)
    wanted = None
    if topic is not None and version < 10:
        wanted = [OffsetFetchRequestTopics(topic, partition_indexes=partitions)]
    elif topic is not None:
        wanted = [
            OffsetFetchRequestTopics(topic_id=topic_id_of(side.client, topic), partition_indexes=partitions)
        ]
    return OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group, member, epoch, wanted)], require_stable=require_stable
    )


def delete_request(group: str, topic: str, *partitions: int) -> OffsetDeleteRequest:
    wanted = [OffsetDeleteRequestPartition(each) for each in partitions]
    return OffsetDeleteRequest(group, [OffsetDeleteRequestTopic(topic, wanted)])


def described(side: Side, what: str, *groups: str) -> None:
    for version in side.versions(DescribeGroupsRequest):
        side.ask(what, DescribeGroupsRequest(groups), version)


def fetched(side: Side, what: str, group: str, topic: str | None, **terms: Any) -> None:
    since = 2 if topic is None else 7 if terms.get("require_stable") else 0
    for version in side.versions(OffsetFetchRequest, since):
        side.ask(what, fetch_request(side, group, topic, version, **terms), version)


# -- the stories -------------------------------------------------------------------------------------------


def no_coordinator_yet(side: Side) -> None:
    """The first story of a broker: nobody has asked for a coordinator, so there is none."""
    topic, group = side.topic(), side.name("group")
    stranger = Member(side, group, topic)
    stranger.id, stranger.generation = "stranger", 1
    for version in side.versions(JoinGroupRequest):
        side.ask("no coordinator", stranger.join_request(), version)
    stranger.told_by_all("no coordinator")
    stranger.told_when_leaving("no coordinator")
    described(side, "no coordinator", group)
    for version in (1, *side.versions(OffsetFetchRequest, 8)):  # from 2 to 7 we tell clients more than Kafka
        side.ask("no coordinator", fetch_request(side, group, topic, version), version)
    fetched(side, "no coordinator, all topics", group, None)
    side.ask("no coordinator", delete_request(group, topic, 0), 0)
    for version in side.versions(DeleteGroupsRequest):
        side.ask("no coordinator", DeleteGroupsRequest([group]), version)
    listed(side, "no coordinator")


def a_group_that_nobody_knows(side: Side) -> None:
    topic, group = side.topic(), side.group()
    stranger = Member(side, group, topic)
    stranger.id, stranger.generation = "stranger", 1
    for version in side.versions(JoinGroupRequest):
        side.ask("joins as a stranger", stranger.join_request(), version)
    stranger.told_by_all("a stranger")
    stranger.told_when_leaving("a stranger")
    described(side, "nobody knows it", group)
    fetched(side, "nobody knows it", group, topic)
    fetched(side, "nobody knows it, all topics", group, None)
    side.ask("nobody knows it", delete_request(group, topic, 0), 0)
    for version in side.versions(DeleteGroupsRequest):
        side.ask("nobody knows it", DeleteGroupsRequest([group]), version)


def a_group_without_a_name(side: Side) -> None:
    topic = side.topic()
    side.group()
    nobody = Member(side, "", topic)
    nobody.id, nobody.generation = "stranger", 1
    for version in side.versions(JoinGroupRequest):
        side.ask("without a name", nobody.join_request(), version)
    nobody.told_by_all("without a name")
    nobody.told_when_leaving("without a name")
    described(side, "without a name", "")
    fetched(side, "without a name", "", topic)
    side.ask("without a name", delete_request("", topic, 0), 0)
    for version in side.versions(DeleteGroupsRequest):
        side.ask("without a name", DeleteGroupsRequest([""]), version)
    for version in side.versions(FindCoordinatorRequest, 4):
        side.ask("of no kind", FindCoordinatorRequest(key_type=9, coordinator_keys=["x"]), version)


def joins_that_are_refused(side: Side) -> None:
    topic = side.topic()
    for version in side.versions(JoinGroupRequest):
        for what, changes in {
            "a short session": {"session_timeout_ms": 1},
            "a long session": {"session_timeout_ms": 10**9},
            "no protocols": {"protocols": []},
            "no type": {"protocol_type": ""},
        }.items():
            member = Member(side, side.group(), topic)
            side.ask(what, member.join_request(**changes), version)
    group = side.group()
    Member(side, group, topic).settle()
    other = Member(side, group, topic)
    for version in side.versions(JoinGroupRequest):
        protocols = [JoinGroupRequestProtocol("other", b"")]
        side.ask("another protocol", other.join_request(protocols=protocols), version)
        side.ask("another type", other.join_request(protocol_type="connect"), version)


def members_of_another_time(side: Side) -> None:
    topic, group = side.topic(), side.group()
    member = Member(side, group, topic)
    member.settle()
    member.told_by_all("of this time")
    member.told_by_all("of an old generation", generation=member.generation - 1)
    member.told_by_all("of a later generation", generation=member.generation + 1)
    member.told_by_all("of no generation", generation=-1)
    member.told_by_all("without a name", member="")
    member.told_by_all("a stranger", member="stranger")
    member.told_when_leaving("a stranger", member="stranger")
    for version in side.versions(SyncGroupRequest, 5):
        for kind, name in (("connect", "range"), ("consumer", "sticky"), (None, None)):
            request = SyncGroupRequest(group, member.generation, member.id, None, kind, name)
            side.ask(f"with {kind} {name}", request, version)
    for version in side.versions(JoinGroupRequest):
        side.ask("a stranger", member.join_request(member_id="stranger"), version)
    for version in side.versions(OffsetCommitRequest):
        side.ask("no member at all", commit_request(side, group, topic, version), version)


def a_rebalance_under_way(side: Side) -> None:
    topic, group = side.topic(), side.group()
    first = Member(side, group, topic)
    first.settle()
    second = Member(side, group, topic)
    given = side.ask("joins", second.join_request(), 9, second.client)
    second.id = given.member_id
    side.note("one that has only an id", given)
    described(side, "one has only an id", group)
    second.client.send(second.join_request(), 9)
    _await_state(side, group, "PreparingRebalance")
    first.told_by_all("others join")
    described(side, "others join", group)
    side.ask("others join", DeleteGroupsRequest([group]), 2)
    answer = side.ask("joins again", first.join_request(), 9, first.client)
    first.generation = answer.generation_id
    joined = second.client.receive()
    second.generation = joined.generation_id
    side.note("is in", joined)
    _await_state(side, group, "CompletingRebalance")
    for version in side.versions(HeartbeatRequest):
        side.ask("the leader assigns", HeartbeatRequest(group, first.generation, first.id), version)
    for version in side.versions(OffsetCommitRequest):
        request = commit_request(side, group, topic, version, first.generation, first.id)
        side.ask("the leader assigns", request, version)
    described(side, "the leader assigns", group)
    second.client.send(second.sync_request(), 5)
    side.ask("assigns", first.sync_request(first.id), 5, first.client)
    side.note("is given nothing", second.client.receive())
    described(side, "stable", group)
    side.ask("leaves", leave_request(group, 5, (second.id, None), ("stranger", None)), 5)
    side.ask("one has left", HeartbeatRequest(group, first.generation, first.id), 4)


def _await_state(side: Side, group: str, state: str) -> None:
    from compat.waiting import eventually

    assert eventually(
        lambda: side.client.call(DescribeGroupsRequest([group]), 5).groups[0].group_state == state, 60
    )


def static_members_that_come_back(side: Side) -> None:
    topic = side.topic()
    for version in side.versions(JoinGroupRequest, 5):
        group = side.group()
        first = Member(side, group, topic, "instance")
        first.settle(version)
        second = Member(side, group, topic, "instance")
        second.join(version)
        first.told_by_all("replaced")
        side.ask("replaced", first.join_request(), version, first.client)
        first.told_when_leaving("replaced")
        side.ask("goes on", second.sync_request(second.id), 5, second.client)
        second.told_by_all("goes on")
        described(side, "replaced", group)
        for_any = leave_request(
            group, 5, ("", "instance"), ("", "unknown"), ("stranger", "unknown"), ("", None)
        )
        side.ask("an administrator removes it", for_any, 5)
        described(side, "nobody is left", group)


def a_static_member_with_another_protocol(side: Side) -> None:
    topic, group = side.topic(), side.group()
    leader = Member(side, group, topic, "leader")
    leader.settle()
    again = Member(side, group, topic, "leader")
    subscription = encode_subscription(Subscription([topic, "another"]), 1)
    again.join(9, protocols=[JoinGroupRequestProtocol("range", subscription)])
    described(side, "its subscription is another", group)


def commits_and_what_is_told_of_them(side: Side) -> None:
    topic, group = side.topic(partitions=2), side.group()
    for version in side.versions(OffsetCommitRequest):
        side.ask("no member", commit_request(side, group, topic, version), version)
        request = commit_request(side, group, topic, version, metadata="m" * 5000)
        side.ask("long metadata", request, version)
        side.ask("no such partition", commit_request(side, group, topic, version, partitions=[0, 7]), version)
        if version < 10:
            side.ask("no such topic", commit_request(side, group, "nowhere", version), version)
        side.ask("a member of no group", commit_request(side, group, topic, version, -1, "stranger"), version)
    fetched(side, "one of them", group, topic, partitions=(0, 1, 9))
    fetched(side, "all", group, None)
    fetched(side, "stable ones", group, topic, require_stable=True)
    for version in side.versions(OffsetFetchRequest, 0, 9):
        side.ask("no such topic", fetch_request(side, group, "nowhere", version), version)
    for version in side.versions(OffsetFetchRequest, 9):
        side.ask("by a member", fetch_request(side, group, topic, version, "stranger", 3), version)
    described(side, "it has only commits", group)
    listed(side, "it has only commits", group)


def listed(side: Side, what: str, *groups: str, **filters: Sequence[str]) -> None:
    since = 5 if "types_filter" in filters else 4 if filters else 0
    for version in side.versions(ListGroupsRequest, since):
        answer = side.client.call(ListGroupsRequest(**filters), version)
        side.note(
            f"{what}, ListGroups {version}",
            [answer.error_code, *(each for each in answer.groups if each.group_id in groups)],
        )


def lists_of_groups(side: Side) -> None:
    topic = side.topic()
    empty, stable, left = side.group("empty"), side.group("stable"), side.group("left")
    side.ask("commits", commit_request(side, empty, topic, 9), 9)
    Member(side, stable, topic).settle()
    gone = Member(side, left, topic)
    gone.settle()
    side.ask("leaves", leave_request(left, 5, (gone.id, None)), 5)
    groups = (empty, stable, left)
    listed(side, "all", *groups)
    for states in (["Stable"], ["stable", "EMPTY"], ["Dead"], ["nonsense"], ["Stable", "nonsense"], [""]):
        listed(side, f"in {states}", *groups, states_filter=states)
    for types in (["classic"], ["Classic", "consumer"], ["CONSUMER"], ["nonsense"], ["share"]):
        listed(side, f"of {types}", *groups, types_filter=types)
    listed(side, "both", *groups, states_filter=["Empty"], types_filter=["classic"])


def groups_that_are_deleted(side: Side) -> None:
    topic = side.topic()
    for version in side.versions(DeleteGroupsRequest):
        active, empty = side.group("active"), side.group("empty")
        Member(side, active, topic).settle()
        side.ask("commits", commit_request(side, empty, topic, 9), 9)
        side.ask("deletes", DeleteGroupsRequest([active, empty, side.name("missing")]), version)
        side.ask("again", DeleteGroupsRequest([empty]), version)
        described(side, "after that", active, empty)
        fetched(side, "after that", empty, topic)


def offsets_that_are_deleted(side: Side) -> None:
    topic, other = side.topic(), side.topic("other")
    group = side.group()
    member = Member(side, group, topic)
    member.settle()
    for each in (topic, other):
        side.ask("commits", commit_request(side, group, each, 9, member.generation, member.id), 9)
    side.ask("of a topic that is read", delete_request(group, topic, 0), 0)
    side.ask("of one that is not", delete_request(group, other, 0, 5), 0)
    side.ask("of one that is not there", delete_request(group, "nowhere", 0), 0)
    fetched(side, "what is left", group, None)
    side.ask("leaves", leave_request(group, 5, (member.id, None)), 5)
    side.ask("of an empty group", delete_request(group, topic, 0, 0), 0)
    fetched(side, "nothing is left", group, None)
    connected = side.group("connected")
    worker = Member(side, connected, topic)
    worker.join(9, protocol_type="connect", protocols=[JoinGroupRequestProtocol("range", b"")])
    side.ask("of a group of no consumers", delete_request(connected, topic, 0), 0)


STORIES = [
    no_coordinator_yet,
    a_group_that_nobody_knows,
    a_group_without_a_name,
    joins_that_are_refused,
    members_of_another_time,
    a_rebalance_under_way,
    static_members_that_come_back,
    a_static_member_with_another_protocol,
    commits_and_what_is_told_of_them,
    lists_of_groups,
    groups_that_are_deleted,
    offsets_that_are_deleted,
]
