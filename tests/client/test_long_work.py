"""Members that work, or give partitions up, for longer than a session lasts: they keep their places."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from client.conftest import NewTopicName
from compat.broker import unique_name
from ottla.client.consumer import Consumer
from ottla.client.group import RebalanceListener
from ottla.model.topics import TopicPartition

SESSION_MS = 1_000
LONG_SECONDS = 2.5
SECONDS = 60


class Member(RebalanceListener):
    """Commits 7 for what it gives up, after `seconds` of work."""

    def __init__(self, bootstrap: str, group: str, topic: str, assignor: str) -> None:
        settings: dict[str, object] = {
            "group.id": group,
            "partition.assignment.strategy": assignor,
            "heartbeat.interval.ms": 100,
            "session.timeout.ms": SESSION_MS,
            "enable.auto.commit": False,
            "fetch.max.wait.ms": 50,
        }
        self.seconds = 0.0
        self.held: set[TopicPartition] = set()
        self.lost: list[TopicPartition] = []
        self.consumer = Consumer(bootstrap, strategy=(), **settings)
        self.consumer.subscribe([topic], self)

    def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.held |= set(partitions)

    def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        if partitions:
            time.sleep(self.seconds)
            self.consumer.commit(dict.fromkeys(partitions, 7))
            self.held -= set(partitions)

    def on_partitions_lost(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.lost += partitions
        self.held -= set(partitions)

    def poll_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < deadline, (self.held, self.lost)
            self.consumer.poll(0.05)


@contextmanager
def polling(member: Member) -> Iterator[None]:
    """In a thread of its own, as another process would."""
    is_over = threading.Event()
    thread = threading.Thread(target=member.poll_until, args=(is_over.is_set,))
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        member.consumer.close()


@pytest.fixture(params=["range", "cooperative-sticky"])
def members(
    request: pytest.FixtureRequest, bootstrap: str, new_topic: NewTopicName
) -> Iterator[tuple[Member, Member]]:
    """One that has both partitions of a topic, and one that has not joined yet."""
    group, topic = unique_name("group"), new_topic(2)
    first, second = (Member(bootstrap, group, topic, request.param) for _ in range(2))
    first.poll_until(lambda: len(first.held) == 2)
    yield first, second
    first.seconds = 0
    first.consumer.close()


def test_a_member_at_work_keeps_its_place_while_another_waits_to_join(members: tuple[Member, Member]) -> None:
    busy, newcomer = members
    with polling(newcomer):
        time.sleep(LONG_SECONDS)  # max.poll.interval.ms is what it has for its work
        assert not newcomer.held
        busy.poll_until(lambda: len(busy.held) == len(newcomer.held) == 1)
    assert not busy.lost


def test_a_member_that_takes_long_to_give_partitions_up_still_commits_them(
    members: tuple[Member, Member],
) -> None:
    slow, newcomer = members
    slow.seconds = LONG_SECONDS
    with polling(newcomer):
        slow.poll_until(lambda: len(slow.held) == len(newcomer.held) == 1)
        moved = set(newcomer.held)
        assert {
            place: each.offset for place, each in slow.consumer.committed(moved).items()
        } == dict.fromkeys(moved, 7)
    assert not slow.lost
