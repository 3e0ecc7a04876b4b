"""Records per second of Python clients on one broker, in one run: Ottla and the three that users know.

    python -m benchmarks.clients [--bootstrap host:port] [--count N] [--rounds N]

Each client produces the same records (no key, acks=all, its own defaults otherwise) and reads them back, one
record at a time in a `for` loop as users write it; Ottla also as Arrow tables with all columns. Broker and
client have a core each, where there are two; the broker leaves syncing to the operating system. The clients
take turns, and the best of `--rounds` counts: compare within a run only. Only time counts in which the host
of a virtual machine left us our cores; which part of the records was moved in it is told by the bytes over
loopback.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import aiokafka
import confluent_kafka
import kafka
import pyarrow
from benchmarks.memory import fetch_memory
from benchmarks.raw_load import SOURCE, compiled

from ottla.client.admin import Admin
from ottla.client.producer import Producer
from ottla.client.reading import read
from ottla.model.limits import MIB
from ottla.testing import BrokerProcess

Write = Callable[[str, str, bytes, int], None]
Read = Callable[[str, str, int], int]


def write_ottla(bootstrap: str, topic: str, value: bytes, count: int) -> None:
    with Producer(bootstrap) as producer:
        for _ in range(count):
            producer.send(topic, value)


def read_ottla(bootstrap: str, topic: str, count: int) -> int:
    found = 0
    with read(bootstrap, topic) as reading:
        for record in reading:
            assert record.value
            found += 1
    return found


def write_arrow(bootstrap: str, topic: str, value: bytes, count: int) -> None:
    ends = pyarrow.array(range(0, len(value) * (_TABLE_ROWS + 1), len(value)), pyarrow.int32())
    data = pyarrow.py_buffer(value * _TABLE_ROWS)
    column = pyarrow.Array.from_buffers(pyarrow.binary(), _TABLE_ROWS, [None, ends.buffers()[1], data])
    table = pyarrow.table({"value": column})
    with Producer(bootstrap) as producer:
        for _ in range(count // _TABLE_ROWS):
            producer.send_arrow(table, topic)


def read_arrow(bootstrap: str, topic: str, count: int) -> int:
    with read(bootstrap, topic) as reading:
        return sum(batch.num_rows for batch in reading.arrow_batches())


def write_confluent(bootstrap: str, topic: str, value: bytes, count: int) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for _ in range(count):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(120) == 0


def read_confluent(bootstrap: str, topic: str, count: int) -> int:
    settings = {"bootstrap.servers": bootstrap, "group.id": uuid.uuid4().hex, **_READS_AHEAD}
    consumer = confluent_kafka.Consumer(settings)
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    found = 0
    while found < count:
        for message in consumer.consume(5000, 1):
            assert message.value()
            found += 1
    consumer.close()
    return found


def write_kafka_python(bootstrap: str, topic: str, value: bytes, count: int) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=5)
    for _ in range(count):
        producer.send(topic, value)
    producer.flush()
    producer.close()


def read_kafka_python(bootstrap: str, topic: str, count: int) -> int:
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    consumer.assign([kafka.TopicPartition(topic, 0)])
    consumer.seek_to_beginning()
    found = 0
    for message in consumer:
        assert message.value
        found += 1
        if found == count:
            break
    consumer.close()
    return found


def write_aiokafka(bootstrap: str, topic: str, value: bytes, count: int) -> None:
    async def write() -> None:
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, acks="all", linger_ms=5
        ) as producer:
            for _ in range(count):
                await producer.send(topic, value)

    asyncio.run(write())


def read_aiokafka(bootstrap: str, topic: str, count: int) -> int:
    async def consume() -> int:
        found = 0
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
        async with consumer:
            consumer.assign([aiokafka.TopicPartition(topic, 0)])
            await consumer.seek_to_beginning()
            async for message in consumer:
                assert message.value
                found += 1
                if found == count:
                    break
        return found

    return asyncio.run(consume())


_READS_AHEAD = {"queued.min.messages": 1_000_000}
"""By default librdkafka pauses for a second whenever a hundred thousand records wait to be taken."""
_TABLE_ROWS = 50_000
_SETTINGS = {"log.flush.interval.messages": str(2**63 - 1)}
"""Kafka's default. What is written is deleted before the system would write it to the disk."""
_FILE_BYTES_BESIDE = 16  # of a record in a file, besides its value
_MIB_BESIDE = 256  # what a client and the broker take for themselves

