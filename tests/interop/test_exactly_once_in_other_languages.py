"""Transactions of the Java client and franz-go: nothing twice and nothing lost, and zombies are fenced.

Both speak transaction.version 2: they leave the adding of partitions to the broker and get an epoch for each
transaction.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from compat.broker import CreateTopic
from compat.isolation import read
from interop.builds import go_driver, java_command
from scenarios.exactly_once_chain import run_chain
from scenarios.exactly_once_pair import run_pair

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def workers() -> dict[str, list[str]]:
    return {"java": [*java_command(), "ChainWorker"], "franz-go": [str(go_driver()), "chain"]}


@pytest.mark.interop
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("client", ["java", "franz-go"])
def test_each_input_is_in_the_output_exactly_once(
    workers: dict[str, list[str]], client: str, seed: int
) -> None:
    run_chain(workers[client], seed, rounds=8)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 103))
@pytest.mark.parametrize("client", ["java", "franz-go"])
def test_each_input_is_in_the_output_exactly_once_at_length(
    workers: dict[str, list[str]], client: str, seed: int
) -> None:
    run_chain(workers[client], seed, rounds=30)


@pytest.mark.interop
@pytest.mark.parametrize(
    ("client", "protocols"),
    [("java", ("classic", "consumer")), ("franz-go", ("classic", "classic"))],
    ids=["java", "franz-go"],
)
def test_two_live_workers_give_partitions_to_each_other_and_nothing_is_lost_or_doubled(
    workers: dict[str, list[str]], client: str, protocols: tuple[str, str], tmp_path: Path
) -> None:
    run_pair(workers[client], protocols, seed=0, rounds=8, home=tmp_path)


def told(command: list[str]) -> dict[str, str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(line.split(maxsplit=1) for line in done.stdout.splitlines())


@pytest.mark.interop
def test_zombies_of_java_are_fenced(bootstrap: str, create_topic: CreateTopic) -> None:
    topic = create_topic("zombies")
    assert told([*java_command(), "ZombieProducer", bootstrap, topic]) == {
        "sends": "InvalidProducerEpochException",
        "commits": "ProducerFencedException",
        "aborts": "ProducerFencedException",
    }
    assert read(bootstrap, topic, 3) == [b"successor"] * 3


@pytest.mark.interop
def test_zombies_of_franz_go_are_fenced(bootstrap: str, create_topic: CreateTopic) -> None:
    topic = create_topic("zombies")
    assert told([str(go_driver()), "zombies", bootstrap, topic]) == {
        "sends": "INVALID_PRODUCER_EPOCH",
        "commits": "PRODUCER_FENCED",
        "aborts": "PRODUCER_FENCED",
    }
    assert read(bootstrap, topic, 3) == [b"successor"] * 3
