"""Members get partitions that have a replica in their rack, where that unbalances nothing (KIP-881)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pytest

from ottla.client.assignors import (
    Assigned,
    CooperativeSticky,
    Member,
    RackAwareAssignor,
    Range,
    RoundRobin,
    Sticky,
)
from ottla.client.cluster_view import Broker, ClusterView, Partition, Topic
from ottla.client.group_formats import (
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_subscription,
)
from ottla.client.membership import GroupRules, GroupTopics, Membership
from ottla.client.server_membership import ServerMembership
from ottla.model.topics import NO_TOPIC_ID, TopicPartition
from ottla.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember

Racks = dict[TopicPartition, frozenset[str]]
NEAR_ASSIGNORS: tuple[RackAwareAssignor, ...] = (Range(), Sticky(), CooperativeSticky())


def racks_of(**topics: Sequence[str]) -> Racks:
    """A word for each partition, a letter for each rack that has a replica of it."""
    return {
        TopicPartition(topic, index): frozenset(racks)
        for topic, words in topics.items()
        for index, racks in enumerate(words)
    }


def counts_of(racks: Racks) -> dict[str, int]:
    return {topic: sum(each.topic == topic for each in racks) for topic in {each.topic for each in racks}}


def members_in(*racks: str | None, topics: Sequence[str] = ("t",)) -> dict[str, Member]:
    return {f"C{index}": Member(frozenset(topics), rack=rack) for index, rack in enumerate(racks)}


def numbers(assigned: Assigned, topic: str = "t") -> list[list[int]]:
    return [
        sorted(each.partition for each in assigned[key] if each.topic == topic) for key in sorted(assigned)
    ]


def far_count(assigned: Assigned, members: Mapping[str, Member], racks: Racks) -> int:
    return sum(
        members[key].rack is not None and members[key].rack not in racks[target]
        for key, targets in assigned.items()
        for target in targets
    )


def sizes(assigned: Assigned, topics: Iterable[str] | None) -> list[list[int]]:
    """How much members have: of each topic (range has nothing else in view), or of all."""
    if topics is None:
        return [sorted(map(len, assigned.values()))]
    return [sorted(map(len, numbers(assigned, topic))) for topic in sorted(topics)]


@pytest.mark.parametrize("assignor", NEAR_ASSIGNORS)
def test_members_read_what_is_in_their_racks(assignor: RackAwareAssignor) -> None:
    racks = racks_of(t=["a", "b", "c", "a", "b", "c"])
    members = members_in("a", "b", "c")
    assert numbers(assignor.assign_near({"t": 6}, members, racks)) == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize("assignor", NEAR_ASSIGNORS)
def test_balance_comes_before_racks(assignor: RackAwareAssignor) -> None:
    racks = racks_of(t=["a", "a", "a", "a", "a", "b"])
    shares = numbers(assignor.assign_near({"t": 6}, members_in("a", "b"), racks))
    assert [len(each) for each in shares] == [3, 3]
    assert 5 in shares[1]


@pytest.mark.parametrize("assignor", NEAR_ASSIGNORS)
def test_replicas_in_every_rack_or_in_none_of_the_members_change_nothing(assignor: RackAwareAssignor) -> None:
    for words, where in ((["ab"] * 7, ("a", "b", "a")), (["a", "b"] * 3 + ["a"], ("x", "y", "z"))):
        members = members_in(*where)
        plain = assignor.assign({"t": 7}, members)
        assert assignor.assign_near({"t": 7}, members, racks_of(t=words)) == plain


@pytest.mark.parametrize("assignor", NEAR_ASSIGNORS)
def test_a_member_without_a_rack_takes_what_is_in_nobodys(assignor: RackAwareAssignor) -> None:
    racks = racks_of(t=["x", "b", "x", "b"])
    assert numbers(assignor.assign_near({"t": 4}, members_in("b", None), racks)) == [[1, 3], [0, 2]]


def test_range_keeps_topics_of_equal_size_together() -> None:
    racks = racks_of(t=["a", "b", "a", "b"], u=["a", "b", "a", "b"])
    members = members_in("b", "a", topics="tu")
    assigned = Range().assign_near({"t": 4, "u": 4}, members, racks)
    assert numbers(assigned, "t") == numbers(assigned, "u") == [[1, 3], [0, 2]]


def test_range_goes_by_number_where_topics_that_belong_together_are_in_different_racks() -> None:
    racks = racks_of(t=["a", "b", "a", "b"], u=["b", "a", "b", "a"])
    members = members_in("b", "a", topics="tu")
    assigned = Range().assign_near({"t": 4, "u": 4}, members, racks)
    assert numbers(assigned, "t") == numbers(assigned, "u") == [[0, 1], [2, 3]]


def test_range_gives_the_odd_partition_to_a_member_that_is_near() -> None:
    racks = racks_of(t=["b", "b", "b", "b", "a", "a", "a"])
    assert numbers(Range().assign_near({"t": 7}, members_in("a", "b"), racks)) == [[4, 5, 6], [0, 1, 2, 3]]


def test_sticky_keeps_what_is_near_and_exchanges_what_is_far() -> None:
    racks = racks_of(t=["a", "a", "b", "b"])
    there = [TopicPartition("t", index) for index in range(4)]
    members = members_in("a", "b")
    settled = {
        "C0": replace(members["C0"], owned=(there[0], there[1])),
        "C1": replace(members["C1"], owned=(there[2], there[3])),
    }
    assert numbers(Sticky().assign_near({"t": 4}, settled, racks)) == [[0, 1], [2, 3]]
    crossed = {
        "C0": replace(members["C0"], owned=(there[0], there[3])),
        "C1": replace(members["C1"], owned=(there[2], there[1])),
    }
    assert numbers(Sticky().assign_near({"t": 4}, crossed, racks)) == [[0, 1], [2, 3]]


def test_sticky_moves_nothing_that_a_move_would_not_bring_nearer() -> None:
    racks = racks_of(t=["a"] * 6)
    there = tuple(TopicPartition("t", index) for index in range(6))
    members = members_in("a", "b")
    owned = {
        "C0": replace(members["C0"], owned=there[::2]),
        "C1": replace(members["C1"], owned=there[1::2]),
    }
    assert numbers(Sticky().assign_near({"t": 6}, owned, racks)) == [[0, 2, 4], [1, 3, 5]]


def test_cooperative_sticky_has_a_partition_given_up_before_it_moves_to_its_rack() -> None:
    racks = racks_of(t=["a", "b"])
    first, second = TopicPartition("t", 0), TopicPartition("t", 1)
    members = members_in("a", "b")
    crossed = {
        "C0": replace(members["C0"], owned=(second,), generation=1),
        "C1": replace(members["C1"], owned=(first,), generation=1),
    }
    assert CooperativeSticky().assign_near({"t": 2}, crossed, racks) == {"C0": [], "C1": []}
    assert numbers(CooperativeSticky().assign_near({"t": 2}, members, racks)) == [[0], [1]]


@pytest.mark.parametrize("seed", range(40))
def test_racks_change_who_reads_what_but_not_how_much_anybody_reads(seed: int) -> None:
    chance = random.Random(seed)
    words = {
        f"t{topic}": ["".join(chance.sample("abc", chance.randrange(1, 4))) for _ in range(size)]
        for topic, size in enumerate(chance.choices(range(1, 10), k=3))
    }
    racks, counts = racks_of(**words), {topic: len(each) for topic, each in words.items()}
    members = {
        f"C{index}": Member(
            frozenset(chance.sample(sorted(words), chance.randrange(1, 4))), rack=chance.choice("abcd")
        )
        for index in range(chance.randrange(1, 8))
    }
    read = frozenset().union(*(member.topics for member in members.values()))
    wanted = sorted(target for target in racks if target.topic in read)
    for assignor in (Range(), Sticky()):
        plain = assignor.assign(counts, members)
        near = assignor.assign_near(counts, members, racks)
        assert sorted(target for targets in near.values() for target in targets) == wanted
        assert all(target.topic in members[key].topics for key in near for target in near[key])
        topics = counts if assignor.name == "range" else None
        assert sizes(near, topics) == sizes(plain, topics)
        assert far_count(near, members, racks) <= far_count(plain, members, racks)


def test_a_busy_member_reaches_an_idle_one_over_others() -> None:
    members = {
        "C0": Member(frozenset("t"), (TopicPartition("t", 0), TopicPartition("t", 1)), 1),
        "C1": Member(frozenset("tu"), (TopicPartition("u", 0),), 1),
        "C2": Member(frozenset("u")),
    }
    assert [len(each) for each in Sticky().assign({"t": 2, "u": 1}, members).values()] == [1, 1, 1]


# -- what members tell each other --------------------------------------------------------------------------


def rules(rack: str | None) -> GroupRules:
    return GroupRules("group", None, 10_000, 60_000, [Range()], rack)


def sent(rack: str | None, version: int = 3) -> bytes:
    return encode_subscription(Subscription(["t"], None, (), -1, rack), version)


def test_a_member_tells_its_rack_in_both_protocols() -> None:
    member = Membership(rules("here"))
    member.subscribe(["t"])
    assert decode_subscription(member.join_request().protocols[0].metadata).rack_id == "here"
    assert ServerMembership("group", "me", None, 60_000, None, "here").request().rack_id == "here"


def test_the_leader_heeds_the_racks_of_members_whatever_version_they_speak() -> None:
    leader = Membership(rules("b"))
    leader.subscribe(["t"])
    leader.join_request()
    others = {"me": sent("b"), "old": sent(None, 1), "stock": sent("a")}
    leader.joined(
        JoinGroupResponse(
            generation_id=1,
            protocol_type="consumer",
            protocol_name="range",
            leader="me",
            member_id="me",
            members=[JoinGroupResponseMember(name, None, metadata) for name, metadata in others.items()],
        )
    )
    racks = racks_of(t=["a", "c", "b"])
    request = leader.sync_request(GroupTopics({"t": 3}, racks))
    told = {each.member_id: decode_assignment(each.assignment) for each in request.assignments}
    assert {name: [each.partition for each in targets] for name, targets in told.items()} == {
        "me": [2],
        "old": [0],
        "stock": [1],
    }


def test_an_assignor_of_a_users_own_needs_to_know_nothing_of_racks() -> None:
    assert not isinstance(RoundRobin(), RackAwareAssignor)


def test_where_replicas_are_is_what_brokers_tell() -> None:
    topic = Topic("t", NO_TOPIC_ID, False, (Partition(0, 1, 0, (1, 2), (1,)), Partition(1, 3, 0, (3,), (3,))))
    brokers = {1: Broker(1, "h", 1, "a"), 2: Broker(2, "h", 2, "b"), 3: Broker(3, "h", 3)}
    view = ClusterView(brokers=brokers, topics={"t": topic})
    assert view.replica_racks([topic]) == {
        TopicPartition("t", 0): frozenset("ab"),
        TopicPartition("t", 1): frozenset(),
    }
    nowhere = ClusterView(brokers={3: brokers[3]}, topics={"t": topic})
    assert nowhere.replica_racks([topic]) == {}
