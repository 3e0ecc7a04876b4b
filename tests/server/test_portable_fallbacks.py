"""Where the system has no epoll, sendfile, preadv2 or syncfs, a broker does without them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from calls import append, at, create_topic, fetch, fetch_request, told, values_from, values_in
from in_process import InProcessBroker, running_broker
from node.sick_disk import SickFiles
from ottla.server import connection, reactor, warming
from ottla.server.poller import PortablePoller
from wire import WireClient


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InProcessBroker]:
    monkeypatch.setattr(reactor, "best_poller", PortablePoller)
    monkeypatch.setattr(connection, "_HAS_SENDFILE", False)
    monkeypatch.setattr(connection, "_MSG_MORE", 0)
    monkeypatch.setattr(warming, "_NOWAIT", None)
    with running_broker(tmp_path, files=SickFiles()) as running:  # which has no syncfs
        yield running


def test_it_writes_and_reads(running: InProcessBroker) -> None:
    with WireClient(running.bootstrap) as client, WireClient(running.bootstrap) as reader:
        topic = create_topic(client, partitions=3)
        reader.send(fetch_request(topic, at(0, 0), max_wait_ms=60_000), 12)
        assert reader.is_silent(0.05)
        values = [b"%d" % number * 100 for number in range(50)]
        for value in values:
            append(client, topic, value)
        (data,) = told(reader.receive().responses)
        assert values_in(data) == values[:1]
        assert values_from(client, topic) == values


def test_an_answer_larger_than_any_buffer_arrives_whole(running: InProcessBroker) -> None:
    with WireClient(running.bootstrap) as client:
        topic = create_topic(client, configs={"max.message.bytes": str(20 * 1024 * 1024)})
        value = bytes(range(256)) * 40_000
        append(client, topic, value)
        (data,) = fetch(client, topic, at(0, bytes_max=2**30))
        assert values_in(data) == [value]


def test_many_connections(running: InProcessBroker) -> None:
    clients = [WireClient(running.bootstrap) for _ in range(30)]
    topic = create_topic(clients[0])
    for client in clients:
        append(client, topic, b"v")
    for client in clients[1:]:
        client.close()
    assert len(values_from(clients[0], topic)) == 30
    clients[0].close()
