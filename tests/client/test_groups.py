"""Consumers in groups, on a real broker: sharing, commits, listeners, members that come, go and hang."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack

import pytest
from confluent_kafka import Consumer as ConfluentConsumer

from client.conftest import NewTopicName
from client.wired import wired_broker
from compat.broker import unique_name
from ottla.client.admin import Admin
from ottla.client.assignors import Assigned, Member
from ottla.client.consumer import Consumer
from ottla.client.errors import ClientError, CommitFailed, NoOffset, UnknownTopic
from ottla.client.fetched import ConsumedRecord
from ottla.client.group import RebalanceListener
from ottla.client.producer import Producer
from ottla.model.topics import TopicPartition

QUICK = {
    "auto.offset.reset": "earliest",
    "heartbeat.interval.ms": 100,
    "session.timeout.ms": 6000,
    "fetch.max.wait.ms": 50,
}
SECONDS = 60


@pytest.fixture
def group() -> str:
    return unique_name("group")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def member(stack: ExitStack, bootstrap: str, group: str, **settings: object) -> Consumer:
    merged: dict[str, object] = {**QUICK, "group.id": group, **settings}
    return stack.enter_context(Consumer(bootstrap, strategy=(), **merged))


def fill(bootstrap: str, topic: str, partitions: int, count: int) -> None:
    with Producer(bootstrap) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, partition=number % partitions)


def poll_all_until(
    members: list[Consumer], condition: Callable[[], bool], seconds: float = SECONDS
) -> list[ConsumedRecord]:
    """Polls the members in turn, as threads of their own would."""
    records: list[ConsumedRecord] = []
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, [each.assignment() for each in members]
        for each in members:
            records += each.poll(0.02)
    return records


def shares(members: list[Consumer]) -> list[int]:
    return sorted(len(each.assignment()) for each in members)


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_members_share_partitions_and_every_record_is_read_once(
    stack: ExitStack, bootstrap: str, new_topic: NewTopicName, group: str, assignor: str
) -> None:
    topic = new_topic(3)
    settings = {"partition.assignment.strategy": assignor}
    members = [member(stack, bootstrap, group, **settings) for _ in range(2)]
    for each in members:
        each.subscribe([topic])
    poll_all_until(members, lambda: shares(members) == [1, 2])
    fill(bootstrap, topic, 3, 90)
    records: list[ConsumedRecord] = []
    while len(records) < 90:
        records += poll_all_until(members, lambda: True) or members[0].poll(0.05) + members[1].poll(0.05)
    assert sorted(int(record.value or b"") for record in records) == list(range(90))

    members.append(member(stack, bootstrap, group, **settings))
    members[2].subscribe([topic])
    poll_all_until(members, lambda: shares(members) == [1, 1, 1])
    members.pop(0).close()
    poll_all_until(members, lambda: shares(members) == [1, 2])


def test_a_topic_that_is_not_there_yet_is_named_and_read_once_it_is_there(
    stack: ExitStack, bootstrap: str, admin: Admin, group: str
) -> None:
    topic = unique_name("late")
    consumer = member(stack, bootstrap, group)
    consumer.subscribe([topic])
    poll_all_until([consumer], lambda: isinstance(consumer.problem, UnknownTopic))
    assert topic in str(consumer.problem)
    admin.create_topic(topic, partitions=2)
    fill(bootstrap, topic, 2, 10)
    places = [TopicPartition(topic, index) for index in range(2)]
    poll_all_until(
        [consumer],
        lambda: bool(consumer.assignment()) and all(consumer.position(place) == 5 for place in places),
    )
    assert consumer.problem is None
    consumer.close()  # else it would try to commit to a topic that is gone
    admin.delete_topic(topic)


def test_a_group_goes_on_where_it_committed(
    stack: ExitStack, bootstrap: str, new_topic: NewTopicName, group: str
) -> None:
    topic = new_topic(1)
    target = TopicPartition(topic, 0)
    fill(bootstrap, topic, 1, 30)
    first = member(stack, bootstrap, group, enable_auto_commit=False, max_poll_records=10)
    first.subscribe([topic])
    poll_all_until([first], lambda: bool(first.assignment()) and first.position(target) == 10)
    first.commit()
    poll_all_until([first], lambda: first.position(target) == 20)  # read, but not committed
    first.close()

    second = member(stack, bootstrap, group, max_poll_records=10)
    second.subscribe([topic])
    records = poll_all_until([second], lambda: bool(second.assignment()) and second.position(target) == 20)
    assert [record.offset for record in records] == list(range(10, 20))
    second.poll(0)  # what was polled before counts as processed now
    second.close()

    third = member(stack, bootstrap, group)
    assert third.committed([target])[target].offset >= 20


def test_offsets_are_committed_one_by_one_and_asynchronously(
    stack: ExitStack, bootstrap: str, new_topic: NewTopicName, group: str
) -> None:
    topic = new_topic(2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    consumer = member(stack, bootstrap, group, enable_auto_commit=False)
    consumer.assign([first, second])
    consumer.commit({first: 7})
    assert {target: each.offset for target, each in consumer.committed([first, second]).items()} == {first: 7}
    heard: list[ClientError | None] = []
    consumer.commit_async({second: 8}, lambda _offsets, error: heard.append(error))
    poll_all_until([consumer], lambda: bool(heard))
    assert heard == [None]
    assert consumer.committed([second])[second].offset == 8


def test_without_a_commit_and_a_reset_there_is_no_place(
    stack: ExitStack, bootstrap: str, new_topic: NewTopicName, group: str
) -> None:
    consumer = member(stack, bootstrap, group, auto_offset_reset="none")
    consumer.subscribe([new_topic()])
    with pytest.raises(NoOffset, match=r"auto\.offset\.reset"):
        poll_all_until([consumer], lambda: False)


class Diary(RebalanceListener):
    def __init__(self) -> None:
        self.lines: list[tuple[str, int]] = []

    def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.lines.append(("revoked", len(partitions)))

    def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.lines.append(("assigned", len(partitions)))

    def on_partitions_lost(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.lines.append(("lost", len(partitions)))


@pytest.mark.parametrize(
    ("assignor", "lines"),
    [
        ("range", [("assigned", 4), ("revoked", 4), ("assigned", 2), ("revoked", 2)]),
        (
            "cooperative-sticky",
            [("assigned", 4), ("revoked", 2), ("revoked", 2)],
        ),
    ],
)
def test_the_listener_hears_of_every_change(
    stack: ExitStack,
    bootstrap: str,
    new_topic: NewTopicName,
    group: str,
    assignor: str,
    lines: list[tuple[str, int]],
) -> None:
    topic, diary = new_topic(4), Diary()
    settings = {"partition.assignment.strategy": assignor}
    first = member(stack, bootstrap, group, **settings)
    first.subscribe([topic], diary)
    poll_all_until([first], lambda: len(first.assignment()) == 4)
    second = member(stack, bootstrap, group, **settings)
    second.subscribe([topic])
    poll_all_until([first, second], lambda: shares([first, second]) == [2, 2])
    first.close()
    assert [line for line in diary.lines if line[1]] == lines


def test_offsets_can_be_kept_elsewhere(
    stack: ExitStack, bootstrap: str, new_topic: NewTopicName, group: str
) -> None:
    topic = new_topic(2)
    fill(bootstrap, topic, 2, 40)
    consumer = member(stack, bootstrap, group, enable_auto_commit=False)

    class Database(RebalanceListener):
        def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
            for target in partitions:
                consumer.seek(target, 15)

    consumer.subscribe([topic], Database())
    records: list[ConsumedRecord] = []
    while len(records) < 10:
        records += consumer.poll(0.2)
    assert {record.offset for record in records} == {15, 16, 17, 18, 19}


def test_a_new_topic_that_matches_the_pattern_is_read(
    stack: ExitStack, bootstrap: str, admin: Admin, group: str
) -> None:
    prefix = unique_name("pattern")
    admin.create_topic(f"{prefix}-1", partitions=1)
    consumer = member(stack, bootstrap, group, metadata_max_age_ms=200)
    consumer.subscribe(re.compile(f"^{prefix}-[0-9]$"))
    poll_all_until([consumer], lambda: len(consumer.assignment()) == 1)
    admin.create_topic(f"{prefix}-2", partitions=2)
    admin.create_topic(f"{prefix}-other", partitions=1)
    poll_all_until([consumer], lambda: len(consumer.assignment()) == 3)


def test_a_topic_that_grew_is_shared_anew(
    stack: ExitStack, bootstrap: str, admin: Admin, new_topic: NewTopicName, group: str
) -> None:
    topic = new_topic(1)
    consumer = member(stack, bootstrap, group, metadata_max_age_ms=200)
    consumer.subscribe([topic])
    poll_all_until([consumer], lambda: len(consumer.assignment()) == 1)
    admin.create_partitions(topic, 3)
    poll_all_until([consumer], lambda: len(consumer.assignment()) == 3)


def test_a_stuck_member_loses_its_partitions_and_cannot_commit(
    stack: ExitStack, bootstrap: str, new_topic: NewTopicName, group: str
) -> None:
    topic, diary = new_topic(2), Diary()
    fill(bootstrap, topic, 2, 10)
    stuck = member(stack, bootstrap, group, max_poll_interval_ms=1000, enable_auto_commit=False)
    stuck.subscribe([topic], diary)
    poll_all_until([stuck], lambda: len(stuck.assignment()) == 2)
    other = member(stack, bootstrap, group)
    other.subscribe([topic])
    poll_all_until([other], lambda: len(other.assignment()) == 2)  # while the first does not poll
    with pytest.raises(CommitFailed, match=r"max\.poll\.interval\.ms"):
        stuck.commit({TopicPartition(topic, 0): 5})
    poll_all_until([stuck, other], lambda: shares([stuck, other]) == [1, 1])
    assert ("lost", 2) in diary.lines


def test_a_static_member_returns_to_its_partitions_without_a_rebalance(
    stack: ExitStack, bootstrap: str, new_topic: NewTopicName, group: str
) -> None:
    topic, diary = new_topic(2), Diary()
    first = member(stack, bootstrap, group, group_instance_id="first")
    second = member(stack, bootstrap, group, group_instance_id="second")
    first.subscribe([topic], diary)
    second.subscribe([topic])
    poll_all_until([first, second], lambda: shares([first, second]) == [1, 1])
    before, heard = second.assignment(), len(diary.lines)
    second.close()
    again = member(stack, bootstrap, group, group_instance_id="second")
    again.subscribe([topic])
    poll_all_until([first, again], lambda: shares([first, again]) == [1, 1])
    assert again.assignment() == before
    assert len(diary.lines) == heard


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky"])
def test_a_group_is_shared_with_a_stock_consumer(
    stack: ExitStack, bootstrap: str, new_topic: NewTopicName, group: str, assignor: str
) -> None:
    topic = new_topic(4)
    stock = ConfluentConsumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "partition.assignment.strategy": assignor,
            "heartbeat.interval.ms": 100,
            "session.timeout.ms": 6000,
        }
    )
    stack.callback(stock.close)
    stock.subscribe([topic])
    ours = member(stack, bootstrap, group, **{"partition.assignment.strategy": assignor})
    ours.subscribe([topic])

    def shared() -> bool:
        stock.poll(0.02)
        return len(stock.assignment()) == 2 and len(ours.assignment()) == 2

    poll_all_until([ours], shared)
    theirs = {TopicPartition(each.topic, each.partition) for each in stock.assignment()}
    assert theirs | set(ours.assignment()) == {TopicPartition(topic, index) for index in range(4)}


def test_what_does_not_go_together_is_refused(bootstrap: str, new_topic: NewTopicName, group: str) -> None:
    topic = new_topic()
    with Consumer(bootstrap) as alone, pytest.raises(ClientError, match=r"group\.id"):
        alone.subscribe([topic])
    with Consumer(bootstrap, group_id=group) as consumer:
        with pytest.raises(TypeError):
            consumer.subscribe(topic)
        consumer.subscribe([topic])
        with pytest.raises(ClientError, match="subscribed already"):
            consumer.assign([TopicPartition(topic, 0)])
        consumer.unsubscribe()
        consumer.assign([TopicPartition(topic, 0)])
        with pytest.raises(ClientError, match="by hand"):
            consumer.subscribe([topic])


def test_a_group_survives_its_coordinator_and_reads_on(stack: ExitStack, group: str) -> None:
    with wired_broker() as wired:
        topic = wired.create_topic("survivor", partitions=2)
        fill(wired.bootstrap, topic, 2, 20)
        consumer = member(stack, wired.bootstrap, group, retry_backoff_ms=20)
        consumer.subscribe([topic])
        records: list[ConsumedRecord] = []
        while len(records) < 20:
            records += consumer.poll(0.2)
        consumer.commit()
        wired.kill()
        consumer.poll(0.3)
        wired.restart()
        fill(wired.bootstrap, topic, 2, 20)
        deadline = time.monotonic() + SECONDS
        while len(records) < 40 and time.monotonic() < deadline:
            records += consumer.poll(0.2)
        places = [(record.partition, record.offset) for record in records]
        assert sorted(places) == [(index, offset) for index in range(2) for offset in range(20)]
        consumer.close()


class Backwards:
    """A user's own assignor: everything to the last member by its id."""

    name = "backwards"
    is_cooperative = False

    def user_data(self, owned: Iterable[TopicPartition], generation: int) -> bytes | None:
        return None

    def assign(self, partition_counts: Mapping[str, int], members: Mapping[str, Member]) -> Assigned:
        everything = [
            TopicPartition(topic, index)
            for topic, count in partition_counts.items()
            for index in range(count)
        ]
        return {member_id: everything if member_id == max(members) else [] for member_id in members}


