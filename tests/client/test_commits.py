"""Where a group goes on: committed every so often, with a note, or kept in a database of the user's own."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from client.conftest import NewTopicName
from compat.broker import unique_name
from ottla.client.admin import Admin
from ottla.client.admin_values import CommittedOffset
from ottla.client.consumer import Consumer
from ottla.client.group import RebalanceListener
from ottla.client.producer import Producer
from ottla.model.topics import TopicPartition

QUICK = {"auto.offset.reset": "earliest", "heartbeat.interval.ms": 100, "fetch.max.wait.ms": 50}
SECONDS = 60


def fill(bootstrap: str, topic: str, partitions: int, count: int) -> None:
    with Producer(bootstrap) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, partition=number % partitions)


def wait_until(condition: Callable[[], bool], meanwhile: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        meanwhile()


def test_polls_commit_every_interval(bootstrap: str, new_topic: NewTopicName, admin: Admin) -> None:
    topic, group = new_topic(), unique_name("group")
    place = TopicPartition(topic, 0)
    fill(bootstrap, topic, 1, 10)
    settings: dict[str, object] = {**QUICK, "group.id": group, "auto.commit.interval.ms": 50}
    with Consumer(bootstrap, strategy=(), **settings) as consumer:
        consumer.subscribe([topic])
        for end in (10, 20):
            wait_until(
                lambda end=end: admin.group_offsets(group).get(place, CommittedOffset(0)).offset == end,  # type: ignore[misc]
                lambda: consumer.poll(0.05),
            )
            fill(bootstrap, topic, 1, 10)


def test_nothing_is_committed_before_the_interval_is_over(
    bootstrap: str, new_topic: NewTopicName, admin: Admin
) -> None:
    topic, group = new_topic(), unique_name("group")
    fill(bootstrap, topic, 1, 10)
    settings: dict[str, object] = {**QUICK, "group.id": group, "auto.commit.interval.ms": 3_600_000}
    with Consumer(bootstrap, strategy=(), **settings) as consumer:
        consumer.subscribe([topic])
        wait_until(lambda: bool(consumer.poll(0.1)), lambda: None)
        for _ in range(10):
            consumer.poll(0.02)
        assert admin.group_offsets(group) == {}
    assert admin.group_offsets(group)[TopicPartition(topic, 0)].offset == 10  # by close


def test_a_commit_carries_a_note(bootstrap: str, new_topic: NewTopicName) -> None:
    first, second = (TopicPartition(new_topic(), 0) for _ in range(2))
    with Consumer(bootstrap, group_id=unique_name("group"), enable_auto_commit=False) as consumer:
        consumer.assign([first, second])
        consumer.commit({first: CommittedOffset(3, metadata="by hand")})
        heard: list[object] = []
        consumer.commit_async(
            {second: CommittedOffset(4, metadata="later")}, lambda _, error: heard.append(error)
        )
        wait_until(lambda: bool(heard), lambda: consumer.poll(0.05))
        found = consumer.committed([first, second])
    assert heard == [None]
    assert {place: (each.offset, each.metadata) for place, each in found.items()} == {
        first: (3, "by hand"),
        second: (4, "later"),
    }


class Shop(RebalanceListener):
    """A member whose results and offsets are one transaction of its database; brokers are told nothing."""

    def __init__(self, bootstrap: str, group: str, topic: str, database: Path) -> None:
        self.database = sqlite3.connect(database)
        settings: dict[str, object] = {**QUICK, "group.id": group, "max.poll.records": 7}
        self.consumer = Consumer(bootstrap, strategy=(), enable_auto_commit=False, **settings)
        self.consumer.subscribe([topic], self)

    def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
        for place in partitions:
            row = self.database.execute(
                "SELECT offset FROM offsets WHERE partition = ?", (place.partition,)
            ).fetchone()
            self.consumer.seek(place, row[0] if row else 0)

    def work(self) -> None:
        with self.database:
            for record in self.consumer.poll(0.05):
                place, offset = record.partition, record.offset
                self.database.execute("INSERT INTO results VALUES (?, ?)", (place, offset))
                self.database.execute("INSERT OR REPLACE INTO offsets VALUES (?, ?)", (place, offset + 1))

    def close(self) -> None:
        self.consumer.close()
        self.database.close()


def test_results_and_offsets_in_one_database_count_every_record_once(
    bootstrap: str, new_topic: NewTopicName, admin: Admin, tmp_path: Path
) -> None:
    group, topic, path = unique_name("group"), new_topic(2), tmp_path / "shop.db"
    fill(bootstrap, topic, 2, 400)
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE results (partition INTEGER, offset INTEGER)")
        database.execute("CREATE TABLE offsets (partition INTEGER PRIMARY KEY, offset INTEGER)")
        database.commit()

        def count() -> int:
            (found,) = database.execute("SELECT COUNT(*) FROM results").fetchone()
            return int(found)

        first = Shop(bootstrap, group, topic, path)
        wait_until(lambda: count() >= 50, first.work)
        second = Shop(bootstrap, group, topic, path)  # takes one partition over, in the middle

        def both() -> None:
            first.work()
            second.work()

        wait_until(lambda: len(second.consumer.assignment()) == 1, both)
        wait_until(lambda: count() >= 150, both)
        first.close()  # and gives its own away
        wait_until(lambda: count() >= 400, second.work)
        second.close()
        found = database.execute("SELECT partition, offset FROM results ORDER BY 1, 2").fetchall()
    assert found == [(partition, offset) for partition in range(2) for offset in range(200)]
    assert admin.group_offsets(group) == {}
