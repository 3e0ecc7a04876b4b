"""What transactions cost: records per second, and how long a commit takes, by size and number of partitions.

    python -m benchmarks.transactions [--seconds 3] [--runs 5] [--kafka [name=value ...]]

The client is librdkafka, one producer at a time. A transaction's records are written and acknowledged first;
then the commit alone is timed. With `--kafka` an Apache Kafka is measured in the same run, turn by turn on
the same core, with a line of ratios for each pair. Ours has every commit on the disk before it answers;
Apache Kafka leaves that to the operating system unless it is given log.flush.interval.messages=1. If it is
not, there is a second Ottla that leaves it to the operating system too, so that like is beside like.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from benchmarks.against_kafka.brokers import apache_kafka
from benchmarks.processes import CLIENT_CORE, SERVER_CORE, on_core
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing import BrokerProcess

RECORDS = (1, 100, 10_000)
PARTITIONS = (1, 10)
VALUE = b"v" * 100
TIMEOUT_S = 60

SYNCING = "log.flush.interval.messages"
KAFKAS_SYNCING = str(2**63 - 1)  # its default: never by itself


class Figures(NamedTuple):
    records_per_second: float
    whole_p50_ms: float  # from its beginning to the end of its commit
    commit_p50_ms: float
    commit_p99_ms: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--seconds", type=float, default=3, help="of each measurement")
    parser.add_argument("--runs", type=int, default=5, help="of which the median is shown")
    parser.add_argument("--kafka", nargs="*", metavar="name=value", help="settings of an Apache Kafka")
    options = parser.parse_args()
    os.sched_setaffinity(0, {CLIENT_CORE})
    with ExitStack() as stack:
        addresses = start_brokers(stack, options.kafka)
        for address in addresses.values():
            create_topics(address)
            measure(address, records=100, partitions=10, seconds=options.seconds)  # warm-up
        print(f"{'transactions of':<38}{'records/s':>12}{'p50':>12}{'commit p50':>12}{'p99':>12}")
        for partitions in PARTITIONS:
            for records in RECORDS:
                compare(addresses, records, partitions, options)


def start_brokers(stack: ExitStack, kafka: Sequence[str] | None) -> dict[str, str]:
    """Addresses by name."""
    addresses = {}
    with on_core(SERVER_CORE):
        addresses["ottla"] = stack.enter_context(BrokerProcess()).bootstrap
        if kafka is None:
            return addresses
        syncing = dict(each.split("=", 1) for each in kafka).get(SYNCING, KAFKAS_SYNCING)
        if syncing != "1":
            alike = stack.enter_context(BrokerProcess(settings={SYNCING: syncing}))
            addresses["ottla like kafka"] = alike.bootstrap
    addresses["kafka"] = stack.enter_context(apache_kafka(kafka)).address
    return addresses


def compare(addresses: Mapping[str, str], records: int, partitions: int, options: argparse.Namespace) -> None:
    runs: dict[str, list[Figures]] = {name: [] for name in addresses}
    for _ in range(options.runs):
        for name, address in addresses.items():
            runs[name].append(measure(address, records, partitions, options.seconds))
    medians = {
        name: Figures(*map(statistics.median, zip(*figures, strict=True))) for name, figures in runs.items()
    }
    for name, median in medians.items():
        show(f"{records:,} over {partitions}  {name}", median, "ms")
    theirs = medians.pop("kafka", None)
    if theirs is not None:
        for name, ours in medians.items():
            ratios = (our / their for our, their in zip(ours, theirs, strict=True))
            show(f"  {name} / kafka", Figures(*ratios), "")


def show(what: str, figures: Figures, unit: str) -> None:
    throughput, *times_ms = figures
    digits = 0 if unit else 2
    columns = "".join(f"{time_ms:>9.2f} {unit:<2}" for time_ms in times_ms)
    print(f"{what:<38}{throughput:>12,.{digits}f}{columns}")


def topic_name(partitions: int) -> str:
    return f"transactions-bench-{partitions}"


def create_topics(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    topics = [NewTopic(topic_name(partitions), partitions, 1) for partitions in PARTITIONS]
    for created in admin.create_topics(topics).values():
        created.result(TIMEOUT_S)


def measure(address: str, records: int, partitions: int, seconds: float) -> Figures:
    producer = Producer(
        {
            "bootstrap.servers": address,
            "transactional.id": "bench",
            "linger.ms": 0 if records == 1 else 5,
            "queue.buffering.max.messages": 2 * max(RECORDS),
        }
    )
    producer.init_transactions(TIMEOUT_S)
    topic = topic_name(partitions)
    whole_ms: list[float] = []
    commits_ms: list[float] = []
    started = ended = time.perf_counter()
    while ended - started < seconds or not commits_ms:
        began = ended
        producer.begin_transaction()
        for number in range(records):
            producer.produce(topic, VALUE, partition=number % partitions)
        assert producer.flush(TIMEOUT_S) == 0
        asked = time.perf_counter()
        producer.commit_transaction(TIMEOUT_S)
        ended = time.perf_counter()
        commits_ms.append((ended - asked) * 1000)
        whole_ms.append((ended - began) * 1000)
    commits_ms.sort()
    return Figures(
        records_per_second=records * len(commits_ms) / (ended - started),
        whole_p50_ms=statistics.median(whole_ms),
        commit_p50_ms=statistics.median(commits_ms),
        commit_p99_ms=commits_ms[min(len(commits_ms) - 1, len(commits_ms) * 99 // 100)],
    )


if __name__ == "__main__":
    main()
