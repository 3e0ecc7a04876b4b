"""At most once, at least once, exactly once: each with a consumer that is killed at its worst moment."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from client.conftest import NewTopicName
from client.wired import WiredBroker, wired_broker
from compat.broker import unique_name
from ottla.client import Consumer, Producer, TopicPartition
from ottla.client.reading import read

RECORDS = 12
DEATHS = (2, 7)  # the second in the middle of a poll


def run_worker(guarantee: str, bootstrap: str, source: str, sink: str, group: str, dies_at: int) -> int:
    tests = Path(__file__).parent.parent
    arguments = [guarantee, bootstrap, source, sink, group, str(dies_at)]
    command = [sys.executable, "-m", "client.guarantee_worker", *arguments]
    return subprocess.run(command, cwd=tests, timeout=90).returncode


@pytest.mark.parametrize("guarantee", ["at_most_once", "at_least_once", "exactly_once"])
def test_a_consumer_killed_at_the_worst_moment_keeps_its_guarantee(
    bootstrap: str, new_topic: NewTopicName, guarantee: str
) -> None:
    source, sink, group = new_topic(1), new_topic(1), unique_name("group")
    with Producer(bootstrap) as producer:
        for number in range(RECORDS):
            producer.send(source, b"%d" % number)
    for dies_at in DEATHS:
        assert run_worker(guarantee, bootstrap, source, sink, group, dies_at) == -signal.SIGKILL
    assert run_worker(guarantee, bootstrap, source, sink, group, -1) == 0
    with read(bootstrap, sink, isolation_level="read_committed") as reading:
        done = Counter(int(record.value) for record in reading)
    times = {"at_most_once": 0, "at_least_once": 2, "exactly_once": 1}[guarantee]
    assert done == Counter(
        {
            number: times if number in DEATHS else 1
            for number in range(RECORDS)
            if times or number not in DEATHS
        }
    )


def test_members_whose_sessions_expire_unnoticed_lose_nothing() -> None:
    """Their connections stall, the group gives their partitions away, and they come back."""
    settings = {"group.min.session.timeout.ms": "500"}
    with wired_broker(settings) as wired:
        wired.create_topic("t", partitions=2)
        quick: dict[str, object] = {
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 100,
            "session.timeout.ms": 800,
            "request.timeout.ms": 1500,
            "fetch.max.wait.ms": 50,
            "group.id": "g",
        }
        done: list[tuple[int, int]] = []
        lock = threading.Lock()

        def work(consumer: Consumer, is_over: threading.Event) -> None:
            while not is_over.is_set():
                records = consumer.poll(0.1)
                with lock:
                    done.extend((record.partition, record.offset) for record in records)

        with (
            Consumer(wired.bootstrap, strategy=(), **quick) as first,
            Consumer(wired.bootstrap, strategy=(), **quick) as second,
            Producer(wired.bootstrap, linger_ms=0) as producer,
        ):
            is_over = threading.Event()
            threads = [threading.Thread(target=work, args=(each, is_over)) for each in (first, second)]
            for each in (first, second):
                each.subscribe(["t"])
            for thread in threads:
                thread.start()
            for number in range(300):
                producer.send("t", b"", partition=number % 2).result(30)
                if number in (80, 160, 240):
                    wired.wire.stall("Heartbeat")
                if number in (120, 200):
                    wired.wire.stall("Fetch")
                if number % 3 == 0:
                    threading.Event().wait(0.03)
            wanted = {(partition, offset) for partition in (0, 1) for offset in range(150)}
            for _ in range(600):
                with lock:
                    if wanted <= set(done):
                        break
                threading.Event().wait(0.1)
            is_over.set()
            for thread in threads:
                thread.join()
        assert wanted <= set(done)


@pytest.fixture(scope="module")
def wired() -> Iterator[WiredBroker]:
    with wired_broker() as broker:
        yield broker


def test_exactly_once_through_a_killed_broker(wired: WiredBroker) -> None:
    wired.create_topic("source")
    wired.create_topic("sink")
    with Producer(wired.bootstrap) as producer:
        for number in range(200):
            producer.send("source", b"%d" % number, partition=0)
    place = TopicPartition("source", 0)
    killer = threading.Timer(0.4, lambda: (wired.kill(), wired.restart()))
    with (
        Consumer(
            wired.bootstrap,
            group_id="copy",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=5,
            isolation_level="read_committed",
            fetch_max_wait_ms=50,
        ) as consumer,
        Producer(wired.bootstrap, transactional_id="copy", linger_ms=0) as producer,
    ):
        producer.init_transactions()
        consumer.subscribe(["source"])
        killer.start()
        copied = 0
        while copied < 200:
            records = consumer.poll(0.5)
            if not records:
                continue
            with producer.transaction():
                for record in records:
                    producer.send("sink", record.value, partition=0)
                producer.send_offsets_to_transaction(consumer.positions(), consumer.group_metadata())
            copied = records[-1].offset + 1
            if copied == 100:
                killer.join()
        assert consumer.committed([place])[place].offset == 200
    with read(wired.bootstrap, "sink", isolation_level="read_committed") as reading:
        assert [int(record.value) for record in reading] == list(range(200))
