"""The clients for asyncio on a real broker: the same promises as the blocking ones, without threads."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from client.conftest import NewTopicName
from client.wired import wired_broker
from compat.broker import unique_name
from ottla.client import ProducerFenced, RebalanceListener, TopicPartition, aio
from ottla.client.admin import Admin
from ottla.client.consumer import Consumer
from ottla.client.errors import BufferFull, ClientError, Closed, Misused, TransactionFailed, UnknownTopic
from ottla.client.fetched import ConsumedRecord
from ottla.client.producer import Producer

QUICK = {"auto.offset.reset": "earliest", "heartbeat.interval.ms": 100, "fetch.max.wait.ms": 50}


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(work(), 60)
        left = [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("ottla")]
        assert left == []

    threads = threading.active_count()
    asyncio.run(bounded())
    assert threading.active_count() <= threads


async def take(consumer: aio.Consumer, count: int) -> list[ConsumedRecord]:
    records: list[ConsumedRecord] = []
    while len(records) < count:
        records += await consumer.poll(1)
    return records


def test_the_same_names_and_signatures_as_the_blocking_clients() -> None:
    for blocking, other in ((Admin, aio.Admin), (Consumer, aio.Consumer), (Producer, aio.Producer)):
        names = {name for name in vars(blocking) if not name.startswith("_")}
        missing = {name for name in names if not hasattr(other, name)}
        assert missing == set(), blocking


def test_records_go_round(bootstrap: str, new_topic: NewTopicName) -> None:
    topic = new_topic(3)

    async def work() -> None:
        async with aio.Producer(bootstrap, value_serializer="integer") as producer:
            waiting = [await producer.send(topic, number, key=b"%d" % number) for number in range(300)]
            deliveries = await asyncio.gather(*waiting)
            assert {delivery.partition for delivery in deliveries} == {0, 1, 2}
            assert await producer.partition_count(topic) == 3
        async with aio.Consumer(bootstrap, value_deserializer="integer") as consumer:
            consumer.assign({TopicPartition(topic, index): "start" for index in range(3)})
            records = await take(consumer, 300)
            assert sorted(record.value for record in records) == list(range(300))
            assert await consumer.lag() == {TopicPartition(topic, index): 0 for index in range(3)}

    run(work)


def test_a_group_is_iterated_and_goes_on_where_it_was(bootstrap: str, new_topic: NewTopicName) -> None:
    topic, group = new_topic(1), unique_name("group")
    heard: list[tuple[str, int]] = []

    class Listening(RebalanceListener):
        async def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
            await asyncio.sleep(0)
            heard.append(("assigned", len(partitions)))

        async def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
            await asyncio.sleep(0)
            heard.append(("revoked", len(partitions)))

    async def read_until(last: bytes, start: int) -> None:
        async with aio.Consumer(bootstrap, group_id=group, enable_auto_commit=False, **QUICK) as consumer:  # type: ignore[arg-type]
            consumer.subscribe([topic], Listening())
            offset = start
            async for record in consumer:
                assert record.offset == offset
                offset += 1
                if record.value == last:
                    await consumer.commit()  # only what was handed out
                    return

    async def work() -> None:
        async with aio.Producer(bootstrap) as producer:
            for number in range(20):
                await producer.send(topic, b"%d" % number)
        await read_until(b"7", 0)
        await read_until(b"19", 8)

    run(work)
    assert heard == [("assigned", 1), ("revoked", 1)] * 2


def test_members_share_partitions_while_others_work(bootstrap: str, new_topic: NewTopicName) -> None:
    topic, group = new_topic(4), unique_name("group")

    async def member(found: list[ConsumedRecord], is_over: Callable[[], bool]) -> None:
        async with aio.Consumer(bootstrap, group_id=group, **QUICK) as consumer:  # type: ignore[arg-type]
            consumer.subscribe([topic])
            while not is_over():
                found += await consumer.poll(0.1)

    async def work() -> None:
        parts: tuple[list[ConsumedRecord], ...] = ([], [])

        def is_over() -> bool:
            return all(parts) and sum(map(len, parts)) >= 400

        async with aio.Producer(bootstrap) as producer:

            async def feed() -> None:
                number = 0
                while not is_over():
                    await producer.send(topic, b"%d" % number, partition=number % 4)
                    number += 1
                    await asyncio.sleep(0.002)

            await asyncio.gather(feed(), *(member(part, is_over) for part in parts))
        values = [record.value for part in parts for record in part]
        assert len(set(values)) >= 400

    run(work)


def test_other_tasks_commit_and_seek_while_one_polls(bootstrap: str, new_topic: NewTopicName) -> None:
    topic, group = new_topic(1), unique_name("group")
    place = TopicPartition(topic, 0)

    async def work() -> None:
        async with aio.Consumer(bootstrap, group_id=group, **QUICK) as consumer:  # type: ignore[arg-type]
            consumer.assign({place: "start"})
            polling = asyncio.create_task(take(consumer, 2))
            await asyncio.sleep(0.05)
            with pytest.raises(Misused, match="another task polls"):
                await consumer.poll()
            async with aio.Producer(bootstrap) as producer:
                await (await producer.send(topic, b"a"))
                await consumer.commit({place: 1})
                assert (await consumer.committed([place]))[place].offset == 1
                await (await producer.send(topic, b"b"))
            assert [record.value for record in await polling] == [b"a", b"b"]
            consumer.seek(place, 0)
            assert await consumer.position(place) == 0

    run(work)


def test_a_poll_ends_when_another_task_closes(bootstrap: str, new_topic: NewTopicName) -> None:
    topic = new_topic(1)

    async def work() -> None:
        consumer = aio.Consumer(bootstrap)
        consumer.assign({TopicPartition(topic, 0): "end"})
        polling = asyncio.create_task(consumer.poll(30))
        await asyncio.sleep(0.05)
        await consumer.close()
        with pytest.raises(Closed):
            await polling

    run(work)


def test_transactions_commit_abort_and_fence(bootstrap: str, new_topic: NewTopicName) -> None:
    topic, name = new_topic(1), unique_name("txn")

    async def fail(producer: aio.Producer) -> None:
        async with producer.transaction():
            await (await producer.send(topic, b"dropped"))
            raise RuntimeError("the work failed")

    async def work() -> None:
        async with aio.Producer(bootstrap, transactional_id=name) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await producer.send(topic, b"kept")
            with pytest.raises(RuntimeError):
                await fail(producer)
            await producer.begin_transaction()
            await producer.send(topic, b"left open")
            opened = await producer.detach_transaction()
        async with aio.Admin(bootstrap) as admin:
            assert await admin.end_transactions([opened], commit=True) == {opened: None}
        async with aio.Producer(bootstrap, transactional_id=name) as older:
            await older.init_transactions()
            async with aio.Producer(bootstrap, transactional_id=name) as newer:
                await newer.init_transactions()
            await older.begin_transaction()
            with pytest.raises((ProducerFenced, TransactionFailed)):
                await (await older.send(topic, b"late"))
        async with aio.Consumer(bootstrap, isolation_level="read_committed") as consumer:
            consumer.assign({TopicPartition(topic, 0): "start"})
            assert [record.value for record in await take(consumer, 2)] == [b"kept", b"left open"]

    run(work)


def test_many_admin_calls_are_under_way_at_once(bootstrap: str, new_topic: NewTopicName) -> None:
    topics = [new_topic(1) for _ in range(5)]

    async def work() -> None:
        async with aio.Admin(bootstrap) as admin:
            found = await asyncio.gather(*(admin.topic(name) for name in topics))
            assert [topic.name for topic in found] == topics
            with pytest.raises(UnknownTopic):
                await admin.topic("no-such-topic")

    run(work)


def test_a_full_buffer_waits_then_raises_and_close_0_fails_what_is_left(
    bootstrap: str, new_topic: NewTopicName
) -> None:
    topic = new_topic(1)
    told: list[ClientError | None] = []

    async def work() -> None:
        producer = aio.Producer(bootstrap, linger_ms=60_000, buffer_memory=3000, max_block_ms=5_000)
        await producer.send(topic, b"x" * 500, on_delivery=lambda _, error: told.append(error))
        for _ in range(20):
            await producer.send(topic, b"x" * 1000)  # waits for room, which ends the lingering
        waiting: Any = await producer.send(topic, b"y")
        await producer.close(0)
        with pytest.raises(Closed):
            await waiting
        with pytest.raises(Closed):
            await producer.send(topic, b"z")
        async with aio.Producer("127.0.0.1:1", max_block_ms=200) as lost:
            with pytest.raises(ClientError):
                await lost.send(topic, b"")

    run(work)
    assert told == [None]


def test_a_stalled_broker_fills_the_buffer_and_the_loop_goes_on() -> None:
    with wired_broker() as wired:
        wired.create_topic("stalled")

        async def fill(producer: aio.Producer) -> None:
            for _ in range(10):
                await producer.send("stalled", b"x" * 1000)

        async def work() -> None:
            ticks = 0

            async def tick() -> None:
                nonlocal ticks
                while True:
                    ticks += 1
                    await asyncio.sleep(0.01)

            ticking = asyncio.create_task(tick())
            settings = {"buffer.memory": 3000, "max.block.ms": 1_500, "linger.ms": 0}
            producer = aio.Producer(wired.bootstrap, **settings)  # type: ignore[arg-type]
            await (await producer.send("stalled", b"first"))
            wired.wire.stall("Produce")
            before = ticks
            with pytest.raises(BufferFull):
                await fill(producer)
            assert ticks - before >= 10, "the loop stood still"
            await producer.close(0)
            ticking.cancel()

        run(work)


def test_broken_connections_and_a_killed_broker_lose_repeat_and_swap_nothing() -> None:
    with wired_broker() as wired:
        wired.create_topic("faults")
        place = TopicPartition("faults", 0)
        quick = {"retry.backoff.ms": 5, "retry.backoff.max.ms": 50, "linger.ms": 0}

        async def work() -> None:
            loop = asyncio.get_running_loop()
            async with aio.Consumer(wired.bootstrap, **QUICK) as consumer:  # type: ignore[arg-type]
                consumer.assign({place: "start"})
                reading = asyncio.create_task(take(consumer, 300))
                async with aio.Producer(wired.bootstrap, batch_size=100, **quick) as producer:
                    waiting = []
                    for number in range(300):
                        waiting.append(await producer.send("faults", b"%d" % number, partition=0))
                        match number:
                            case 50:
                                wired.wire.lose_answer("Produce", times=2)
                            case 100:
                                wired.wire.cut("Fetch")
                            case 150:
                                await loop.run_in_executor(None, wired.kill)
                                loop.run_in_executor(None, wired.restart)
                            case _ if number % 10 == 0:
                                await asyncio.sleep(0.005)
                    deliveries = await asyncio.gather(*waiting)
                assert [delivery.offset for delivery in deliveries] == list(range(300))
                assert [record.value for record in await reading] == [b"%d" % each for each in range(300)]

        asyncio.run(asyncio.wait_for(work(), 60))


def test_polls_that_are_cancelled_lose_nothing(bootstrap: str, new_topic: NewTopicName) -> None:
    topic, group = new_topic(2), unique_name("group")

    async def work() -> None:
        async with aio.Producer(bootstrap) as producer:
            for number in range(400):
                await producer.send(topic, b"%d" % number, partition=number % 2)
        found: list[bytes] = []
        async with aio.Consumer(bootstrap, group_id=group, max_poll_records=7, **QUICK) as consumer:  # type: ignore[arg-type]
            consumer.subscribe([topic])
            pause = 0.0005
            while len(found) < 400:
                with contextlib.suppress(TimeoutError):
                    found += [record.value for record in await asyncio.wait_for(consumer.poll(5), pause)]
                pause = min(pause * 1.2, 0.05)
        for parity in (0, 1):
            mine = [int(value) for value in found if int(value) % 2 == parity]
            assert mine == list(range(parity, 400, 2))

    run(work)