CLIENTS: dict[str, tuple[Write, Read, float]] = {
    "ottla, Arrow": (write_arrow, read_arrow, 20),
    "ottla, objects": (write_ottla, read_ottla, 1),
    "confluent-kafka": (write_confluent, read_confluent, 2),
    "aiokafka": (write_aiokafka, read_aiokafka, 0.25),
    "kafka-python": (write_kafka_python, read_kafka_python, 0.25),
}
"""How each writes and reads, and how many of `--count` records: all of them shall take about a second."""


class Figures(NamedTuple):
    """Of one round: records per second, and the client's processor time per record."""

    written: float
    seen: float
    writing_us: float
    seeing_us: float


class Clock:
    """What work takes, without the time that the host took away."""

    def __init__(self, folder: Path) -> None:
        self._program = compiled(SOURCE.with_name("loopback_pace.c"), folder)

    def timed(self, work: Callable[[], object], count: int) -> tuple[float, float]:
        """Records per second, and microseconds of this process per record."""
        pipe = subprocess.PIPE
        with subprocess.Popen([self._program], stdin=pipe, stdout=pipe, text=True) as pace:
            begin_cpu = time.process_time()
            work()
            cpu = time.process_time() - begin_cpu
            told = json.loads(pace.communicate()[0])
        return count * told["bytes"] / told["all_bytes"] / told["seconds"], cpu / count * 1e6


def measure(clock: Clock, bootstrap: str, name: str, size: int, count: int) -> Figures:
    write, read_back, _ = CLIENTS[name]
    topic = f"bench-{uuid.uuid4().hex[:8]}"
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=1)
        fetch_memory(count * (size + _FILE_BYTES_BESIDE) // MIB + _MIB_BESIDE)
        written, writing_us = clock.timed(partial(write, bootstrap, topic, b"x" * size, count), count)
        seen, seeing_us = clock.timed(partial(_check_count, read_back, bootstrap, topic, count), count)
        admin.delete_topic(topic)
    return Figures(written, seen, writing_us, seeing_us)


def best(rounds: list[Figures]) -> Figures:
    written, seen, writing_us, seeing_us = zip(*rounds, strict=True)
    return Figures(max(written), max(seen), min(writing_us), min(seeing_us))


def _check_count(read_back: Read, bootstrap: str, topic: str, count: int) -> None:
    found = read_back(bootstrap, topic, count)
    assert found == count, f"{found} of {count} records"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bootstrap", help="a running broker; without it one is started")
    parser.add_argument("--count", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    with ExitStack() as stack:
        os.sched_setaffinity(0, cores[:1])
        if options.bootstrap:
            bootstrap = options.bootstrap
        else:
            folder = stack.enter_context(TemporaryDirectory())
            bootstrap = stack.enter_context(BrokerProcess(Path(folder), _SETTINGS)).bootstrap
        os.sched_setaffinity(0, cores[-1:])
        titles = ("produce/s", "consume/s", "produce CPU µs", "consume CPU µs")
        print(f"{'client':<18}{'size':>6}" + "".join(f"{title:>16}" for title in titles))
        clock = Clock(Path(stack.enter_context(TemporaryDirectory())))
        for size in (100, 1024):
            rounds: dict[str, list[Figures]] = {name: [] for name in CLIENTS}
            for _ in range(options.rounds):
                for name, (_, _, share) in CLIENTS.items():
                    count = (
                        int(options.count * share) * 100 // size // _TABLE_ROWS * _TABLE_ROWS or _TABLE_ROWS
                    )
                    rounds[name].append(measure(clock, bootstrap, name, size, count))
            for name in CLIENTS:
                each = best(rounds[name])
                rates = f"{each.written:>16,.0f}{each.seen:>16,.0f}"
                costs = f"{each.writing_us:>16.3f}{each.seeing_us:>16.3f}"
                print(f"{name:<18}{size:>6}{rates}{costs}", flush=True)


if __name__ == "__main__":
    main()
