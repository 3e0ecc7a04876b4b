"""Records per second of Python clients on one broker, in one run: Ottla, confluent-kafka, kafka-python.

    python -m benchmarks.clients [--bootstrap host:port] [--count N]

Each client produces the same records (no key, acks=all, its own defaults otherwise) and reads them back, one
record at a time in a `for` loop as users write it. Best of `--rounds`; compare within a run only.
"""

from __future__ import annotations

import argparse
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack

import confluent_kafka
import kafka

from ottla.client.admin import Admin
from ottla.client.producer import Producer
from ottla.client.reading import read
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
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": uuid.uuid4().hex})
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


CLIENTS: dict[str, tuple[Write, Read]] = {
    "ottla": (write_ottla, read_ottla),
    "confluent-kafka": (write_confluent, read_confluent),
    "kafka-python": (write_kafka_python, read_kafka_python),
}


def measure(bootstrap: str, name: str, size: int, count: int, rounds: int) -> tuple[float, float]:
    """Records per second written and read, the best of `rounds`."""
    write, read_back = CLIENTS[name]
    written = seen = 0.0
    for _ in range(rounds):
        topic = f"bench-{uuid.uuid4().hex[:8]}"
        with Admin(bootstrap) as admin:
            admin.create_topic(topic, partitions=1)
            begin = time.perf_counter()
            write(bootstrap, topic, b"x" * size, count)
            written = max(written, count / (time.perf_counter() - begin))
            begin = time.perf_counter()
            assert read_back(bootstrap, topic, count) == count
            seen = max(seen, count / (time.perf_counter() - begin))
            admin.delete_topic(topic)
    return written, seen


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bootstrap", help="a running broker; without it one is started")
    parser.add_argument("--count", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    with ExitStack() as stack:
        bootstrap = options.bootstrap or stack.enter_context(BrokerProcess()).bootstrap
        print(f"{'client':<18}{'size':>6}{'produce/s':>14}{'consume/s':>14}")
        for size in (100, 1024):
            for name in CLIENTS:
                count = options.count // (4 if name == "kafka-python" else 1)
                written, seen = measure(bootstrap, name, size, count, options.rounds)
                print(f"{name:<18}{size:>6}{written:>14,.0f}{seen:>14,.0f}", flush=True)


if __name__ == "__main__":
    main()
