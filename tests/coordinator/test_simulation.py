"""Thousands of joins, deaths, delays and late messages: what must hold of groups holds throughout."""

from __future__ import annotations

import pytest

from coordinator.simulation import World


def play(seed: int) -> World:
    world = World(seed)
    for _ in range(4):
        world.chaos(60_000)
        world.calm()
    return world


@pytest.mark.parametrize("seed", range(25))
def test_a_group_survives_chaos(seed: int) -> None:
    world = play(seed)
    assert world.generations > 10, "nothing happened"
    assert world.accepted_commits > 20, "nothing was committed"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 1_100, 100))
def test_groups_survive_much_chaos(first: int) -> None:
    for seed in range(first, first + 100):
        play(seed)
