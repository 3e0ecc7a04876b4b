"""How far a group is behind, in records and in seconds, and how a backlog is drained."""

from __future__ import annotations

import time

from client.conftest import NewTopicName
from compat.broker import unique_name
from ottla.client import Admin, Consumer, Producer, TopicPartition
from ottla.client.patterns import backlog

SECONDS = 60


def test_a_backlog_counts_records_and_the_seconds_since_the_oldest_was_written(
    bootstrap: str, new_topic: NewTopicName, admin: Admin
) -> None:
    topic, group, now_ms = new_topic(2, retention_ms="-1"), unique_name("group"), time.time_ns() // 1_000_000
    assert backlog(bootstrap, group, topic) == (0, 0.0)
    with Producer(bootstrap) as producer:
        for number in range(10):  # a hundred seconds apart, the last one just now
            producer.send(topic, b"", partition=0, timestamp_ms=now_ms - 100_000 * (9 - number))
        producer.send(topic, b"", partition=1, timestamp_ms=now_ms - 250_000)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    for commits, records, seconds in (
        ({}, 11, 900),
        ({first: 4}, 7, 500),
        ({first: 8}, 3, 250),
        ({second: 1}, 2, 100),
    ):
        if commits:
            admin.alter_group_offsets(group, commits)
        found = backlog(bootstrap, group, topic)
        assert found.records == records
        assert seconds <= found.seconds < seconds + 50
    admin.delete_records({first: 9})  # what is gone is nobody's backlog
    assert backlog(bootstrap, group, topic).records == 1
    admin.alter_group_offsets(group, {first: 10})
    assert backlog(bootstrap, group, topic) == (0, 0.0)


def test_a_backlog_is_drained_by_more_partitions_and_more_consumers(
    bootstrap: str, new_topic: NewTopicName, admin: Admin
) -> None:
    topic, group = new_topic(1), unique_name("group")
    settings: dict[str, object] = {
        "group.id": group,
        "auto.offset.reset": "earliest",
        "metadata.max.age.ms": 200,
        "heartbeat.interval.ms": 100,
        "fetch.max.wait.ms": 50,
        "max.poll.records": 20,
        "auto.commit.interval.ms": 50,
    }
    with (
        Producer(bootstrap, partitioner_class="round_robin", metadata_max_age_ms=200) as producer,
        Consumer(bootstrap, strategy=(), **settings) as one,
        Consumer(bootstrap, strategy=(), **settings) as other,
    ):
        for _ in range(100):
            producer.send(topic, b"")
        producer.flush(30)
        assert backlog(bootstrap, group, topic).records == 100
        admin.create_partitions(topic, 2)
        one.subscribe([topic])
        other.subscribe([topic])
        deadline = time.monotonic() + SECONDS
        while len(one.assignment()) != 1 or len(other.assignment()) != 1:
            assert time.monotonic() < deadline
            one.poll(0.02), other.poll(0.02)
        while producer.partition_count(topic) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        for _ in range(100):
            producer.send(topic, b"")
        producer.flush(30)
        read = {one: 0, other: 0}
        while backlog(bootstrap, group, topic).records:
            assert time.monotonic() < deadline
            for each in read:
                read[each] += len(each.poll(0.05))
    assert all(count >= 50 for count in read.values())
