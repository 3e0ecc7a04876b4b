"""Several listeners: each tells its own clients where to go, and the control listener is served first."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

import pytest

from calls import create_topic, delete_topic, describe_topic
from node.flood import flooded
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.testing import BrokerProcess
from wire import WireClient

SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,OUTSIDE://127.0.0.1:0,CONTROL://127.0.0.1:0",
    "advertised.listeners": "PLAINTEXT://127.0.0.1:0,OUTSIDE://broker.example.org:19092,CONTROL://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:PLAINTEXT,CONTROL:PLAINTEXT",
    "control.plane.listener.name": "CONTROL",
    "broker.rack": "a",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    with BrokerProcess(settings=SETTINGS) as process:
        yield process
        assert "Traceback" not in process.output(), process.output()


@pytest.mark.parametrize("listener", ["PLAINTEXT", "OUTSIDE", "CONTROL"])
def test_clients_are_told_the_address_of_the_listener_they_came_by(
    broker: BrokerProcess, listener: str
) -> None:
    address = "broker.example.org:19092" if listener == "OUTSIDE" else broker.address(listener)
    with WireClient(broker.address(listener)) as client:
        (node,) = client.call(MetadataRequest([]), 12).brokers
        assert (f"{node.host}:{node.port}", node.rack) == (address, "a")
        (node,) = client.call(DescribeClusterRequest(), 1).brokers
        assert (f"{node.host}:{node.port}", node.rack) == (address, "a")
        found = client.call(FindCoordinatorRequest(key="group"), 3)
        assert f"{found.host}:{found.port}" == address
        (node,) = client.call(FindCoordinatorRequest(coordinator_keys=["group"]), 4).coordinators
        assert f"{node.host}:{node.port}" == address


def test_all_listeners_show_the_same_topics(broker: BrokerProcess) -> None:
    with WireClient(broker.bootstrap) as client:
        topic = create_topic(client)
    for listener in ("OUTSIDE", "CONTROL"):
        with WireClient(broker.address(listener)) as client:
            assert describe_topic(client, topic).error_code == ErrorCode.NONE


def latencies(client: WireClient, count: int) -> list[float]:
    times = []
    for _ in range(count):
        began = time.perf_counter()
        client.call(MetadataRequest([]), 12)
        times.append(time.perf_counter() - began)
    return times


def test_control_requests_overtake_a_flood_of_data(broker: BrokerProcess) -> None:
    with (
        WireClient(broker.address("CONTROL")) as control,
        WireClient(broker.bootstrap) as data,
        flooded(broker.bootstrap),
    ):
        of_control, of_data = [], []
        for _ in range(6):  # by turns, so that both see the same machine
            of_control += latencies(control, 2)
            of_data += latencies(data, 2)
        assert statistics.median(of_control) < statistics.median(of_data)
        # And they do get their work done.
        topic = create_topic(control, partitions=5)
        delete_topic(control, topic)
