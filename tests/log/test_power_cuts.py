"""A power cut at any moment loses nothing that was synced, invents nothing and leaves no gap."""

from __future__ import annotations

import pytest

from log.model import run_with_power_cuts


@pytest.mark.parametrize("seed", range(60))
def test_nothing_synced_is_lost_and_nothing_is_invented(seed: int) -> None:
    run_with_power_cuts(seed, cuts=12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1_000, 2_000))
def test_nothing_synced_is_lost_and_nothing_is_invented_at_length(seed: int) -> None:
    run_with_power_cuts(seed, cuts=40)
