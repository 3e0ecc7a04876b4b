"""Each input once in the output, whoever is killed and whenever: the chain, the broker, or both."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from scenarios.exactly_once_chain import run_chain
from scenarios.exactly_once_pair import run_pair

WORKERS = Path(__file__).parent / "chain_workers"


def worker(client: str) -> list[str]:
    return [sys.executable, str(WORKERS / f"{client}.py")]


@pytest.mark.parametrize(
    ("client", "rounds"), [("with_confluent", 6), ("with_kafka_python", 3), ("with_aiokafka", 3)]
)
@pytest.mark.timeout(300)
def test_each_input_is_in_the_output_exactly_once(client: str, rounds: int) -> None:
    run_chain(worker(client), seed=0, rounds=rounds)


CLASSIC, CONSUMER, MIXED = ("classic", "classic"), ("consumer", "consumer"), ("classic", "consumer")
PAIRS = [
    ("confluent", MIXED),
    ("confluent", CLASSIC),
    ("confluent", CONSUMER),
    ("kafka_python", CLASSIC),
    ("aiokafka", CLASSIC),
]


def named(value: object) -> str:
    return "-".join(value) if isinstance(value, tuple) else str(value)


@pytest.mark.parametrize(
    ("client", "protocols"),
    [PAIRS[0], *(pytest.param(*each, marks=pytest.mark.slow) for each in PAIRS[1:])],
    ids=named,
)
@pytest.mark.timeout(300)
def test_two_live_workers_give_partitions_to_each_other_and_nothing_is_lost_or_doubled(
    client: str, protocols: tuple[str, str], tmp_path: Path
) -> None:
    """With one of each protocol the group changes its own with every death."""
    run_pair(worker(f"pair_with_{client}"), protocols, seed=0, rounds=4, home=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("client", "protocols"), PAIRS, ids=named)
@pytest.mark.parametrize("seed", range(100, 103))
@pytest.mark.timeout(1800)
def test_and_through_many_deaths(client: str, protocols: tuple[str, str], seed: int, tmp_path: Path) -> None:
    run_pair(worker(f"pair_with_{client}"), protocols, seed, rounds=30, home=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("client", ["with_confluent", "with_kafka_python", "with_aiokafka"])
@pytest.mark.parametrize("seed", range(100, 105))
@pytest.mark.timeout(1800)
def test_each_input_is_in_the_output_exactly_once_at_length(client: str, seed: int) -> None:
    run_chain(worker(client), seed, rounds=30)
