"""ottla txn: every verb against a real broker, used rightly and wrongly."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer

from calls import batch_of, produce_request
from cli.program import Program
from compat.broker import unique_name
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.records.batch import TRANSACTIONAL
from ottla.testing import BrokerProcess
from wire import WireClient

_PATIENCE_S = 60


@pytest.fixture
def topic(client: Program) -> str:
    name = unique_name("orders")
    client.ok("topic", "create", name, "-p", "2")
    return name


def begun(broker: BrokerProcess, transactional_id: str, topic: str) -> Producer:
    """A producer with an open transaction."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(_PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, "open", partition=1)
    producer.flush(_PATIENCE_S)
    return producer


def test_transactions_are_listed_and_shown(client: Program, broker: BrokerProcess, topic: str) -> None:
    name = unique_name("payments")
    producer = begun(broker, name, topic)
    listed = {each["id"]: each for each in client.ok("txn", "ls", "-o", "json").json}
    assert listed[name]["state"] == "Ongoing"
    shown = client.ok("txn", "show", name, "-o", "json").json
    assert (shown["state"], shown["partitions"]) == ("Ongoing", [f"{topic}-1"])
    producer.commit_transaction(_PATIENCE_S)
    assert client.ok("txn", "show", name, "-o", "json").json["state"] == "CompleteCommit"
    assert name not in client.ok("txn", "ls", "--state", "Ongoing").out
    assert "CompleteCommit" in client.ok("txn", "ls").out


def test_an_unknown_id_is_named(client: Program) -> None:
    assert "'nobody'" in client.fails(4, "txn", "show", "nobody")


def test_aborting_asks_first_then_fences_the_producer(
    client: Program, broker: BrokerProcess, topic: str
) -> None:
    name = unique_name("payments")
    producer = begun(broker, name, topic)
    assert "--yes" in client.fails(5, "txn", "abort", name)
    assert "Ongoing" in client.ok("txn", "abort", name, "--dry-run").out
    assert client.ok("txn", "show", name, "-o", "json").json["state"] == "Ongoing"
    client.ok("txn", "abort", name, "--yes")
    with pytest.raises(KafkaException):
        producer.commit_transaction(_PATIENCE_S)
    assert client.ok("txn", "show", name, "-o", "json").json["partitions"] == []


@pytest.fixture(scope="module")
def careless() -> Iterator[BrokerProcess]:
    """Takes batches of transactions that nobody coordinates, as brokers before Kafka 3.6 did."""
    with BrokerProcess(settings={"transaction.partition.verification.enable": "false"}) as running:
        yield running


def test_hanging_transactions_are_found_and_ended(tmp_path: Path, careless: BrokerProcess) -> None:
    client = Program(tmp_path, {"OTTLA_BOOTSTRAP": careless.bootstrap})
    client.ok("topic", "create", "orders")
    with WireClient(careless.bootstrap) as wire:
        producer = wire.call(InitProducerIdRequest(), 4)
        whose = (producer.producer_id, 0)
        now_ms = int(time.time() * 1000)
        batch = batch_of(b"v", timestamp=now_ms, producer=whose, sequence=0, flags=TRANSACTIONAL)
        request = produce_request("orders", batch)
        request.transactional_id = "gone"  # type: ignore[misc]
        (answer,) = wire.call(request, 11).responses[0].partition_responses
        assert answer.error_code == ErrorCode.NONE
    (found,) = client.ok("txn", "hanging", "--minutes", "0", "-o", "json").json
    assert (found["topic"], found["first_offset"], found["producer"]) == ("orders", 0, producer.producer_id)
    assert client.ok("txn", "hanging", "-o", "json").json == [], "it was written to just now"
    assert "--yes" in client.fails(5, "txn", "hanging", "--minutes", "0", "--abort")
    client.ok("txn", "hanging", "orders", "--minutes", "0", "--abort", "--yes")
    assert client.ok("txn", "hanging", "--minutes", "0", "-o", "json").json == []


def test_wrong_uses_are_explained(client: Program) -> None:
    assert "required: TRANSACTION" in client.fails(2, "txn", "show")
    assert "future" in client.fails(2, "txn", "hanging", "--minutes", "-1")
    assert "nowhere" in client.fails(4, "txn", "hanging", "nowhere")
