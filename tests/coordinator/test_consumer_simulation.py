"""Whatever happens to a consumer group: each partition has one owner, and in the end everybody its share."""

from __future__ import annotations

import pytest

from coordinator.consumer_simulation import World
from coordinator.simulated_members import ClassicMember, NewMember, SimulatedMember
from coordinator.test_consumer_group import same_after_replay


def live(seed: int, rounds: int, *kinds: type[SimulatedMember]) -> World:
    world = World(seed, kinds)
    for _ in range(rounds):
        world.chaos(120_000)
        world.calm()
        assert same_after_replay(world.bench)
    return world


def test_partitions_have_one_owner_through_deaths_delays_and_crashes() -> None:
    worlds = [live(seed, 2, NewMember) for seed in range(10)]
    assert sum(world.rounds for world in worlds) > 2_000
    assert sum(world.fenced for world in worlds) > 20, "the chaos was too kind"


def test_and_when_members_speak_different_protocols() -> None:
    worlds = [live(seed, 3, NewMember, ClassicMember, ClassicMember) for seed in range(12)]
    assert sum(world.rounds for world in worlds) > 10_000
    assert sum(world.changes_of_protocol for world in worlds) > 40
    assert sum(world.commits for world in worlds) > 1_000


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 200))
def test_and_through_many_more(seed: int) -> None:
    live(seed, 3, NewMember)
    live(seed, 6, NewMember, ClassicMember)
