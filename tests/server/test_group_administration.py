"""DescribeGroups, ListGroups and DeleteGroups over the wire, in every version."""

from __future__ import annotations

import pytest

from calls import commit_request, create_topic, unique_name
from group_calls import Member, find_coordinator
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.testing import BrokerProcess
from wire import WireClient


@pytest.fixture(scope="session")
def stable(broker: BrokerProcess) -> str:
    """A group with one member, whose connection is of no importance."""
    name = unique_name("stable")
    with WireClient(broker.bootstrap) as client:
        find_coordinator(client, name)
        Member(client, name, "static").settle()
    return name


@pytest.fixture
def simple(client: WireClient) -> str:
    """A group that was made by a commit."""
    name = unique_name("simple")
    find_coordinator(client, name)
    client.call(commit_request(name, create_topic(client), 1), 9)
    return name


@pytest.mark.parametrize("version", range(7))
def test_a_stable_group_is_described(client: WireClient, stable: str, version: int) -> None:
    (found,) = client.call(DescribeGroupsRequest([stable]), version).groups
    assert (found.error_code, found.group_state) == (ErrorCode.NONE, "Stable")
    assert (found.protocol_type, found.protocol_data) == ("consumer", "range")
    (member,) = found.members
    assert (member.client_id, member.client_host) == ("wire", "/127.0.0.1")
    assert (bytes(member.member_metadata), bytes(member.member_assignment)) == (b"metadata", b"all")
    assert member.group_instance_id == ("static" if version >= 4 else None)


@pytest.mark.parametrize("version", range(7))
def test_groups_without_members(client: WireClient, simple: str, version: int) -> None:
    found, missing = client.call(DescribeGroupsRequest([simple, "missing"]), version).groups
    assert (found.error_code, found.group_state, found.members) == (ErrorCode.NONE, "Empty", ())
    assert missing.group_state == "Dead"
    assert missing.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE)


def test_operations_that_are_allowed_are_told_when_asked_for(client: WireClient, stable: str) -> None:
    (found,) = client.call(DescribeGroupsRequest([stable], include_authorized_operations=True), 5).groups
    assert found.authorized_operations > 0
    (found,) = client.call(DescribeGroupsRequest([stable]), 5).groups
    assert found.authorized_operations == -(2**31)


@pytest.mark.parametrize("version", range(6))
def test_groups_are_listed(client: WireClient, stable: str, simple: str, version: int) -> None:
    listed = {each.group_id: each for each in client.call(ListGroupsRequest(), version).groups}
    assert (listed[stable].protocol_type, listed[simple].protocol_type) == ("consumer", "")
    if version >= 4:
        assert (listed[stable].group_state, listed[simple].group_state) == ("Stable", "Empty")
    if version >= 5:
        assert listed[stable].group_type == "classic"


@pytest.mark.parametrize(
    ("states", "types", "expected"),
    [
        (["stable"], [], "stable"),
        (["Empty"], ["Classic"], "simple"),
        ([], ["consumer"], None),
        (["PreparingRebalance"], [], None),
    ],
)
def test_groups_by_state_and_type(
    client: WireClient, stable: str, simple: str, states: list[str], types: list[str], expected: str | None
) -> None:
    listed = {each.group_id for each in client.call(ListGroupsRequest(states, types), 5).groups}
    assert listed & {stable, simple} == (
        {{"stable": stable, "simple": simple}[expected]} if expected else set()
    )


@pytest.mark.parametrize("version", range(3))
def test_groups_without_members_are_deleted(
    client: WireClient, stable: str, simple: str, version: int
) -> None:
    response = client.call(DeleteGroupsRequest([simple, stable, "missing"]), version)
    assert [(each.group_id, each.error_code) for each in response.results] == [
        (simple, ErrorCode.NONE),
        (stable, ErrorCode.NON_EMPTY_GROUP),
        ("missing", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    (found,) = client.call(DescribeGroupsRequest([simple]), 5).groups
    assert found.group_state == "Dead"


def test_no_groups_at_all(client: WireClient) -> None:
    assert client.call(DeleteGroupsRequest(), 2).results == ()
    assert client.call(DescribeGroupsRequest(), 5).groups == ()