def test_users_own_assignors_are_voted_for_like_others(
    stack: ExitStack, bootstrap: str, new_topic: NewTopicName, group: str
) -> None:
    topic = new_topic(4)

    def voter(*strategy: str | Backwards) -> Consumer:
        consumer = Consumer(bootstrap, strategy=strategy, **{**QUICK, "group.id": group})  # type: ignore[arg-type]
        consumer.subscribe([topic])
        return stack.enter_context(consumer)

    members = [voter(Backwards(), "range") for _ in range(2)]
    poll_all_until(members, lambda: shares(members) == [0, 4])
    members.append(voter("range"))  # what all members have in common
    poll_all_until(members, lambda: shares(members) == [1, 1, 2])


def test_iteration_commits_only_what_was_handed_out(
    stack: ExitStack, bootstrap: str, new_topic: NewTopicName, group: str
) -> None:
    topic = new_topic(1)
    fill(bootstrap, topic, 1, 30)
    place = TopicPartition(topic, 0)
    consumer = member(stack, bootstrap, group, enable_auto_commit=False)
    consumer.subscribe([topic])
    for record in consumer:
        if record.offset == 11:
            consumer.commit()
            break
    assert consumer.position(place) == consumer.committed([place])[place].offset == 12
    assert [record.offset for record, _ in zip(consumer, range(3), strict=False)] == [12, 13, 14]
    consumer.seek(place, 5)
    assert next(iter(consumer)).offset == 5
    assert next(record.offset for record in consumer.poll(1)) == 6


def test_offsets_by_time_ends_and_lag(
    stack: ExitStack, bootstrap: str, new_topic: NewTopicName, group: str
) -> None:
    topic = new_topic(2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with Producer(bootstrap) as producer:
        for number in range(10):
            producer.send(topic, b"", partition=0, timestamp_ms=1_700_000_000_000 + 1000 * number)
    consumer = member(stack, bootstrap, group)
    consumer.assign({first: 4, second: "start"})
    found = consumer.offsets_for_times({first: 1_700_000_002_500, second: 0})
    assert found[first] is not None
    assert (found[first].offset, found[first].timestamp_ms) == (3, 1_700_000_003_000)
    assert found[second] is None
    assert consumer.offsets_for_times({first: 1_800_000_000_000})[first] is None
    assert consumer.beginning_offsets([first, second]) == {first: 0, second: 0}
    assert consumer.end_offsets([first, second]) == {first: 10, second: 0}
    assert consumer.lag() == {first: 6, second: 0}
    assert consumer.lag(first) == {first: 6}
    with pytest.raises(ValueError, match="no timestamp"):
        consumer.offsets_for_times({first: -1})
