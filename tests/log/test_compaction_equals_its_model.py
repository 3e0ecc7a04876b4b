"""Any sequence of appends, rolls, cleaning passes, truncations, restarts leaves what a plain model keeps."""

from __future__ import annotations

import pytest

from log.compacted_model import run_with_restarts


@pytest.mark.parametrize("seed", range(30))
def test_a_compacted_log_equals_its_model(seed: int) -> None:
    run_with_restarts(seed, steps=150)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1_000, 1_400))
def test_a_compacted_log_equals_its_model_at_length(seed: int) -> None:
    run_with_restarts(seed, steps=600)
