"""What the broker's assignors promise: each partition to one subscriber, fair shares, few moves."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from coordinator.bench import topic_id
from coordinator.consumer_bench import named
from ottla.coordinator.assignors import Answer, Question, assign_range, assign_uniform
from ottla.coordinator.consumer_members import Slots


def ask(members: Mapping[str, str], before: Mapping[str, Slots] | None = None, **topics: int) -> Question:
    """Members with the letters of the topics that they read."""
    return Question(
        {member: frozenset(topic_id(name) for name in names) for member, names in members.items()},
        {topic_id(name): count for name, count in topics.items()},
        before or {},
    )


def told(answer: Answer) -> dict[str, list[str]]:
    return {member: named(slots) for member, slots in answer.items()}


def test_range_gives_neighbours_and_the_same_of_every_topic() -> None:
    assert told(assign_range(ask({"1": "ab", "2": "ab"}, a=3, b=3))) == {
        "1": ["a-0", "a-1", "b-0", "b-1"],
        "2": ["a-2", "b-2"],
    }


def test_range_serves_each_topic_by_its_subscribers() -> None:
    assert told(assign_range(ask({"1": "a", "2": "ab"}, a=2, b=1))) == {"1": ["a-0"], "2": ["a-1", "b-0"]}


def test_uniform_moves_no_more_than_it_must() -> None:
    first = assign_uniform(ask({"1": "a", "2": "a"}, a=6))
    second = assign_uniform(ask({"1": "a", "2": "a", "3": "a"}, first, a=6))
    assert all(second[member] <= first[member] for member in first)
    third = assign_uniform(ask({"1": "a", "3": "a"}, second, a=6))
    assert all(second[member] <= third[member] for member in third)


def test_uniform_leaves_no_one_with_two_more_than_another_when_subscriptions_differ() -> None:
    first = assign_uniform(ask({"1": "ab", "2": "b"}, a=2, b=4))
    assert sorted(map(len, first.values())) == [3, 3]


MEMBERS = st.dictionaries(
    st.sampled_from("12345"), st.sets(st.sampled_from("abc")).map(lambda names: "".join(sorted(names)))
)
TOPICS = st.dictionaries(st.sampled_from("abc"), st.integers(1, 9))


@given(MEMBERS, MEMBERS, TOPICS, TOPICS)
def test_every_partition_has_one_owner_that_wants_it(
    members: dict[str, str], later: dict[str, str], topics: dict[str, int], grown: dict[str, int]
) -> None:
    for assign in (assign_uniform, assign_range):
        before = assign(ask(members, **topics))
        question = ask(later, before, **grown)
        answer = assign(question)
        assert answer.keys() == later.keys()
        given_out = [slot for slots in answer.values() for slot in slots]
        assert sorted(given_out) == question.slots()
        for member, slots in answer.items():
            assert {slot.topic_id for slot in slots} <= question.subscriptions[member]


@given(MEMBERS, TOPICS)
def test_uniform_could_not_be_fairer_by_one_move(members: dict[str, str], topics: dict[str, int]) -> None:
    question = ask(members, **topics)
    answer = assign_uniform(question)
    for member, slots in answer.items():
        for slot in slots:
            for other in question.subscribers()[slot.topic_id]:
                assert len(slots) - len(answer[other]) <= 1, (member, other)
