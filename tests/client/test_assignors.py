"""How a group shares partitions: worked examples, and what holds for random groups."""

from __future__ import annotations

import random

import pytest

from ottla.client.assignors import Assigned, CooperativeSticky, Member, Range, RoundRobin, Sticky, named
from ottla.client.errors import ClientError
from ottla.model.topics import TopicPartition


def members_of(count: int, *topics: str) -> dict[str, Member]:
    return {f"C{index}": Member(frozenset(topics)) for index in range(count)}


def numbers(assigned: Assigned, topic: str = "t") -> dict[str, list[int]]:
    return {
        member_id: [target.partition for target in targets if target.topic == topic]
        for member_id, targets in assigned.items()
    }


def short(assigned: Assigned) -> dict[str, set[str]]:
    return {key: {f"{each.topic}p{each.partition}" for each in targets} for key, targets in assigned.items()}


def test_range_gives_neighbours_and_the_first_ones_more() -> None:
    split = Range().assign
    assert numbers(split({"t": 11}, members_of(3, "t"))) == {
        "C0": [0, 1, 2, 3],
        "C1": [4, 5, 6, 7],
        "C2": [8, 9, 10],
    }
    assert numbers(split({"t": 10}, members_of(3, "t"))) == {
        "C0": [0, 1, 2, 3],
        "C1": [4, 5, 6],
        "C2": [7, 8, 9],
    }
    two = split({"t": 10, "u": 10}, members_of(3, "t", "u"))
    assert len(numbers(two)["C0"]) == len(numbers(two, "u")["C0"]) == 4


def test_round_robin_deals_evenly() -> None:
    assigned = RoundRobin().assign({"t": 10}, members_of(4, "t"))
    assert [len(targets) for targets in assigned.values()] == [3, 3, 2, 2]


def test_round_robin_skips_members_that_do_not_read_a_topic() -> None:
    members = {"C0": Member(frozenset({"a"})), "C1": Member(frozenset({"a", "b"}))}
    assert short(RoundRobin().assign({"a": 2, "b": 2}, members)) == {
        "C0": {"ap0"},
        "C1": {"ap1", "bp0", "bp1"},
    }


def test_three_partitions_with_three_two_and_four_members() -> None:
    for assignor in (Range(), RoundRobin(), Sticky()):
        counts = [
            sorted(len(each) for each in assignor.assign({"t": 3}, members_of(count, "t")).values())
            for count in (3, 2, 4)
        ]
        assert counts == [[1, 1, 1], [1, 2], [0, 1, 1, 1]]


def with_history(assigned: Assigned, members: dict[str, Member], generation: int = 1) -> dict[str, Member]:
    return {
        key: Member(each.topics, user_data=Sticky().user_data(assigned.get(key, []), generation))
        for key, each in members.items()
    }


def test_sticky_keeps_what_members_had_when_one_dies() -> None:
    counts = {"t0": 2, "t1": 2, "t2": 2, "t3": 2}
    members = members_of(3, *counts)
    first = Sticky().assign(counts, members)
    assert short(first) == {
        "C0": {"t0p0", "t1p1", "t3p0"},
        "C1": {"t0p1", "t2p0", "t3p1"},
        "C2": {"t1p0", "t2p1"},
    }
    del members["C1"]
    assert short(Sticky().assign(counts, with_history(first, members))) == {
        "C0": {"t0p0", "t1p1", "t3p0", "t2p0"},
        "C2": {"t1p0", "t2p1", "t0p1", "t3p1"},
    }


def test_sticky_moves_only_what_a_newcomer_needs() -> None:
    members = members_of(2, "t")
    first = Sticky().assign({"t": 9}, members)
    second = Sticky().assign({"t": 9}, with_history(first, members_of(3, "t")))
    assert sorted(len(targets) for targets in second.values()) == [3, 3, 3]
    for key in members:
        assert set(second[key]) <= set(first[key])


def test_of_two_who_claim_a_partition_the_later_generation_keeps_it() -> None:
    target = TopicPartition("t", 0)
    members = {
        "C0": Member(frozenset({"t"}), (target,), 3),
        "C1": Member(frozenset({"t"}), (target,), 4),
    }
    assert CooperativeSticky().assign({"t": 1}, members) == {"C0": [], "C1": [target]}


def test_cooperative_sticky_gives_a_moving_partition_out_only_when_it_was_given_up() -> None:
    everything = tuple(TopicPartition("t", index) for index in range(4))
    members = {"C0": Member(frozenset({"t"}), everything, 1), "C1": Member(frozenset({"t"}))}
    first = CooperativeSticky().assign({"t": 4}, members)
    assert len(first["C0"]) == 2
    assert first["C1"] == []
    members = {"C0": Member(frozenset({"t"}), tuple(first["C0"]), 2), "C1": Member(frozenset({"t"}), (), 2)}
    second = CooperativeSticky().assign({"t": 4}, members)
    assert second["C0"] == first["C0"]
    assert len(second["C1"]) == 2


@pytest.mark.parametrize("seed", range(20))
def test_every_partition_goes_to_exactly_one_member_that_reads_it(seed: int) -> None:
    chance = random.Random(seed)
    counts = {f"t{index}": chance.randrange(0, 8) for index in range(5)}
    members = {
        f"C{index}": Member(frozenset(chance.sample(sorted(counts), chance.randrange(1, 6))))
        for index in range(chance.randrange(1, 8))
    }
    read = {topic for member in members.values() for topic in member.topics}
    wanted = {TopicPartition(topic, index) for topic in read for index in range(counts[topic])}
    for assignor in (Range(), RoundRobin(), Sticky()):
        assigned = assignor.assign(counts, members)
        given = [target for targets in assigned.values() for target in targets]
        assert sorted(given) == sorted(wanted)
        assert all(
            target.topic in members[key].topics for key, targets in assigned.items() for target in targets
        )


def test_an_unknown_assignor_is_refused() -> None:
    with pytest.raises(ClientError, match="known are range"):
        named(["rnage"])
