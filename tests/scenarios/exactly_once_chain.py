"""A consume-transform-produce chain whose worker and broker are killed at random, and what must come of it.

The worker is any program: its arguments are BOOTSTRAP INPUT OUTPUT PARTITIONS. It reads INPUT in the group
`chain` as the static member `worker`, writes double each number to the partition number % PARTITIONS of
OUTPUT in transactions of the id `chain`, runs until it is killed, and prints a line when it has committed its
first transaction.
"""

from __future__ import annotations

import random
import select
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing import BrokerProcess

INPUT, OUTPUT = "numbers", "doubled"
PARTITIONS = 3
PATIENCE_S = 120


def run_chain(command: Sequence[str], seed: int, rounds: int) -> None:
    rng = random.Random(seed)
    with BrokerProcess() as broker:
        create_topics(broker.bootstrap)
        count = 0
        for _ in range(rounds):
            count = write(broker.bootstrap, count, 150)
            with _worker(command, broker.bootstrap, is_awaited=rng.random() < 0.8):
                time.sleep(rng.uniform(0, 1.5))
                if rng.random() < 0.4:
                    broker.kill()
                    broker.start()
                    time.sleep(rng.uniform(0, 1.0))
        with _worker(command, broker.bootstrap, is_awaited=False):
            outputs = read_until(broker.bootstrap, count)
        check_outputs(outputs, count)


def create_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    created = admin.create_topics([NewTopic(INPUT, 2, 1), NewTopic(OUTPUT, PARTITIONS, 1)])
    for topic in created.values():
        topic.result(30)


def write(bootstrap: str, first: int, count: int) -> int:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(first, first + count):
        producer.produce(INPUT, b"%d" % number, partition=number % 2)
    assert producer.flush(PATIENCE_S) == 0
    return first + count


@contextmanager
def _worker(command: Sequence[str], bootstrap: str, *, is_awaited: bool) -> Iterator[None]:
    """Has committed once, if that is awaited; killed at the end."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [*command, bootstrap, INPUT, OUTPUT, str(PARTITIONS)], stdout=subprocess.PIPE, stderr=errors
        )
        assert process.stdout is not None
        try:
            if is_awaited:
                ready, _, _ = select.select([process.stdout], [], [], PATIENCE_S)
                assert ready, f"nothing was committed:\n{_tail(errors)}"
            yield
            assert process.poll() is None, f"the chain ended by itself:\n{_tail(errors)}"
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def _tail(errors: IO[bytes]) -> str:
    errors.seek(0)
    return errors.read()[-4000:].decode(errors="replace")


def check_outputs(outputs: Sequence[int], count: int) -> None:
    """Each input once; or which are not."""
    times = Counter(outputs)
    wanted = {2 * number for number in range(count)}
    wrong = {
        "missing": sorted(wanted - times.keys()),
        "more than once": sorted(output for output, often in times.items() if often > 1),
        "of no input": sorted(times.keys() - wanted),
    }
    assert not any(wrong.values()), wrong


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
