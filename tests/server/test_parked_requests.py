"""Requests that wait cost nothing once nobody wants their answer any more."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from calls import append, at, create_topic, delete_topic, fetch_request
from in_process import InProcessBroker, running_broker
from wire import WireClient


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessBroker]:
    with running_broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def parked(running: InProcessBroker) -> tuple[float, int, int]:
    """Waiters, keys they wait under, and deadlines that are set (besides the broker's own)."""
    parking = running.broker._parking
    return running.on_owner(lambda: (len(parking), len(parking._by_key), len(parking._timers)))


def test_a_closed_connection_takes_its_waiting_requests_with_it(running: InProcessBroker) -> None:
    with WireClient(running.bootstrap) as client:
        topic = create_topic(client, partitions=5)
        before = parked(running)
        readers = [WireClient(running.bootstrap) for _ in range(20)]
        for reader in readers:
            for _ in range(3):
                partitions = [at(0, partition) for partition in range(5)]
                reader.send(fetch_request(topic, *partitions, max_wait_ms=600_000), 12)
        wait_until(lambda: parked(running)[0] == 20)  # one each: the others wait behind it
        assert running.metric("server.parked") == 20
        for reader in readers:
            reader.close()
        wait_until(lambda: parked(running) == before)


def test_answered_requests_leave_nothing_behind(running: InProcessBroker) -> None:
    with WireClient(running.bootstrap) as client, WireClient(running.bootstrap) as reader:
        topic = create_topic(client, partitions=2)
        before = parked(running)
        for offset in range(5):
            reader.send(fetch_request(topic, at(offset, 0), at(0, 1), max_wait_ms=600_000), 12)
            wait_until(lambda: parked(running)[0] == 1)
            append(client, topic, b"v")
            reader.receive()
        wait_until(lambda: parked(running) == before)


def test_a_deleted_topic_leaves_nothing_behind(running: InProcessBroker) -> None:
    before = parked(running)
    with WireClient(running.bootstrap) as client, WireClient(running.bootstrap) as reader:
        topic = create_topic(client, partitions=2)
        reader.send(fetch_request(topic, at(0, 0), at(0, 1), max_wait_ms=600_000), 12)
        wait_until(lambda: parked(running)[0] == 1)
        delete_topic(client, topic)
        reader.receive()
        wait_until(lambda: parked(running) == before)
