"""Tables over broken connections and away from wrong leaders: nothing lost, swapped or written twice."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from client.test_send_arrow import numbers, values
from client.wired import WiredBroker, wired_broker
from ottla.client.errors import BufferFull, ClientError, TimedOut
from ottla.client.producer import Producer
from ottla.client.rows_delivery import RowsDelivery
from ottla.model.errors import ErrorCode

QUICK = {"retry.backoff.ms": 5, "retry.backoff.max.ms": 50, "batch.size": 2_000}
ROWS = 2_000
_names = itertools.count()


@pytest.fixture(scope="module")
def wired() -> Iterator[WiredBroker]:
    with wired_broker() as broker:
        yield broker


@pytest.fixture
def topic(wired: WiredBroker) -> Iterator[str]:
    yield wired.create_topic(f"tables-{next(_names)}", partitions=1)
    assert wired.wire.faults_left == 0, "not every fault happened"


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    ],
)
@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_errors_that_pass_cost_nothing(wired: WiredBroker, topic: str, code: ErrorCode, codec: str) -> None:
    with Producer(wired.bootstrap, compression_type=codec, **QUICK) as producer:
        producer.send_arrow(numbers(1), topic).result(30)
        wired.wire.fail("Produce", code, times=3)
        deliveries = producer.send_arrow(numbers(ROWS), topic).result(60)
    offsets = [delivery.offset for delivery in deliveries]
    assert offsets == sorted(offsets)  # type: ignore[type-var]
    assert values(wired.bootstrap, topic) == [b"0", *numbers(ROWS)["value"].to_pylist()]


@pytest.mark.parametrize("fault", ["cut", "lose_answer", "garble"])
def test_a_broken_connection_neither_loses_nor_repeats_nor_swaps(
    wired: WiredBroker, topic: str, fault: str
) -> None:
    with Producer(wired.bootstrap, **QUICK) as producer:
        producer.send_arrow(numbers(1), topic).result(30)
        getattr(wired.wire, fault)("Produce", times=2)
        producer.send_arrow(numbers(ROWS), topic).result(60)
    assert values(wired.bootstrap, topic) == [b"0", *numbers(ROWS)["value"].to_pylist()]


def test_a_refusal_is_told_by_the_future_and_the_callback(wired: WiredBroker, topic: str) -> None:
    told: list[tuple[RowsDelivery | None, ClientError | None]] = []
    with Producer(wired.bootstrap, **QUICK) as producer:
        wired.wire.fail("Produce", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        future = producer.send_arrow(numbers(10), topic, lambda *each: told.append(each))
        error = future.exception(30)
        producer.flush(10)
    assert error is not None
    assert "TOPIC_AUTHORIZATION_FAILED" in str(error)
    assert told == [(None, error)]
    with pytest.raises(type(error)):
        future.result()


def test_a_broker_that_takes_nothing_fills_the_buffer(wired: WiredBroker, topic: str) -> None:
    with Producer(wired.bootstrap, max_block_ms=2_000, buffer_memory=30_000, **QUICK) as producer:
        producer.send_arrow(numbers(1), topic).result(30)
        wired.wire.stall("Produce")
        with pytest.raises(BufferFull, match=r"[1-9]\d* of 20000 rows are under way"):
            producer.send_arrow(numbers(20_000), topic)
        with pytest.raises(TimedOut):
            producer.flush(0.1)
        producer.close(0)
