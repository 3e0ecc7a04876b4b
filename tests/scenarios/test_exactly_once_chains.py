"""Each input once in the output, whoever is killed and whenever: the chain, the broker, or both."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from scenarios.exactly_once_chain import run_chain

WORKERS = Path(__file__).parent / "chain_workers"


def worker(client: str) -> list[str]:
    return [sys.executable, str(WORKERS / f"{client}.py")]


@pytest.mark.parametrize(
    ("client", "rounds"), [("with_confluent", 6), ("with_kafka_python", 3), ("with_aiokafka", 3)]
)
@pytest.mark.timeout(300)
def test_each_input_is_in_the_output_exactly_once(client: str, rounds: int) -> None:
    run_chain(worker(client), seed=0, rounds=rounds)


@pytest.mark.slow
@pytest.mark.parametrize("client", ["with_confluent", "with_kafka_python", "with_aiokafka"])
@pytest.mark.parametrize("seed", range(100, 105))
@pytest.mark.timeout(1800)
def test_each_input_is_in_the_output_exactly_once_at_length(client: str, seed: int) -> None:
    run_chain(worker(client), seed, rounds=30)
