"""Apache Kafka 3.9 in ZooKeeper mode with our coordination service as its ZooKeeper."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from interop.apache_servers import Kafka39
from interop.builds import java_command
from ottla.client.zookeeper import ZooKeeperClient
from ottla.testing import CoordinationProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
PATIENCE_SECONDS = 180
RECORDS = 200


def topics(bootstrap: str, *arguments: str) -> str:
    tool = [*java_command(), "org.apache.kafka.tools.TopicCommand", "--bootstrap-server", bootstrap]
    done = subprocess.run(
        [*tool, *arguments], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def produce(bootstrap: str, topic: str, prefix: bytes) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(RECORDS):
        producer.produce(topic, b"%s %d" % (prefix, number))
    assert producer.flush(PATIENCE_SECONDS) == 0


def consume(bootstrap: str, topic: str, count: int, group: str) -> set[bytes]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    seen: set[bytes] = set()
    while len(seen) < count:
        messages = consumer.consume(count, timeout=PATIENCE_SECONDS)
        assert messages, f"{len(seen)} of {count} records"
        seen |= {message.value() for message in messages if not message.error()}
    consumer.close()
    return seen


def test_kafka_starts_serves_restarts_and_outlives_a_kill_of_its_zookeeper(tmp_path: Path) -> None:
    with CoordinationProcess() as service:
        kafka = Kafka39(tmp_path / "kafka", f"{service.zookeeper}/kafka", tmp_path / "logs", {})
        with kafka:
            topics(kafka.address, "--create", "--topic", "orders", "--partitions", "3")
            produce(kafka.address, "orders", b"first")
            assert len(consume(kafka.address, "orders", RECORDS, "one")) == RECORDS
        with kafka:
            assert "PartitionCount: 3" in topics(kafka.address, "--describe", "--topic", "orders")
            produce(kafka.address, "orders", b"second")
            assert len(consume(kafka.address, "orders", 2 * RECORDS, "two")) == 2 * RECORDS
            service.kill()
            service.start()
            topics(kafka.address, "--create", "--topic", "after-the-kill")
            topics(kafka.address, "--delete", "--topic", "after-the-kill")
            assert topics(kafka.address, "--list").split() == ["__consumer_offsets", "orders"]
            _check_registration(service, kafka.address)


def _check_registration(service: CoordinationProcess, bootstrap: str) -> None:
    host, _, port = service.zookeeper.rpartition(":")
    with ZooKeeperClient(host, int(port)) as client:
        data, stat = client.get("/kafka/brokers/ids/1")
        assert data is not None
        assert json.loads(data)["endpoints"] == [f"PLAINTEXT://{bootstrap}"]
        assert stat.ephemeral_owner != 0
        assert client.children("/kafka/brokers/topics/orders/partitions") == ["0", "1", "2"]
