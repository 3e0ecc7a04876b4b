"""Any sequence of operations, restarts and crashes leaves exactly what a plain list would hold."""

from __future__ import annotations

import pytest

from log.model import run_with_restarts


@pytest.mark.parametrize("seed", range(40))
def test_log_equals_a_list_through_restarts_and_crashes(seed: int) -> None:
    run_with_restarts(seed, steps=250)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1_000, 1_400))
def test_log_equals_a_list_through_restarts_and_crashes_at_length(seed: int) -> None:
    run_with_restarts(seed, steps=1_000)
