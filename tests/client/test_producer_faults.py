"""Broken connections, wrong leaders, lost answers, killed brokers: nothing lost, swapped or written twice."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from client.wired import WiredBroker, wired_broker
from ottla.client.delivery import SendFuture
from ottla.client.errors import BufferFull, ClientError, Closed, TimedOut
from ottla.client.producer import Producer
from ottla.client.reading import read
from ottla.model.errors import ErrorCode

QUICK = {"retry.backoff.ms": 5, "retry.backoff.max.ms": 50, "linger.ms": 0}
_names = itertools.count()


@pytest.fixture(scope="module")
def wired() -> Iterator[WiredBroker]:
    with wired_broker() as broker:
        yield broker


@pytest.fixture
def topic(wired: WiredBroker) -> Iterator[str]:
    yield wired.create_topic(f"faults-{next(_names)}", partitions=2)
    assert wired.wire.faults_left == 0, "not every fault happened"


def values(wired: WiredBroker, topic: str, partition: int = 0) -> list[bytes | None]:
    with read(wired.bootstrap, topic, partitions=[partition]) as reading:
        return [record.value for record in reading]


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def wait_for_topic(producer: Producer, topic: str) -> None:
    """However long a busy machine takes to tell of it: afterwards max.block.ms is about the buffer alone."""
    for _ in range(300):
        with suppress(TimedOut):
            producer.partition_count(topic)
            return


def send_numbers(producer: Producer, topic: str, count: int) -> list[SendFuture]:
    """Small batches, several in flight."""
    futures = []
    for number in range(count):
        futures.append(producer.send(topic, b"%d" % number, partition=0))
        if number % 3 == 0:
            time.sleep(0.001)
    return futures


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    ],
)
def test_errors_that_pass_cost_nothing(wired: WiredBroker, topic: str, code: ErrorCode) -> None:
    with Producer(wired.bootstrap, batch_size=60, **QUICK) as producer:
        producer.send(topic, b"other", partition=1).result(30)
        wired.wire.fail("Produce", code, times=4)
        futures = send_numbers(producer, topic, 60)
        assert [future.result(60).offset for future in futures] == list(range(60))
    assert values(wired, topic) == numbers(60)


@pytest.mark.parametrize("fault", ["cut", "lose_answer", "garble"])
def test_a_broken_connection_neither_loses_nor_repeats_nor_swaps(
    wired: WiredBroker, topic: str, fault: str
) -> None:
    with Producer(wired.bootstrap, batch_size=60, **QUICK) as producer:
        producer.send(topic, b"other", partition=1).result(30)
        getattr(wired.wire, fault)("Produce", times=3)
        futures = send_numbers(producer, topic, 60)
        assert [future.result(60).offset for future in futures] == list(range(60))
    assert values(wired, topic) == numbers(60)


def test_a_stalled_broker_is_asked_again_after_the_request_timeout(wired: WiredBroker, topic: str) -> None:
    with Producer(wired.bootstrap, request_timeout_ms=1500, **QUICK) as producer:
        producer.send(topic, b"other", partition=1).result(30)
        wired.wire.stall("Produce")
        futures = send_numbers(producer, topic, 10)
        assert [future.result(60).offset for future in futures] == list(range(10))
    assert values(wired, topic) == numbers(10)


def test_an_error_that_does_not_pass_fails_only_its_batch(wired: WiredBroker, topic: str) -> None:
    with Producer(wired.bootstrap, **QUICK) as producer:
        assert producer.send(topic, b"first", partition=0).result(30).offset == 0
        wired.wire.fail("Produce", ErrorCode.INVALID_RECORD)
        with pytest.raises(ClientError, match="INVALID_RECORD"):
            producer.send(topic, b"refused", partition=0).result(30)
        for number in range(5):  # in a new epoch
            assert producer.send(topic, b"%d" % number, partition=0).result(30).offset == 1 + number
        assert producer.send(topic, b"elsewhere", partition=1).result(30).offset == 0
    assert values(wired, topic) == [b"first", *numbers(5)]


def test_a_producer_id_is_asked_for_until_it_comes(wired: WiredBroker, topic: str) -> None:
    wired.wire.fail("InitProducerId", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=2)
    wired.wire.cut("InitProducerId")
    with Producer(wired.bootstrap, **QUICK) as producer:
        assert producer.send(topic, b"", partition=0).result(30).offset == 0


def test_a_producer_without_the_right_fails_its_records(wired: WiredBroker, topic: str) -> None:
    wired.wire.fail("InitProducerId", ErrorCode.CLUSTER_AUTHORIZATION_FAILED, times=1_000)
    with Producer(wired.bootstrap, **QUICK) as producer:
        with pytest.raises(ClientError, match="CLUSTER_AUTHORIZATION_FAILED"):
            producer.send(topic, b"", partition=0).result(30)
        wired.wire.forget_faults()  # somebody gives it the right
        assert producer.send(topic, b"", partition=0).result(30).offset == 0


def test_a_record_is_tried_again_as_often_as_retries_says(wired: WiredBroker, topic: str) -> None:
    with Producer(wired.bootstrap, retries=2, **QUICK) as producer:
        assert producer.send(topic, b"first", partition=0).result(30).offset == 0
        wired.wire.fail("Produce", ErrorCode.NOT_LEADER_OR_FOLLOWER, times=2)
        assert producer.send(topic, b"second", partition=0).result(30).offset == 1
        wired.wire.fail("Produce", ErrorCode.NOT_LEADER_OR_FOLLOWER, times=3)
        with pytest.raises(ClientError, match="NOT_LEADER_OR_FOLLOWER"):
            producer.send(topic, b"given up", partition=0).result(30)
        assert producer.send(topic, b"third", partition=0).result(30).offset == 2
    assert values(wired, topic) == [b"first", b"second", b"third"]


def test_a_stalled_broker_fills_the_buffer_and_nothing_is_dropped(wired: WiredBroker, topic: str) -> None:
    limits = {"buffer.memory": 3_000, "max.block.ms": 100, "request.timeout.ms": 1_500}
    with Producer(wired.bootstrap, **limits, **QUICK) as producer:  # type: ignore[arg-type]
        wait_for_topic(producer, topic)
        producer.send(topic, b"before", partition=0).result(30)
        wired.wire.stall("Produce")
        futures: list[SendFuture] = []

        def send_many() -> None:
            while len(futures) < 1_000:
                futures.append(producer.send(topic, b"%d" % len(futures), partition=0))

        with pytest.raises(BufferFull, match=r"buffer\.memory"):
            send_many()
        assert [future.result(30).offset for future in futures] == list(range(1, 1 + len(futures)))
    assert values(wired, topic) == [b"before", *numbers(len(futures))]


def test_flush_and_close_wait_no_longer_than_they_are_told(wired: WiredBroker, topic: str) -> None:
    with Producer(wired.bootstrap, request_timeout_ms=1500, **QUICK) as producer:
        producer.send(topic, b"before", partition=0).result(30)
        wired.wire.stall("Produce")
        future = producer.send(topic, b"after", partition=0)
        with pytest.raises(TimedOut):
            producer.flush(0.1)
        assert not future.done()
        producer.flush(30)
        assert future.done()
        wired.wire.stall("Produce")
        lost = producer.send(topic, b"too late", partition=0)
        producer.close(0.1)
        assert isinstance(lost.exception(0), Closed)
    assert values(wired, topic)[:2] == [b"before", b"after"]


def test_a_killed_broker_loses_nothing_that_was_acknowledged(wired: WiredBroker, topic: str) -> None:
    with Producer(wired.bootstrap, batch_size=200, **QUICK) as producer:
        futures = send_numbers(producer, topic, 100)
        wired.kill()
        futures += [producer.send(topic, b"%d" % number, partition=0) for number in range(100, 200)]
        restarter = threading.Timer(0.3, wired.restart)
        restarter.start()
        futures += [producer.send(topic, b"%d" % number, partition=0) for number in range(200, 300)]
        offsets = [future.result(60).offset for future in futures]
        restarter.join()
    assert offsets == list(range(300))
    assert values(wired, topic) == numbers(300)


def test_records_that_took_too_long_fail_with_the_reason_and_the_rest_goes_on(
    wired: WiredBroker, topic: str
) -> None:
    with Producer(wired.bootstrap, delivery_timeout_ms=1500, request_timeout_ms=1000, **QUICK) as producer:
        assert producer.send(topic, b"before", partition=0).result(30).offset == 0
        wired.kill()
        late = [producer.send(topic, b"late", partition=0) for _ in range(3)]
        for future in late:
            with pytest.raises(TimedOut, match="not delivered within 1500 ms"):
                future.result(30)
        wired.restart()
        deadline = time.monotonic() + 60
        while True:  # until the producer has found it again
            try:
                producer.send(topic, b"after", partition=0).result(30)
                break
            except TimedOut:
                assert time.monotonic() < deadline
    found = values(wired, topic)
    assert found[0] == b"before"
    assert found[-1] == b"after"


def test_without_idempotence_nothing_is_lost_either(wired: WiredBroker, topic: str) -> None:
    with Producer(wired.bootstrap, acks="1", batch_size=60, **QUICK) as producer:
        producer.send(topic, b"other", partition=1).result(30)
        wired.wire.cut("Produce", times=2)
        wired.wire.lose_answer("Produce", times=2)
        for future in send_numbers(producer, topic, 60):
            future.result(60)
    assert set(values(wired, topic)) == set(numbers(60))


def test_one_request_in_flight_keeps_order_without_idempotence(wired: WiredBroker, topic: str) -> None:
    settings = {"max.in.flight.requests.per.connection": 1, "enable.idempotence": False, **QUICK}
    with Producer(wired.bootstrap, batch_size=60, **settings) as producer:  # type: ignore[arg-type]
        producer.send(topic, b"other", partition=1).result(30)
        wired.wire.fail("Produce", ErrorCode.NOT_LEADER_OR_FOLLOWER, times=3)
        wired.wire.cut("Produce", times=2)
        for future in send_numbers(producer, topic, 60):
            future.result(60)
    assert values(wired, topic) == numbers(60)


def run_random_faults(wired: WiredBroker, topic: str, seed: int) -> None:
    chance = random.Random(seed)
    codes = [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.REQUEST_TIMED_OUT,
    ]
    futures = []
    with Producer(wired.bootstrap, batch_size=80, **QUICK) as producer:
        for number in range(200):
            futures.append(producer.send(topic, b"%d" % number, partition=0))
            match chance.randrange(30):
                case 0:
                    wired.wire.cut("Produce")
                case 1:
                    wired.wire.lose_answer("Produce")
                case 2:
                    wired.wire.fail("Produce", chance.choice(codes), times=chance.randrange(1, 3))
                case 3:
                    wired.wire.cut_all()
                case 4:
                    wired.wire.lose_answer("Metadata")
                case 5 | 6:
                    time.sleep(0.01)
        offsets = [future.result(60).offset for future in futures]
    assert offsets == list(range(200))
    assert values(wired, topic) == numbers(200)


@pytest.mark.parametrize("seed", range(4))
def test_random_faults_never_lose_repeat_or_swap(wired: WiredBroker, seed: int) -> None:
    run_random_faults(wired, wired.create_topic(f"random-{seed}-{next(_names)}"), seed)
    wired.wire.forget_faults()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_random_faults_never_lose_repeat_or_swap(wired: WiredBroker, seed: int) -> None:
    run_random_faults(wired, wired.create_topic(f"random-{seed}-{next(_names)}"), seed)
    wired.wire.forget_faults()
