"""One consumer, many tasks: the promises of the pool of threads, under asyncio; and tables from there."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Literal

import pyarrow
import pytest

from client.conftest import NewTopicName
from client.test_worker_pool import QUICK, fill
from compat.broker import unique_name
from ottla.client import TopicPartition, aio, read
from ottla.client.fetched import ConsumedRecord


def consumer_of(bootstrap: str, group: str, topic: str) -> aio.Consumer:
    consumer = aio.Consumer(bootstrap, strategy=(), **{**QUICK, "group.id": group})
    consumer.subscribe([topic])
    return consumer


@pytest.mark.parametrize("order", ["partition", "key"])
def test_each_lane_keeps_its_order_and_all_is_committed(
    bootstrap: str, new_topic: NewTopicName, order: Literal["partition", "key"]
) -> None:
    topic, group = new_topic(3), unique_name("group")
    fill(bootstrap, topic, 3, 600, 12)
    seen: dict[object, list[int]] = defaultdict(list)
    most = 0

    async def work() -> None:
        running = 0

        async def handle(record: ConsumedRecord) -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1
            seen[record.partition if order == "partition" else record.key].append(int(record.value))
            if sum(map(len, seen.values())) == 600:
                pool.stop()

        async with consumer_of(bootstrap, group, topic) as consumer:
            pool = aio.WorkerPool(
                consumer, handle, workers=6, order=order, queued_max=50, commit_seconds=0.05
            )
            await pool.run()
            committed = await consumer.committed([TopicPartition(topic, index) for index in range(3)])
            assert {each.offset for each in committed.values()} == {200}

    asyncio.run(work())
    assert most > 1
    assert sorted(value for values in seen.values() for value in values) == list(range(600))
    assert all(values == sorted(values) for values in seen.values())


def test_a_handler_that_fails_stops_the_pool_before_its_record(
    bootstrap: str, new_topic: NewTopicName
) -> None:
    topic, group, place = new_topic(1), unique_name("group"), None
    fill(bootstrap, topic, 1, 50, 10)
    place = TopicPartition(topic, 0)
    handled: set[int] = set()

    async def work() -> None:
        rest = asyncio.Event()

        async def handle(record: ConsumedRecord) -> None:
            if record.offset == 23:  # all before it are done, and some behind it
                await rest.wait()
                raise ValueError("broken record")
            handled.add(record.offset)
            if handled >= set(range(23)) and max(handled) > 40:
                rest.set()

        async with consumer_of(bootstrap, group, topic) as consumer:
            pool = aio.WorkerPool(consumer, handle, workers=8, order="key", commit_seconds=0.01)
            with pytest.raises(ValueError, match="broken record"):
                await pool.run()
            assert (await consumer.committed([place]))[place].offset == 23

    asyncio.run(work())


def test_on_error_takes_care_and_two_pools_share_a_group(bootstrap: str, new_topic: NewTopicName) -> None:
    topic, group = new_topic(4), unique_name("group")
    fill(bootstrap, topic, 4, 400, 8)
    seen: list[tuple[int, int]] = []
    dead: list[tuple[int, int]] = []

    async def work() -> None:
        has_some = asyncio.Event()

        async def handle(record: ConsumedRecord) -> None:
            await asyncio.sleep(0.005)
            if record.offset == 50:
                raise ValueError("broken record")
            seen.append((record.partition, record.offset))
            end()

        async def bury(record: ConsumedRecord, error: Exception) -> None:
            dead.append((record.partition, record.offset))
            end()

        def end() -> None:
            if len(seen) > 20:
                has_some.set()
            if len(seen) + len(dead) >= 400:
                for pool in pools:
                    pool.stop()

        async with (
            consumer_of(bootstrap, group, topic) as first,
            consumer_of(bootstrap, group, topic) as second,
        ):
            pools = [
                aio.WorkerPool(each, handle, workers=4, queued_max=20, on_error=bury)
                for each in (first, second)
            ]
            running = asyncio.create_task(pools[0].run())
            await has_some.wait()
            await pools[1].run()
            await running

    asyncio.run(work())
    assert sorted(dead) == [(index, 50) for index in range(4)]
    assert len(seen) == len(set(seen)) == 396, "what was finished before the handover is not read again"


def test_tables_are_sent_while_other_tasks_go_on(bootstrap: str, new_topic: NewTopicName) -> None:
    topic = new_topic(2)
    table = pyarrow.table(
        {"key": [b"%d" % number for number in range(20_000)], "value": [b"x" * 500] * 20_000}
    )
    turns = 0

    async def work() -> None:
        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        other = asyncio.create_task(count())
        async with aio.Producer(bootstrap, batch_size=100_000) as producer:
            sending = await producer.send_arrow(table, topic)
            before = turns
            deliveries = await sending
            assert sending.done()
            with pytest.raises(ValueError, match="no such partition"):
                await producer.send_arrow(pyarrow.table({"value": [b"a"], "partition": [7]}), topic)
        other.cancel()
        assert before > 50  # batches: other tasks had a turn after each
        assert sum(delivery.records for delivery in deliveries) == 20_000

    asyncio.run(work())
    found = read(bootstrap, topic).to_arrow(["key", "value"])
    assert sorted(found["key"].to_pylist()) == sorted(table["key"].to_pylist())
