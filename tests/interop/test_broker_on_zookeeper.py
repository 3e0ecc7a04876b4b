"""A broker whose topics and settings are kept by an Apache ZooKeeper ensemble of three."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from in_process import running_broker
from interop.apache_zookeeper import Ensemble, ensemble
from ottla.node.failures import BrokerFailed
from ottla.testing import BrokerProcess

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    with ensemble(tmp_path_factory.mktemp("zookeeper"), servers=3) as servers:
        yield servers


def create(bootstrap: str, topic: str, partitions: int = 2) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(topic, partitions, 1)], operation_timeout=60).values():
        future.result(60)


def write(bootstrap: str, topic: str, values: range) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for value in values:
        producer.produce(topic, str(value).encode(), partition=0)
    assert producer.flush(60) == 0


def read(bootstrap: str, topic: str, count: int) -> list[int]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": f"{topic}-{count}", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    messages = consumer.consume(count, 60)
    consumer.close()
    return [int(message.value()) for message in messages]


def test_it_serves_while_servers_die_and_finds_everything_after_a_kill(servers: Ensemble) -> None:
    settings = {
        "zookeeper.connect": f"{servers.addresses}/ottla-1",
        "zookeeper.session.timeout.ms": "6000",
        "offsets.topic.num.partitions": "1",
    }
    with BrokerProcess(settings=settings) as broker:
        create(broker.bootstrap, "before")
        write(broker.bootstrap, "before", range(10))
        leader = servers.leader()
        leader.kill()
        create(broker.bootstrap, "while-one-is-away")
        write(broker.bootstrap, "before", range(10, 20))
        leader.start()
        broker.kill()
        broker.start()  # waits for the session of its former life to end
        create(broker.bootstrap, "after", 3)
        assert read(broker.bootstrap, "before", 20) == list(range(20))
        leader.wait_until_serving()
        zookeeper = KazooClient(f"{servers.addresses}/ottla-1")
        zookeeper.start()
        assert {"after", "before", "while-one-is-away"} <= set(zookeeper.get_children("/brokers/topics"))
        state = json.loads(zookeeper.get("/brokers/topics/after/partitions/2/state")[0])
        assert (state["leader"], state["isr"]) == (1, [1])
        zookeeper.stop()
        zookeeper.close()


def test_records_flow_on_while_the_whole_ensemble_is_away(tmp_path: Path) -> None:
    with (
        ensemble(tmp_path / "zookeeper", servers=1) as servers,
        BrokerProcess(settings={"zookeeper.connect": servers.addresses}) as broker,
    ):
        [server] = servers.servers
        create(broker.bootstrap, "before")
        server.kill()
        write(broker.bootstrap, "before", range(10))
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        [waits] = admin.create_topics([NewTopic("waits", 1, 1)], request_timeout=100).values()
        server.start()
        waits.result(100)
        write(broker.bootstrap, "waits", range(3))
        assert read(broker.bootstrap, "before", 10) == list(range(10))


def test_a_broker_that_the_ensemble_takes_for_dead_ends_and_says_so(
    servers: Ensemble, tmp_path: Path
) -> None:
    settings = {"zookeeper.connect": f"{servers.addresses}/ottla-2"}
    with running_broker(tmp_path, settings) as running:
        assert running.broker.zookeeper is None
        session = running.broker._ensemble._client.client_id  # type: ignore[union-attr]
        thief = KazooClient(servers.addresses, client_id=session)
        thief.start()
        thief.stop()
        thief.close()
        failure = running.wait()
    assert isinstance(failure, BrokerFailed)
    assert "zookeeper.session.timeout.ms" in str(failure)


def test_an_ensemble_that_is_not_there_is_named(tmp_path: Path) -> None:
    settings = {"zookeeper.connect": "127.0.0.1:1", "zookeeper.connection.timeout.ms": "300"}
    with pytest.raises(OSError, match=r"no ZooKeeper server answers at 127\.0\.0\.1:1"):
        running_broker(tmp_path, settings).__enter__()
