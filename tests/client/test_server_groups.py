"""Consumers in groups of the new protocol (group.protocol=consumer, KIP-848), on a real broker."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka import Consumer as ConfluentConsumer

from client.conftest import NewTopicName
from compat.broker import unique_name
from ottla.client import Producer, RebalanceListener, TopicPartition, aio
from ottla.client.admin import Admin
from ottla.client.consumer import Consumer
from ottla.client.errors import CommitFailed, InvalidSetting
from ottla.client.fetched import ConsumedRecord

NEW: dict[str, object] = {
    "group.protocol": "consumer",
    "auto.offset.reset": "earliest",
    "fetch.max.wait.ms": 50,
}
SECONDS = 60


@pytest.fixture
def group(admin: Admin) -> str:
    return unique_name("group")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def member(stack: ExitStack, bootstrap: str, group: str, **settings: object) -> Consumer:
    merged: dict[str, object] = {**NEW, "group.id": group, **settings}
    return stack.enter_context(Consumer(bootstrap, strategy=(), **merged))


def fill(bootstrap: str, topic: str, partitions: int, count: int) -> None:
    with Producer(bootstrap) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, partition=number % partitions)


def poll_until(members: list[Consumer], condition: Callable[[], bool]) -> list[ConsumedRecord]:
    records: list[ConsumedRecord] = []
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, [each.assignment() for each in members]
        for each in members:
            records += each.poll(0.05)
    return records


def shares(members: list[Consumer]) -> list[int]:
    return sorted(len(each.assignment()) for each in members)


class Diary(RebalanceListener):
    def __init__(self) -> None:
        self.lines: list[tuple[str, int]] = []

    def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.lines.append(("revoked", len(partitions)))

    def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.lines.append(("assigned", len(partitions)))

    def on_partitions_lost(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.lines.append(("lost", len(partitions)))


def test_members_come_and_go_and_every_record_is_read_once(
    stack: ExitStack, bootstrap: str, admin: Admin, new_topic: NewTopicName, group: str
) -> None:
    topic, diary = new_topic(4), Diary()
    fill(bootstrap, topic, 4, 40)
    first = member(stack, bootstrap, group)
    first.subscribe([topic], diary)
    records = poll_until([first], lambda: len(first.assignment()) == 4)
    second = member(stack, bootstrap, group)
    second.subscribe([topic])
    records += poll_until([first, second], lambda: shares([first, second]) == [2, 2])
    assert admin.group(group).state == "Stable" or admin.group(group).members
    fill(bootstrap, topic, 4, 40)
    deadline = time.monotonic() + SECONDS
    while len(records) < 80:
        assert time.monotonic() < deadline
        records += first.poll(0.05) + second.poll(0.05)
    assert len({(record.partition, record.offset) for record in records}) == len(records) == 80
    second.close()
    poll_until([first], lambda: len(first.assignment()) == 4)
    first.close()
    assert [line for line in diary.lines if line[1]] == [
        ("assigned", 4),
        ("revoked", 2),
        ("assigned", 2),
        ("revoked", 4),
    ]


def test_a_group_goes_on_where_it_committed(
    stack: ExitStack, bootstrap: str, new_topic: NewTopicName, group: str
) -> None:
    topic = new_topic(1)
    fill(bootstrap, topic, 1, 20)
    place = TopicPartition(topic, 0)
    with Consumer(bootstrap, strategy=(), **{**NEW, "group.id": group, "enable.auto.commit": False}) as first:
        first.subscribe([topic])
        for record in first:
            if record.offset == 9:
                first.commit()
                break
        metadata = first.group_metadata()
        assert metadata.generation > 0
        assert metadata.member_id
    again = member(stack, bootstrap, group, enable_auto_commit=False)
    again.subscribe([topic])
    assert next(iter(again)).offset == 10
    with Producer(bootstrap, transactional_id=unique_name("txn")) as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send_offsets_to_transaction({place: 15}, again.group_metadata())
    assert again.committed([place])[place].offset == 15


def test_a_pattern_finds_new_topics(stack: ExitStack, bootstrap: str, admin: Admin, group: str) -> None:
    prefix = unique_name("pattern")
    admin.create_topic(f"{prefix}-1", partitions=1)
    consumer = member(stack, bootstrap, group, metadata_max_age_ms=200)
    consumer.subscribe(re.compile(f"^{prefix}-[0-9]$"))
    poll_until([consumer], lambda: len(consumer.assignment()) == 1)
    admin.create_topic(f"{prefix}-2", partitions=2)
    admin.create_topic(f"{prefix}-other", partitions=1)
    poll_until([consumer], lambda: len(consumer.assignment()) == 3)


def test_a_stuck_member_leaves_and_its_commits_are_refused(
    stack: ExitStack, bootstrap: str, new_topic: NewTopicName, group: str
) -> None:
    topic, diary = new_topic(2), Diary()
    stuck = member(stack, bootstrap, group, max_poll_interval_ms=1000, enable_auto_commit=False)
    stuck.subscribe([topic], diary)
    poll_until([stuck], lambda: len(stuck.assignment()) == 2)
    other = member(stack, bootstrap, group)
    other.subscribe([topic])
    poll_until([other], lambda: len(other.assignment()) == 2)  # while the first does not poll
    with pytest.raises(CommitFailed):
        stuck.commit({TopicPartition(topic, 0): 5})
    poll_until([stuck, other], lambda: shares([stuck, other]) == [1, 1])
    assert ("lost", 2) in diary.lines


def test_a_static_member_returns_to_its_partitions(
    stack: ExitStack, bootstrap: str, new_topic: NewTopicName, group: str
) -> None:
    topic, diary = new_topic(2), Diary()
    first = member(stack, bootstrap, group, group_instance_id="first")
    second = member(stack, bootstrap, group, group_instance_id="second")
    first.subscribe([topic], diary)
    second.subscribe([topic])
    poll_until([first, second], lambda: shares([first, second]) == [1, 1])
    before, heard = second.assignment(), len(diary.lines)
    second.close()
    again = member(stack, bootstrap, group, group_instance_id="second")
    again.subscribe([topic])
    poll_until([first, again], lambda: again.assignment() == before)
    assert len(diary.lines) == heard


def test_a_group_is_shared_with_a_stock_consumer(
    stack: ExitStack, bootstrap: str, new_topic: NewTopicName, group: str
) -> None:
    topic = new_topic(4)
    ours = member(stack, bootstrap, group)
    ours.subscribe([topic])
    poll_until([ours], lambda: len(ours.assignment()) == 4)
    stock = ConfluentConsumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": "consumer"}
    )
    stock.subscribe([topic])
    deadline = time.monotonic() + SECONDS
    while len(stock.assignment()) != 2 or len(ours.assignment()) != 2:
        assert time.monotonic() < deadline
        stock.poll(0.05)
        ours.poll(0.05)
    stock.close()
    poll_until([ours], lambda: len(ours.assignment()) == 4)


def test_under_asyncio_too(bootstrap: str, new_topic: NewTopicName, group: str) -> None:
    topic = new_topic(2)
    fill(bootstrap, topic, 2, 20)

    async def work() -> None:
        found: set[tuple[int, int]] = set()
        async with aio.Consumer(bootstrap, strategy=(), **{**NEW, "group.id": group}) as consumer:
            consumer.subscribe([topic])
            async for record in consumer:
                found.add((record.partition, record.offset))
                if len(found) == 20:
                    break

    asyncio.run(asyncio.wait_for(work(), SECONDS))


def test_a_killed_member_is_replaced_and_nothing_is_lost(
    stack: ExitStack, bootstrap: str, new_topic: NewTopicName, group: str
) -> None:
    """It dies with records in hand; its successor has its name and partitions when its session is over."""
    topic = new_topic(1)
    fill(bootstrap, topic, 1, 10)
    script = (
        "import os, signal, sys\nfrom ottla.client import Consumer\n"
        "c = Consumer(sys.argv[1], group_id=sys.argv[2], group_protocol='consumer',"
        " group_instance_id='one', auto_offset_reset='earliest', enable_auto_commit=False)\n"
        "c.subscribe([sys.argv[3]])\n"
        "for record in c:\n"
        "    if record.offset == 4: c.commit()\n"
        "    if record.offset == 7: os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [sys.executable, "-c", script, bootstrap, group, topic]
    assert subprocess.run(command, timeout=60, env=os.environ).returncode == -signal.SIGKILL
    successor = member(stack, bootstrap, group, group_instance_id="one")
    successor.subscribe([topic])
    assert next(iter(successor)).offset == 5


def test_settings_that_brokers_decide_are_refused(bootstrap: str) -> None:
    for name, value in (("session.timeout.ms", 10_000), ("partition.assignment.strategy", "range")):
        with pytest.raises(InvalidSetting, match=r"the brokers decide this; leave it out"):
            Consumer(bootstrap, strategy=(), **{**NEW, "group.id": "g", name: value})
