"""What a group reads may move to other racks, or be out of sight for a while."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

import pytest

from client.conftest import QUICK_GROUPS
from client.wired import WiredBroker, wired_broker
from ottla.client import Admin, Consumer, Producer
from ottla.client.membership import GroupTopics
from ottla.model.topics import TopicPartition

AGE_MS = 100
SECONDS = 60
TOPIC = "topic"


@pytest.fixture
def wired() -> Iterator[WiredBroker]:
    with wired_broker({**QUICK_GROUPS, "broker.rack": "here"}) as broker:
        broker.create_topic(TOPIC, partitions=2)
        yield broker


def member(wired: WiredBroker, **settings: object) -> Consumer:
    common: dict[str, object] = {
        "group.id": "group",
        "auto.offset.reset": "earliest",
        "metadata.max.age.ms": AGE_MS,
        "fetch.max.wait.ms": 50,
        "retry.backoff.ms": 10,
    }
    return Consumer(wired.bootstrap, strategy=(), **common | settings)


def poll_until(consumer: Consumer, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        consumer.poll(0.02)


def look_at_topics(wired: WiredBroker, consumer: Consumer, times: int = 5) -> None:
    """Until the leader has looked so often whether topics have changed."""
    seen = wired.wire.seen["Metadata"]
    poll_until(consumer, lambda: wired.wire.seen["Metadata"] >= seen + 2 * times)  # the consumer's own too


def restart_in(wired: WiredBroker, rack: str) -> None:
    wired.kill()
    wired.broker.settings["broker.rack"] = rack
    wired.restart()


def test_a_group_rebalances_when_replicas_have_moved_to_another_rack(wired: WiredBroker) -> None:
    with member(wired, client_rack="here") as consumer:
        consumer.subscribe([TOPIC])
        poll_until(consumer, lambda: len(consumer.assignment()) == 2)
        before = consumer.group_metadata().generation
        restart_in(wired, "here")
        look_at_topics(wired, consumer)
        assert consumer.group_metadata().generation == before
        restart_in(wired, "there")
        poll_until(consumer, lambda: consumer.group_metadata().generation > before)
        poll_until(consumer, lambda: len(consumer.assignment()) == 2)


def test_members_without_racks_do_not_care_where_replicas_are(wired: WiredBroker) -> None:
    with member(wired) as consumer:
        consumer.subscribe([TOPIC])
        poll_until(consumer, lambda: len(consumer.assignment()) == 2)
        before = consumer.group_metadata().generation
        restart_in(wired, "there")
        look_at_topics(wired, consumer)
        assert consumer.group_metadata().generation == before


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("topics", [[TOPIC], re.compile("^topic$")], ids=["by name", "by pattern"])
def test_polls_go_on_while_no_broker_tells_of_the_topics(
    wired: WiredBroker, topics: list[str] | re.Pattern[str], protocol: str
) -> None:
    with member(wired, group_protocol=protocol) as consumer:
        consumer.subscribe(topics)
        poll_until(consumer, lambda: len(consumer.assignment()) == 2)
        wired.kill()
        until = time.monotonic() + 5 * AGE_MS / 1000
        while time.monotonic() < until:
            assert consumer.poll(0.05) == []
        wired.restart()
        with Producer(wired.bootstrap) as producer:
            producer.send(TOPIC, b"after", partition=1).result(30)
        poll_until(consumer, lambda: consumer.position(TopicPartition(TOPIC, 1)) == 1)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_pattern_may_find_nothing_for_a_while(wired: WiredBroker, protocol: str) -> None:
    with Admin(wired.bootstrap) as admin, member(wired, group_protocol=protocol) as consumer:
        consumer.subscribe(re.compile("^topic"))
        poll_until(consumer, lambda: len(consumer.assignment()) == 2)
        admin.delete_topic(TOPIC)
        poll_until(consumer, lambda: not consumer.assignment())
        with member(wired, group_protocol=protocol) as other:  # is not kept waiting by the one without topics
            wired.create_topic("other")
            other.subscribe(["other"])
            deadline = time.monotonic() + SECONDS
            while not other.assignment():
                assert time.monotonic() < deadline
                other.poll(0.02)
                consumer.poll(0.02)
        wired.create_topic("topic-again", partitions=3)
        poll_until(consumer, lambda: len(consumer.assignment()) == 3)


def topics_in(*racks: str, name: str = "t") -> GroupTopics:
    places = {TopicPartition(name, index): frozenset(each) for index, each in enumerate(racks) if each}
    return GroupTopics({name: len(racks)}, places)


@pytest.mark.parametrize(
    ("before", "now", "changed"),
    [
        (topics_in("a", "b"), topics_in("a", "b"), False),
        (topics_in("a", "b"), topics_in("b", "a"), True),
        (topics_in("a", "b"), topics_in("a", "b", "a"), True),
        (topics_in("", ""), topics_in("a", "b"), True),  # brokers have begun to tell where they are
        (topics_in("a", "b"), topics_in("", ""), True),
        (topics_in("a", "b"), GroupTopics(), False),  # gone, or out of sight
        (topics_in("a", "b"), topics_in("a", "b", name="other"), False),
        (GroupTopics(), topics_in("a"), False),
    ],
)
def test_what_makes_a_leader_assign_anew(before: GroupTopics, now: GroupTopics, changed: bool) -> None:
    assert before.have_changed(now, heed_racks=True) is changed
    if before.partition_counts == now.partition_counts:
        assert not before.have_changed(now, heed_racks=False)
