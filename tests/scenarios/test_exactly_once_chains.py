"""Each input once in the output, whoever is killed and whenever: the chain, the broker, or both."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing import BrokerProcess

INPUT, OUTPUT = "numbers", "doubled"
PARTITIONS = 3
PATIENCE_S = 90


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.timeout(300)
def test_each_input_is_in_the_output_exactly_once(seed: int) -> None:
    run_chain(seed, rounds=6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
@pytest.mark.timeout(1800)
def test_each_input_is_in_the_output_exactly_once_at_length(seed: int) -> None:
    run_chain(seed, rounds=30)


def run_chain(seed: int, rounds: int) -> None:
    rng = random.Random(seed)
    with BrokerProcess() as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        created = admin.create_topics([NewTopic(INPUT, 2, 1), NewTopic(OUTPUT, PARTITIONS, 1)])
        for topic in created.values():
            topic.result(30)
        count = 0
        for _ in range(rounds):
            count = write(broker.bootstrap, count, 150)
            with worker(broker.bootstrap):
                time.sleep(rng.uniform(0.3, 2.0))
                if rng.random() < 0.4:
                    broker.kill()
                    broker.start()
                    time.sleep(rng.uniform(0, 1.0))
        with worker(broker.bootstrap):
            outputs = read_until(broker.bootstrap, count)
        assert sorted(outputs) == [2 * number for number in range(count)]


def write(bootstrap: str, first: int, count: int) -> int:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(first, first + count):
        producer.produce(INPUT, b"%d" % number, partition=number % 2)
    assert producer.flush(PATIENCE_S) == 0
    return first + count


@contextmanager
def worker(bootstrap: str) -> Iterator[None]:
    """Killed at the end."""
    script = Path(__file__).with_name("chain_worker.py")
    command = [sys.executable, script, bootstrap, INPUT, OUTPUT, str(PARTITIONS)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        yield
        assert process.poll() is None, "the chain ended by itself"
    finally:
        process.kill()
        process.wait()


def read_until(bootstrap: str, count: int) -> list[int]:
    """Committed outputs: as soon as there are `count`, and a little later, when there should be no more."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition(OUTPUT, partition, 0) for partition in range(PARTITIONS)])
    found: list[int] = []
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        messages = consumer.consume(500, 1.0)
        found += [int(message.value()) for message in messages if message.error() is None]
        if len(found) >= count and not messages:
            break
    consumer.close()
    return found
