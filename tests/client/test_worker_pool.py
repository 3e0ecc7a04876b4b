"""One consumer, many threads: order per partition or key, commits that never pass an unfinished record."""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.conftest import NewTopicName
from compat.broker import unique_name
from ottla.client import Consumer, Producer, TopicPartition, WorkerPool
from ottla.client.errors import Misused
from ottla.client.fetched import ConsumedRecord
from ottla.client.pool_shares import Progress

QUICK = {
    "auto.offset.reset": "earliest",
    "heartbeat.interval.ms": 100,
    "fetch.max.wait.ms": 50,
    "enable.auto.commit": False,
}


@given(st.permutations(list(range(12))), st.sets(st.integers(0, 30), min_size=12, max_size=12))
def test_progress_never_passes_an_unfinished_record(order: list[int], chosen: set[int]) -> None:
    offsets = sorted(chosen)
    progress = Progress()
    for offset in offsets:
        progress.begin(offset)
    finished: set[int] = set()
    for index in order:
        finished.add(offsets[index])
        progress.finish(offsets[index])
        unfinished = [offset for offset in offsets if offset not in finished]
        if unfinished:
            assert (progress.committable or 0) <= unfinished[0]
        before = [offset for offset in offsets if not unfinished or offset < unfinished[0]]
        assert progress.committable == (before[-1] + 1 if before else None)
        assert progress.unfinished == len(unfinished)


def consumer_of(bootstrap: str, group: str, topic: str, **settings: object) -> Consumer:
    consumer = Consumer(bootstrap, strategy=(), **{**QUICK, "group.id": group, **settings})
    consumer.subscribe([topic])
    return consumer


def fill(bootstrap: str, topic: str, partitions: int, count: int, keys: int) -> None:
    with Producer(bootstrap) as producer:
        for number in range(count):
            key = number % keys
            producer.send(topic, b"%d" % number, key=b"%d" % key, partition=key % partitions)


@pytest.mark.parametrize("order", ["partition", "key"])
def test_each_lane_keeps_its_order_and_all_is_committed(
    bootstrap: str, new_topic: NewTopicName, order: Literal["partition", "key"]
) -> None:
    topic, group = new_topic(3), unique_name("group")
    fill(bootstrap, topic, 3, 600, 12)
    seen: dict[object, list[int]] = defaultdict(list)
    threads: set[int] = set()
    lock = threading.Lock()
    chance = random.Random(1)

    def handle(record: ConsumedRecord) -> None:
        if chance.random() < 0.1:
            time.sleep(0.001)
        with lock:
            threads.add(threading.get_ident())
            seen[record.partition if order == "partition" else record.key].append(int(record.value))
            if sum(map(len, seen.values())) == 600:
                pool.stop()

    with consumer_of(bootstrap, group, topic) as consumer:
        pool = WorkerPool(consumer, handle, workers=6, order=order, queued_max=50, commit_seconds=0.05)
        pool.run()
        places = [TopicPartition(topic, index) for index in range(3)]
        assert {each.offset for each in consumer.committed(places).values()} == {200}
    assert len(threads) > 1
    assert sorted(value for values in seen.values() for value in values) == list(range(600))
    assert all(values == sorted(values) for values in seen.values())


def test_a_handler_that_fails_stops_the_pool_before_its_record(
    bootstrap: str, new_topic: NewTopicName
) -> None:
    topic, group = new_topic(1), unique_name("group")
    fill(bootstrap, topic, 1, 50, 10)
    handled: set[int] = set()
    changed = threading.Condition()

    def handle(record: ConsumedRecord) -> None:
        with changed:
            if record.offset == 23:  # all before it are done, and some behind it
                changed.wait_for(lambda: handled >= set(range(23)) and max(handled) > 40, 30)
                raise ValueError("broken record")
            handled.add(record.offset)
            changed.notify_all()

    with consumer_of(bootstrap, group, topic) as consumer:
        with pytest.raises(ValueError, match="broken record"):
            WorkerPool(consumer, handle, workers=8, order="key", commit_seconds=0.01).run()
        place = TopicPartition(topic, 0)
        assert consumer.committed([place])[place].offset == 23


def test_on_error_may_take_care_of_a_record(bootstrap: str, new_topic: NewTopicName) -> None:
    topic, group = new_topic(1), unique_name("group")
    fill(bootstrap, topic, 1, 20, 5)
    dead: list[int] = []

    def handle(record: ConsumedRecord) -> None:
        if record.offset == 19:
            pool.stop()
        if record.offset in (3, 11):
            raise ValueError("broken record")

    with consumer_of(bootstrap, group, topic) as consumer:
        pool = WorkerPool(consumer, handle, on_error=lambda record, _error: dead.append(record.offset))
        pool.run()
        place = TopicPartition(topic, 0)
        assert consumer.committed([place])[place].offset == 20
    assert dead == [3, 11]


def test_a_long_record_costs_neither_the_place_in_the_group_nor_memory(
    bootstrap: str, new_topic: NewTopicName
) -> None:
    topic, group = new_topic(1), unique_name("group")
    fill(bootstrap, topic, 1, 100, 10)
    most = 0
    handled: list[int] = []

    def handle(record: ConsumedRecord) -> None:
        nonlocal most
        most = max(most, pool._shares.queued)
        if record.offset == 0:
            time.sleep(2.5)  # longer than max.poll.interval.ms
        handled.append(record.offset)
        if record.offset == 99:
            pool.stop()

    with consumer_of(
        bootstrap, group, topic, max_poll_interval_ms=1000, session_timeout_ms=6000, max_poll_records=10
    ) as consumer:
        pool = WorkerPool(consumer, handle, workers=2, queued_max=20)
        pool.run()
    assert handled == list(range(100))
    assert most <= 30


def test_partitions_that_go_to_another_member_are_finished_and_committed_first(
    bootstrap: str, new_topic: NewTopicName
) -> None:
    topic, group = new_topic(4), unique_name("group")
    fill(bootstrap, topic, 4, 400, 8)
    lock = threading.Lock()
    seen: list[tuple[int, int]] = []
    threads: set[int] = set()
    pools: list[WorkerPool] = []

    def handle(record: ConsumedRecord) -> None:
        time.sleep(0.01)
        with lock:
            seen.append((record.partition, record.offset))
            threads.add(threading.get_ident())
            if len(seen) >= 400:
                for pool in pools:
                    pool.stop()

    with consumer_of(bootstrap, group, topic) as first, consumer_of(bootstrap, group, topic) as second:
        pools += [WorkerPool(each, handle, workers=4, queued_max=20) for each in (first, second)]
        other = threading.Timer(0.3, pools[1].run)
        other.start()
        pools[0].run()
        other.join()
    assert len(threads) > 4, "the second pool got nothing"
    assert len(seen) == len(set(seen)) == 400, "what was finished before the handover is not read again"


def test_a_consumer_that_commits_by_itself_is_refused(bootstrap: str) -> None:
    with Consumer(bootstrap, group_id="g") as consumer, pytest.raises(Misused, match=r"enable\.auto\.commit"):
        WorkerPool(consumer, print)
