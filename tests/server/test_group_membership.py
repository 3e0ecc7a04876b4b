"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup over the wire, in every version."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from calls import unique_name
from group_calls import Member, find_coordinator
from in_process import InProcessBroker, running_broker
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.join_group import JoinGroupRequest
from wire import WireClient

NewMember = Callable[..., Member]


@pytest.fixture(scope="module")
def prompt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessBroker]:
    """A broker whose groups do not wait for more members."""
    settings = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "3"}
    with running_broker(tmp_path_factory.mktemp("prompt"), settings) as running:
        yield running


@pytest.fixture
def member(prompt: InProcessBroker) -> Iterator[NewMember]:
    """Members of one group, each with a connection of its own."""
    group = unique_name("group")
    with ExitStack() as clients:

        def new(instance_id: str | None = None) -> Member:
            client = clients.enter_context(WireClient(prompt.bootstrap))
            find_coordinator(client, group)
            return Member(client, group, instance_id)

        yield new


@pytest.mark.parametrize("version", range(10))
def test_a_group_of_one(member: NewMember, version: int) -> None:
    one = member()
    response = one.join(version)
    assert (response.generation_id, response.protocol_name) == (1, "range")
    assert response.leader == response.member_id == one.id
    assert [(each.member_id, bytes(each.metadata)) for each in response.members] == [(one.id, b"metadata")]
    assert response.protocol_type == ("consumer" if version >= 7 else None)
    assert one.id.startswith("wire-")


@pytest.mark.parametrize("version", range(4, 10))
def test_a_new_member_is_first_given_its_id(member: NewMember, version: int) -> None:
    one = member()
    one.send_join(version)
    assert one.receive_join().error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert one.id


@pytest.mark.parametrize("version", range(6))
def test_the_leader_assigns(member: NewMember, version: int) -> None:
    one = member()
    one.join()
    response = one.sync({one.id: b"all of it"}, version)
    assert (response.error_code, bytes(response.assignment)) == (ErrorCode.NONE, b"all of it")
    assert response.protocol_name == ("range" if version >= 5 else None)
    again = one.sync({}, version)
    assert bytes(again.assignment) == b"all of it"


@pytest.mark.parametrize("version", range(5))
def test_heartbeats(member: NewMember, version: int) -> None:
    one = member()
    one.settle()
    assert one.heartbeat(version) == ErrorCode.NONE
    one.generation += 1
    assert one.heartbeat(version) == ErrorCode.ILLEGAL_GENERATION
    one.id = "stranger"
    assert one.heartbeat(version) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(6))
def test_leaving(member: NewMember, version: int) -> None:
    one = member()
    one.settle()
    response = one.leave(version)
    assert response.error_code == ErrorCode.NONE
    assert one.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    again = one.leave(version)
    if version >= 3:
        assert again.error_code == ErrorCode.NONE
        assert [each.error_code for each in response.members] == [ErrorCode.NONE]
        assert [each.error_code for each in again.members] == [ErrorCode.UNKNOWN_MEMBER_ID]
    else:
        assert again.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_second_member_makes_the_first_join_again(member: NewMember) -> None:
    one, two = member(), member()
    one.settle()
    two.send_join(3)
    assert two.client.is_silent(0.2), "it waits for the first one"
    assert one.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    (described,) = one.client.call(DescribeGroupsRequest([one.group]), 5).groups
    has = {each.member_id: bytes(each.member_assignment) for each in described.members}
    assert (described.group_state, has.pop(one.id)) == ("PreparingRebalance", b"all"), "it has it still"
    assert set(has.values()) == {b""}
    joined = one.join()
    assert two.receive_join().error_code == ErrorCode.NONE
    assert (one.generation, two.generation) == (2, 2)
    assert {each.member_id for each in joined.members} == {one.id, two.id}
    two.client.send(two.sync_request(), 5)
    assert two.client.is_silent(0.2), "it waits for the leader"
    assert bytes(one.sync({one.id: b"a", two.id: b"b"}).assignment) == b"a"
    assert bytes(two.client.receive().assignment) == b"b"


def test_a_static_member_is_replaced_without_a_rebalance(member: NewMember) -> None:
    one = member("one")
    one.settle()
    again = member("one")
    response = again.join()
    assert (response.generation_id, response.skip_assignment) == (one.generation, True)
    assert again.id != one.id
    assert one.heartbeat() == ErrorCode.FENCED_INSTANCE_ID
    assert bytes(again.sync().assignment) == b"all"


def test_what_the_protocol_forbids_is_refused(member: NewMember) -> None:
    one = member()
    request = JoinGroupRequest(one.group, session_timeout_ms=5_999, protocol_type="consumer")
    assert one.client.call(request, 9).error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    request = JoinGroupRequest(one.group, session_timeout_ms=6_000, protocol_type="consumer")
    assert one.client.call(request, 9).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    request = JoinGroupRequest("", session_timeout_ms=6_000, protocol_type="consumer")
    assert one.client.call(request, 9).error_code == ErrorCode.INVALID_GROUP_ID
    request = JoinGroupRequest(one.group, 6_000, member_id="made-up", protocol_type="consumer")
    assert one.client.call(request, 9).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    one.settle()
    unnamed = one.sync_request()
    unnamed.protocol_name = None  # type: ignore[misc]
    assert one.client.call(unnamed, 5).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", range(10))
def test_a_refused_join_names_no_protocol(member: NewMember, version: int) -> None:
    one = member()
    request = JoinGroupRequest(one.group, session_timeout_ms=1, member_id="me", protocol_type="consumer")
    refused = one.client.call(request, version)
    assert (refused.error_code, refused.member_id) == (ErrorCode.INVALID_SESSION_TIMEOUT, "me")
    assert refused.protocol_name == (None if version >= 7 else "")


def test_a_member_that_is_gone_while_it_waits_harms_nobody(member: NewMember) -> None:
    one, two, three = member(), member(), member()
    one.settle()
    two.send_join(3)
    two.client.close()
    three.send_join(3)
    one.send_join()
    assert one.receive_join().error_code == ErrorCode.NONE
    assert three.receive_join().error_code == ErrorCode.NONE


def test_who_waits_when_the_broker_stops_is_sent_away(tmp_path: Path) -> None:
    with (
        running_broker(tmp_path, {"group.initial.rebalance.delay.ms": "0"}) as running,
        WireClient(running.bootstrap) as first,
        WireClient(running.bootstrap) as second,
    ):
        find_coordinator(first, "g")
        one, two = Member(first, "g"), Member(second, "g")
        one.settle()
        two.send_join(3)
        assert second.is_silent(0.2)
        running.broker.ask_to_stop()
        assert two.receive_join().error_code == ErrorCode.NOT_COORDINATOR
