"""A consumer behind a faulty wire: every record once and in order, whatever happens."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Iterator

import pytest

from client.test_consumer import poll_until
from client.wired import WiredBroker, wired_broker
from ottla.client.consumer import Consumer
from ottla.client.producer import Producer
from ottla.model.errors import ErrorCode
from ottla.model.topics import TopicPartition

QUICK = {"retry.backoff.ms": 5, "retry.backoff.max.ms": 50, "fetch.max.wait.ms": 50}
_names = itertools.count()


@pytest.fixture(scope="module")
def wired() -> Iterator[WiredBroker]:
    with wired_broker() as broker:
        yield broker


@pytest.fixture
def topic(wired: WiredBroker) -> str:
    """Two partitions with the numbers 0 to 299 in small batches."""
    name = wired.create_topic(f"read-{next(_names)}", partitions=2)
    with Producer(wired.bootstrap, batch_size=300, linger_ms=100) as producer:
        for number in range(300):
            for partition in range(2):
                producer.send(name, b"%d" % number, partition=partition)
    return name


def consumer_of(wired: WiredBroker, topic: str, **settings: object) -> Consumer:
    """Answers of about two batches, so that reading takes many of them."""
    consumer = Consumer(wired.bootstrap, **{"max.partition.fetch.bytes": 500, **QUICK, **settings})
    consumer.assign(dict.fromkeys([TopicPartition(topic, 0), TopicPartition(topic, 1)], "start"))
    return consumer


def check_all_read(consumer: Consumer) -> None:
    records = poll_until(consumer, 600)
    for partition in range(2):
        found = [record.value for record in records if record.partition == partition]
        assert found == [b"%d" % number for number in range(300)]


@pytest.mark.parametrize("fault", ["cut", "lose_answer", "garble"])
def test_a_broken_connection_costs_no_record(wired: WiredBroker, topic: str, fault: str) -> None:
    with consumer_of(wired, topic) as consumer:
        getattr(wired.wire, fault)("Fetch", times=3)
        check_all_read(consumer)
    assert wired.wire.faults_left == 0


def test_a_stalled_broker_is_asked_again(wired: WiredBroker, topic: str) -> None:
    with consumer_of(wired, topic, request_timeout_ms=1000) as consumer:
        wired.wire.stall("Fetch")
        check_all_read(consumer)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ],
)
def test_errors_that_pass_cost_no_record(wired: WiredBroker, topic: str, code: ErrorCode) -> None:
    with consumer_of(wired, topic) as consumer:
        first = consumer.poll(30)
        wired.wire.fail("Fetch", code, times=3)
        rest = poll_until(consumer, 600 - len(first))
    for partition in range(2):
        found = [record.value for record in first + rest if record.partition == partition]
        assert found == [b"%d" % number for number in range(300)]
    assert wired.wire.faults_left == 0


def test_only_what_changed_is_asked_for_in_a_session(wired: WiredBroker, topic: str) -> None:
    with consumer_of(wired, topic) as consumer:
        check_all_read(consumer)
        consumer.poll(0.2)
        (session,) = consumer._calls._fetcher._sessions.values()
        assert session.session_id != 0
        assert session.epoch > 3


def test_a_restarted_broker_is_found_again(wired: WiredBroker, topic: str) -> None:
    with consumer_of(wired, topic, max_poll_records=10) as consumer:
        first = poll_until(consumer, 50)
        wired.kill()
        restarter = threading.Timer(0.3, wired.restart)
        restarter.start()
        rest = poll_until(consumer, 600 - len(first))
        restarter.join()
    for partition in range(2):
        found = [record.value for record in first + rest if record.partition == partition]
        assert found == [b"%d" % number for number in range(300)]


@pytest.mark.parametrize("seed", range(3))
def test_random_faults_cost_no_record(wired: WiredBroker, topic: str, seed: int) -> None:
    chance = random.Random(seed)
    records = []
    with consumer_of(wired, topic, max_poll_records=7) as consumer:
        while len(records) < 600:
            records += consumer.poll(0.5)
            match chance.randrange(40):
                case 0:
                    wired.wire.cut("Fetch")
                case 1:
                    wired.wire.lose_answer("Fetch")
                case 2:
                    wired.wire.cut_all()
                case 3:
                    wired.wire.fail("Fetch", ErrorCode.NOT_LEADER_OR_FOLLOWER)
    wired.wire.forget_faults()
    for partition in range(2):
        found = [record.value for record in records if record.partition == partition]
        assert found == [b"%d" % number for number in range(300)]
