"""Leaders and replicas are spread evenly over brokers and racks, as Kafka's algorithm spreads them."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from ottla.controller.placement import alternate_racks, place
from ottla.model.errors import ErrorCode, Refused


class FirstChoice(Random):
    """Starts at the first broker with no shift, so that results can be written down."""

    def randrange(self, *args: object) -> int:  # type: ignore[override]
        return 0


def without_racks(*brokers: int) -> dict[int, str | None]:
    return dict.fromkeys(brokers)


def test_the_example_of_kafkas_own_documentation() -> None:
    placed = place(without_racks(0, 1, 2, 3, 4), 10, 3, FirstChoice())
    assert placed == [
        (0, 1, 2),
        (1, 2, 3),
        (2, 3, 4),
        (3, 4, 0),
        (4, 0, 1),
        (0, 2, 3),
        (1, 3, 4),
        (2, 4, 0),
        (3, 0, 1),
        (4, 1, 2),
    ]


def test_the_example_with_racks() -> None:
    racks = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
    assert alternate_racks(racks) == [0, 3, 1, 5, 4, 2]
    placed = place(racks, 7, 3, FirstChoice())
    assert placed == [(0, 3, 1), (3, 1, 5), (1, 5, 4), (5, 4, 2), (4, 2, 0), (2, 0, 3), (0, 4, 2)]


def test_racks_of_unequal_size_take_turns() -> None:
    assert alternate_racks({0: "a", 1: "a", 2: "a", 3: "b", 4: "c", 5: "c"}) == [0, 3, 4, 1, 5, 2]


@pytest.mark.parametrize("seed", range(20))
def test_leaders_and_replicas_are_even_and_distinct(seed: int) -> None:
    rng = Random(seed)
    brokers = sorted(rng.sample(range(100), rng.randrange(1, 9)))
    factor = rng.randrange(1, len(brokers) + 1)
    partitions = len(brokers) * rng.randrange(1, 6)
    placed = place(without_racks(*brokers), partitions, factor, rng)
    assert all(len(set(replicas)) == factor for replicas in placed)
    assert set(Counter(replicas[0] for replicas in placed).values()) == {partitions // len(brokers)}
    per_broker = Counter(broker for replicas in placed for broker in replicas)
    assert max(per_broker.values()) - min(per_broker.values()) <= factor


@pytest.mark.parametrize("seed", range(20))
def test_each_rack_gets_its_share_of_every_partition(seed: int) -> None:
    rng = Random(seed)
    rack_count, per_rack = rng.randrange(1, 5), rng.randrange(1, 4)
    racks: dict[int, str | None] = {
        broker: f"rack-{broker % rack_count}" for broker in range(rack_count * per_rack)
    }
    factor = rng.randrange(1, len(racks) + 1)
    placed = place(racks, 24, factor, rng)
    for replicas in placed:
        assert len(set(replicas)) == factor
        assert len({racks[broker] for broker in replicas}) == min(factor, rack_count)


def test_one_broker_without_a_rack_makes_racks_irrelevant() -> None:
    racks = {0: "a", 1: "a", 2: None}
    assert place(racks, 3, 2, FirstChoice()) == place(without_racks(0, 1, 2), 3, 2, FirstChoice())


def test_a_growing_topic_goes_on_where_it_stopped() -> None:
    brokers = without_racks(1, 2, 3, 4)
    whole = place(brokers, 12, 2, FirstChoice())
    start = whole[0][0]
    grown = whole[:5] + place(brokers, 7, 2, Random(3), first_partition=5, start_broker=start)
    assert [replicas[0] for replicas in grown] == [replicas[0] for replicas in whole]


def test_a_growing_topic_whose_first_leader_left_starts_at_the_next_broker() -> None:
    placed = place(without_racks(1, 3), 2, 1, Random(0), first_partition=2, start_broker=2)
    assert placed == [(3,), (1,)]
    assert place(without_racks(1, 3), 1, 1, Random(0), first_partition=2, start_broker=9) == [(1,)]


def test_more_replicas_than_brokers_are_refused() -> None:
    with pytest.raises(Refused, match="larger than the number of brokers, 2") as refused:
        place(without_racks(1, 2), 1, 3, Random(0))
    assert refused.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
