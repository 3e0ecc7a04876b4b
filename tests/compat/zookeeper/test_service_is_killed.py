"""kill -9 of the service with clients attached: what was acknowledged is there, and sessions go on."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import ConnectionLoss, NodeExistsError, OperationTimeoutError
from kazoo.retry import KazooRetry

from ottla.client.zookeeper import ZooKeeperClient
from ottla.coordination.watches import EventType
from ottla.protocol.zookeeper.operations import OpCode
from ottla.testing import BrokerProcess, CoordinationProcess

PATIENCE_SECONDS = 60
KILLS = 3


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def started(address: str) -> KazooClient:
    retry = KazooRetry(max_tries=-1, delay=0.02, max_delay=0.2)
    client = KazooClient(address, timeout=30.0, connection_retry=retry)
    client.start(PATIENCE_SECONDS)
    return client


def test_acknowledged_changes_survive_and_sessions_go_on(tmp_path: Path) -> None:
    with CoordinationProcess(tmp_path, {"tickTime": "5000"}) as service:
        watcher, writer = started(service.zookeeper), started(service.zookeeper)
        session = watcher.client_id
        watcher.create("/ephemeral", ephemeral=True)
        writer.create("/log")
        acknowledged: list[str] = []
        stop = threading.Event()

        def write() -> None:
            number = 0
            while not stop.is_set():
                try:
                    acknowledged.append(writer.create(f"/log/{number:06}"))
                except NodeExistsError:  # it was done, and the answer was lost
                    pass
                except (ConnectionLoss, OperationTimeoutError):
                    time.sleep(0.02)
                    continue
                number += 1

        thread = threading.Thread(target=write)
        thread.start()
        for _ in range(KILLS):
            before = len(acknowledged)
            wait_until(lambda before=before: len(acknowledged) > before + 50)  # type: ignore[misc]
            service.kill()
            service.start()
        before = len(acknowledged)
        wait_until(lambda: len(acknowledged) > before + 50)
        stop.set()
        thread.join(PATIENCE_SECONDS)
        wait_until(lambda: watcher.connected)
        assert watcher.client_id == session
        assert watcher.state == KazooState.CONNECTED
        assert watcher.exists("/ephemeral").ephemeralOwner == session[0]
        there = set(writer.get_children("/log"))
        assert {path.rpartition("/")[2] for path in acknowledged} <= there
        for client in (watcher, writer):
            client.stop()
            client.close()


def test_watches_set_again_tell_what_was_missed(tmp_path: Path) -> None:
    """As the Java and Go clients do it: with the last transaction they have seen before they were cut off."""
    with CoordinationProcess(tmp_path) as service:
        host, _, port = service.zookeeper.rpartition(":")
        with ZooKeeperClient(host, int(port)) as client:
            for path in ("/changed", "/same", "/deleted"):
                client.create(path)
            seen_zxid = client.get("/deleted")[1].czxid
            client.set("/changed", b"1")
            client.delete("/deleted")
            client.create("/created")
        service.kill()
        service.start()
        with ZooKeeperClient(host, int(port)) as client:
            paths = ["/changed", "/same", "/deleted"]
            client.request(OpCode.SET_WATCHES, seen_zxid, paths, ["/created"], [])
            assert {(event.type, event.path) for event in client.events(0.5)} == {
                (EventType.NODE_DATA_CHANGED, "/changed"),
                (EventType.NODE_DELETED, "/deleted"),
                (EventType.NODE_CREATED, "/created"),
            }
            client.set("/same", b"1")
            assert [(event.type, event.path) for event in client.events(0.5)] == [
                (EventType.NODE_DATA_CHANGED, "/same")
            ]


def test_the_tree_of_a_broker_is_served_too(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        client = started(broker.zookeeper)
        registration = json.loads(client.get("/brokers/ids/1")[0])
        assert f"PLAINTEXT://{broker.bootstrap}" in registration["endpoints"]
        client.create("/mine", b"kept")
        broker.kill()
        broker.start()
        wait_until(lambda: client.connected)
        assert client.get("/mine")[0] == b"kept"
        assert "1" in client.get_children("/brokers/ids")
        client.stop()
        client.close()
