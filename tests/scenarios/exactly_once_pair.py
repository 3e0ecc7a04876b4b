"""A chain with two live workers, between which partitions move when one of them or the broker is killed.

Workers are programs: BOOTSTRAP INPUT OUTPUT PARTITIONS NAME PROTOCOL. They read INPUT as dynamic members of
the group `chain` and write double each number in transactions of the id `chain-NAME`.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from compat.waiting import eventually
from ottla.testing import BrokerProcess
from scenarios.exactly_once_chain import (
    INPUT,
    OUTPUT,
    PARTITIONS,
    PATIENCE_S,
    check_outputs,
    create_topics,
    read_until,
    write,
)

SETTINGS = {
    "group.initial.rebalance.delay.ms": "100",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.heartbeat.interval.ms": "300",
}


class Worker:
    """A program that is started again whenever it was killed."""

    def __init__(self, command: Sequence[str], bootstrap: str, name: str, protocol: str, home: Path) -> None:
        self._command = [*command, bootstrap, INPUT, OUTPUT, str(PARTITIONS), name, protocol]
        self._output = home / f"{name}.out"
        self._errors = home / f"{name}.err"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        with self._output.open("ab") as output, self._errors.open("ab") as errors:
            self._process = subprocess.Popen(self._command, stdout=output, stderr=errors)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def check(self) -> None:
        assert self._process is not None
        assert self._process.poll() is None, self._errors.read_text(errors="replace")[-4000:]

    @property
    def commits(self) -> int:
        return self._output.read_bytes().count(b"committed")


def begin(bootstrap: str, workers: Sequence[Worker]) -> int:
    """Until both of them have something to do; gives how many inputs that took."""
    count = 0

    def is_shared() -> bool:
        nonlocal count
        count = write(bootstrap, count, 10)
        return all(worker.commits for worker in workers)

    assert eventually(is_shared, PATIENCE_S)
    return count


def run_pair(command: Sequence[str], protocols: tuple[str, str], seed: int, rounds: int, home: Path) -> None:
    rng = random.Random(seed)
    with BrokerProcess(settings=SETTINGS) as broker:
        create_topics(broker.bootstrap)
        workers = [
            Worker(command, broker.bootstrap, name, protocol, home)
            for name, protocol in zip(("one", "two"), protocols, strict=True)
        ]
        try:
            count = begin(broker.bootstrap, workers)
            for _ in range(rounds):
                count = write(broker.bootstrap, count, 300)
                time.sleep(rng.uniform(0, 2.5))
                if rng.random() < 0.3:
                    broker.kill()
                    broker.start()
                if rng.random() < 0.8:
                    killed = rng.choice(workers)
                    killed.kill()
                    time.sleep(rng.choice([0, 0.5, 4]))  # the longest is more than its session
                    killed.start()
            outputs = read_until(broker.bootstrap, count)
            for worker in workers:
                worker.check()
        finally:
            for worker in workers:
                worker.kill()
        check_outputs(outputs, count)
