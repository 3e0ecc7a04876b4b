"""ConsumerGroupHeartbeat and ConsumerGroupDescribe over the wire, and other requests about such groups."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from calls import create_topic, unique_name
from group_calls import Member as ClassicMember
from group_calls import find_coordinator
from in_process import InProcessBroker, running_broker
from ottla.model.errors import ErrorCode
from ottla.protocol.consumer_protocol import Subscription, decode_assignment, encode_subscription
from ottla.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ottla.protocol.messages.sync_group import SyncGroupRequest
from wire import WireClient


@dataclass
class Consumer:
    client: WireClient
    group: str
    topic: str
    id: str = field(default_factory=lambda: unique_name("member"))
    epoch: int = 0

    def join(self, version: int = 1) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            self.group,
            self.id if version else "",
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[self.topic],
            topic_partitions=[],
        )
        response = self.client.call(request, version)
        self.id, self.epoch = response.member_id or self.id, response.member_epoch
        return response

    def beat(self) -> Any:
        return self.client.call(ConsumerGroupHeartbeatRequest(self.group, self.id, self.epoch), 1)

    def leave(self) -> Any:
        return self.client.call(ConsumerGroupHeartbeatRequest(self.group, self.id, -1), 1)

    def commit(self, offset: int, epoch: int, version: int = 9) -> ErrorCode:
        partitions = [OffsetCommitRequestPartition(0, offset)]
        request = OffsetCommitRequest(
            self.group, epoch, self.id, topics=[OffsetCommitRequestTopic(self.topic, partitions=partitions)]
        )
        return ErrorCode(self.client.call(request, version).topics[0].partitions[0].error_code)

    def fetch(self, epoch: int) -> Any:
        topics = [OffsetFetchRequestTopics(self.topic, partition_indexes=[0])]
        asked = OffsetFetchRequestGroup(self.group, self.id, epoch, topics)
        return self.client.call(OffsetFetchRequest(groups=[asked]), 9).groups[0]

    def describe(self) -> Any:
        return self.client.call(ConsumerGroupDescribeRequest([self.group]), 1).groups[0]


NewConsumer = Callable[[], Consumer]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessBroker]:
    settings = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "3"}
    with running_broker(tmp_path_factory.mktemp("groups"), settings) as running:
        yield running


@pytest.fixture
def new(broker: InProcessBroker) -> Iterator[NewConsumer]:
    """Members of one group that reads one topic of two partitions."""
    group = unique_name("group")
    with ExitStack() as clients:
        admin = clients.enter_context(WireClient(broker.bootstrap))
        topic = create_topic(admin, partitions=2)
        find_coordinator(admin, group)
        yield lambda: Consumer(clients.enter_context(WireClient(broker.bootstrap)), group, topic)


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_joins_and_leaves(new: NewConsumer, version: int) -> None:
    member = new()
    joined = member.join(version)
    assert (joined.error_code, joined.member_epoch) == (ErrorCode.NONE, 1)
    assert joined.heartbeat_interval_ms == 5000
    assert [list(each.partitions) for each in joined.assignment.topic_partitions] == [[0, 1]]
    left = member.leave()
    assert (left.error_code, left.member_epoch) == (ErrorCode.NONE, -1)
    assert member.describe().group_state == "Empty"


def test_a_refusal_tells_why(new: NewConsumer) -> None:
    member = new()
    refused = member.client.call(ConsumerGroupHeartbeatRequest(member.group, member.id, 7), 1)
    assert refused.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert member.group in refused.error_message
    refused = member.client.call(ConsumerGroupHeartbeatRequest("", member.id, 7), 1)
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.INVALID_REQUEST,
        "GroupId must not be empty",
    )


def test_a_group_is_described_with_names_and_targets(new: NewConsumer) -> None:
    first, second = new(), new()
    first.join()
    second.join()
    group = second.describe()
    assert (group.error_code, group.group_state, group.assignor_name) == (0, "Reconciling", "uniform")
    assert (group.group_epoch, group.assignment_epoch) == (2, 2)
    by_id = {each.member_id: each for each in group.members}
    has = by_id[first.id].assignment.topic_partitions
    shall = by_id[first.id].target_assignment.topic_partitions
    assert [(each.topic_name, list(each.partitions)) for each in has] == [(first.topic, [0, 1])]
    assert [(each.topic_name, len(each.partitions)) for each in shall] == [(first.topic, 1)]
    assert by_id[second.id].member_type == 1


def test_what_a_member_has_still_to_give_up_is_told_as_its_own(new: NewConsumer) -> None:
    first, second = new(), new()
    first.join()
    second.join()
    kept = first.beat().assignment.topic_partitions
    assert [len(each.partitions) for each in kept] == [1]
    by_id = {each.member_id: each for each in first.describe().members}
    (has,) = by_id[first.id].assignment.topic_partitions
    assert list(has.partitions) == [0, 1]


def test_an_administrator_removes_members_by_leaving_for_them(new: NewConsumer) -> None:
    member, other = new(), new()
    member.join()
    leaving = [MemberIdentity(member.id), MemberIdentity("stranger")]
    told = other.client.call(LeaveGroupRequest(member.group, members=leaving), 5).members
    assert [each.error_code for each in told] == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert (other.describe().group_state, other.describe().members) == ("Empty", ())


def test_commits_and_fetches_need_the_epoch(new: NewConsumer) -> None:
    member = new()
    member.join()
    assert member.commit(5, 1) is ErrorCode.NONE
    assert member.commit(4, 0) is ErrorCode.STALE_MEMBER_EPOCH
    assert member.commit(4, 1, version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert member.fetch(1).topics[0].partitions[0].committed_offset == 5
    assert member.fetch(0).error_code == ErrorCode.STALE_MEMBER_EPOCH


def test_other_requests_know_the_kind_of_the_group(new: NewConsumer) -> None:
    member = new()
    member.join()
    client, group = member.client, member.group
    listed = client.call(ListGroupsRequest(types_filter=["consumer"]), 5).groups
    assert (group, "Stable", "consumer") in [(it.group_id, it.group_state, it.group_type) for it in listed]
    listed = client.call(ListGroupsRequest(types_filter=["classic"]), 5).groups
    assert group not in [each.group_id for each in listed]
    (described,) = client.call(DescribeGroupsRequest([group]), 6).groups
    assert (described.error_code, described.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert client.call(DeleteGroupsRequest([group]), 2).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
    member.leave()
    assert client.call(DeleteGroupsRequest([group]), 2).results[0].error_code == ErrorCode.NONE
    assert member.describe().error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_has_members_of_both_protocols_and_becomes_what_is_left(new: NewConsumer) -> None:
    member, other = new(), new()
    member.join()
    metadata = encode_subscription(Subscription([member.topic]))
    protocols = [JoinGroupRequestProtocol("range", metadata)]
    join = JoinGroupRequest(member.group, 30_000, 30_000, "", None, "consumer", protocols)
    joined = other.client.call(join, 3)
    assert (joined.error_code, joined.generation_id, joined.leader) == (ErrorCode.NONE, 2, "")
    sync = SyncGroupRequest(member.group, 2, joined.member_id)
    synced = other.client.call(sync, 3)
    assert decode_assignment(synced.assignment).assigned_partitions == (), "the other has not given any up"
    types = {each.member_id: each.member_type for each in member.describe().members}
    assert types == {member.id: 1, joined.member_id: 0}
    member.leave()
    (described,) = other.client.call(DescribeGroupsRequest([member.group]), 6).groups
    assert (described.group_state, described.protocol_type) == ("PreparingRebalance", "consumer")
    beat = HeartbeatRequest(member.group, 2, joined.member_id)
    assert other.client.call(beat, 4).error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_group_whose_members_are_not_understood_keeps_its_protocol(new: NewConsumer) -> None:
    member = new()
    member.join()
    protocols = [JoinGroupRequestProtocol("range", b"")]
    join = JoinGroupRequest(member.group, 30_000, 30_000, "", None, "consumer", protocols)
    assert member.client.call(join, 3).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    other = ClassicMember(member.client, unique_name("group"))
    other.settle()
    late = Consumer(member.client, other.group, member.topic)
    assert late.join().error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert late.describe().error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_the_protocol_can_be_switched_off(tmp_path: Path) -> None:
    settings = {"group.coordinator.rebalance.protocols": "classic"}
    with running_broker(tmp_path, settings) as broker, WireClient(broker.bootstrap) as client:
        member = Consumer(client, "g", "t")
        assert member.join().error_code == ErrorCode.UNSUPPORTED_VERSION
        assert member.describe().error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_restart_changes_nothing_for_members(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker, WireClient(broker.bootstrap) as client:
        find_coordinator(client, "g")
        member = Consumer(client, "g", create_topic(client))
        member.join()
        before = member.describe()
    with running_broker(tmp_path) as broker, WireClient(broker.bootstrap) as client:
        again = Consumer(client, "g", member.topic)
        while (after := again.describe()).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            time.sleep(0.01)
        assert after == before
