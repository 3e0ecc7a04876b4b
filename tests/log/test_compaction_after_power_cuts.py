"""A power cut at any moment of a cleaning pass, or of the start after one, loses no key's last record."""

from __future__ import annotations

import pytest

from log.compacted_model import run_with_power_cuts


@pytest.mark.parametrize("seed", range(40))
def test_nothing_that_must_stay_is_lost_and_nothing_is_invented(seed: int) -> None:
    run_with_power_cuts(seed, cuts=8)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1_000, 2_000))
def test_nothing_that_must_stay_is_lost_and_nothing_is_invented_at_length(seed: int) -> None:
    run_with_power_cuts(seed, cuts=30)
