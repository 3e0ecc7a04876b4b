"""Whatever the network does and whoever crashes, transactions are whole, read once, and come to an end."""

from __future__ import annotations

import pytest

from coordinator.transaction_simulation import run_transactions


@pytest.mark.parametrize("seed", range(60))
def test_no_transaction_is_torn_doubled_read_when_aborted_or_left_hanging(seed: int) -> None:
    run_transactions(seed, duration_ms=20_000)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1_000, 1_500))
def test_no_transaction_is_torn_doubled_read_when_aborted_or_left_hanging_at_length(seed: int) -> None:
    run_transactions(seed, duration_ms=120_000)
