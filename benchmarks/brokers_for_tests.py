"""Brokers for tests: how long they take to start, and what a request costs while the test itself computes.

python -m benchmarks.brokers_for_tests
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import threading
import time

from ottla.client import Admin
from ottla.testing import BrokerProcess, BrokerThread

ROUNDS = 10
REQUESTS = 200


def timed(action: object) -> float:
    began = time.perf_counter()
    action()  # type: ignore[operator]
    return (time.perf_counter() - began) * 1000


def starts(kind: type[BrokerProcess | BrokerThread], **given: object) -> list[float]:
    times = []
    for _ in range(ROUNDS):
        broker = kind(**given)  # type: ignore[arg-type]
        times.append(timed(broker.start))
        broker.stop()
    return times


def mean_request_ms(bootstrap: str) -> float:
    """The mean: under a busy interpreter most requests are quick and some wait for many turns of 5 ms."""
    with Admin(bootstrap) as admin:
        partitions = admin.partitions_of("orders")
        admin.latest_offsets(partitions)
        return statistics.mean(timed(lambda: admin.latest_offsets(partitions)) for _ in range(REQUESTS))


def requests(kind: type[BrokerProcess | BrokerThread], *, busy: bool, client_outside: bool) -> float:
    stop = threading.Event()

    def compute() -> None:
        while not stop.is_set():
            sum(range(10_000))

    worker = threading.Thread(target=compute)
    with kind() as broker:
        with Admin(broker.bootstrap) as admin:
            admin.create_topic("orders")
        if busy:
            worker.start()
        try:
            if not client_outside:
                return mean_request_ms(broker.bootstrap)
            command = [sys.executable, "-m", "benchmarks.brokers_for_tests", broker.bootstrap]
            return float(subprocess.run(command, capture_output=True, check=True).stdout)
        finally:
            stop.set()
            if busy:
                worker.join()


def main() -> None:
    print(f"{'a broker is ready after':<44}{'first':>9}{'median':>9}{'slowest':>9}")
    for name, kind, given in (
        ("BrokerProcess, a fresh interpreter each", BrokerProcess, {"env": {"FRESH": "1"}}),
        ("BrokerProcess, forked from a warm one", BrokerProcess, {}),
        ("BrokerThread", BrokerThread, {}),
    ):
        times = starts(kind, **given)
        shown = (times[0], statistics.median(times[1:]), max(times[1:]))
        print(f"{name:<44}" + "".join(f"{each:>6.0f} ms" for each in shown))
    print(f"\n{'a ListOffsets request takes (mean)':<44}{'idle test':>12}{'busy test':>12}")
    for outside in (False, True):
        for kind in (BrokerProcess, BrokerThread):
            name = f"{kind.__name__}, client {'in its own process' if outside else 'in the test'}"
            idle, busy = (requests(kind, busy=busy, client_outside=outside) for busy in (False, True))
            print(f"{name:<44}{idle:>9.2f} ms{busy:>9.2f} ms")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(mean_request_ms(sys.argv[1]))
    else:
        main()
