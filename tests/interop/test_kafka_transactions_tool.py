"""Kafka's own tool for transactions lists, describes, finds and ends ours."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from calls import batch_of, produce_request
from compat.broker import topic_creator, unique_name
from compat.isolation import read
from interop.kafka_tool import kafka_tool
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.records.batch import TRANSACTIONAL
from ottla.testing import BrokerProcess
from wire import WireClient

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

_PATIENCE_S = 60
_HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def careless() -> Iterator[BrokerProcess]:
    """Takes batches of transactions that nobody coordinates, as brokers before Kafka 3.6 did."""
    with BrokerProcess(settings={"transaction.partition.verification.enable": "false"}) as running:
        yield running


def transactions(broker: BrokerProcess, *arguments: str) -> list[list[str]]:
    """The rows of the table that it prints, without their head."""
    name = "org.apache.kafka.tools.TransactionsCommand"
    out = kafka_tool(name, "--bootstrap-server", broker.bootstrap, *arguments)
    return [re.split(r"\s+", line.strip()) for line in out.splitlines()[1:]]


def open_transaction(broker: BrokerProcess, name: str, topic: str) -> Producer:
    """With a record in each of the topic's two partitions."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name})
    producer.init_transactions(_PATIENCE_S)
    producer.begin_transaction()
    for partition in range(2):
        producer.produce(topic, b"v", partition=partition)
    producer.flush(_PATIENCE_S)
    return producer


def test_an_open_transaction_is_listed_and_described(careless: BrokerProcess) -> None:
    topic, name = topic_creator(careless.bootstrap)(partitions=2), unique_name("id")
    producer = open_transaction(careless, name, topic)
    (listed,) = [row for row in transactions(careless, "list") if row[0] == name]
    assert listed[3] == "Ongoing"
    (described,) = transactions(careless, "describe", "--transactional-id", name)
    assert described[1:3] == [name, listed[2]]
    assert described[4] == "Ongoing"
    assert set(described[-1].split(",")) == {f"{topic}-0", f"{topic}-1"}
    (writing,) = transactions(careless, "describe-producers", "--topic", topic, "--partition", "1")
    assert (writing[0], writing[-1]) == (listed[2], "0")
    found = transactions(careless, "find-hanging", "--topic", topic, "--max-transaction-timeout", "0")
    assert found == [], "the coordinator knows it"
    producer.commit_transaction(_PATIENCE_S)
    (described,) = transactions(careless, "describe", "--transactional-id", name)
    assert described[4] == "CompleteCommit"


def test_an_open_transaction_is_terminated_by_force(careless: BrokerProcess) -> None:
    topic, name = topic_creator(careless.bootstrap)(partitions=2), unique_name("id")
    producer = open_transaction(careless, name, topic)
    transactions(careless, "forceTerminateTransaction", "--transactionalId", name)
    assert read(careless.bootstrap, topic, 0) == []
    with pytest.raises(KafkaException) as fenced:
        producer.commit_transaction(_PATIENCE_S)
    assert fenced.value.args[0].code() == KafkaError._FENCED


def test_a_hanging_transaction_is_found_and_aborted(careless: BrokerProcess) -> None:
    topic = topic_creator(careless.bootstrap)()
    with WireClient(careless.bootstrap) as wire:
        producer = wire.call(InitProducerIdRequest(), 4)
        hour_ago_ms = int(time.time() * 1000) - _HOUR_MS
        batch = batch_of(
            b"hanging",
            timestamp=hour_ago_ms,
            producer=(producer.producer_id, 0),
            sequence=0,
            flags=TRANSACTIONAL,
        )
        request = produce_request(topic, batch)
        request.transactional_id = "gone"  # type: ignore[misc]
        (answer,) = wire.call(request, 11).responses[0].partition_responses
        assert answer.error_code == ErrorCode.NONE
    (found,) = transactions(careless, "find-hanging", "--broker-id", "1")
    assert found[:6] == [topic, "0", str(producer.producer_id), "0", "-1", "0"]
    of_partition = ("--topic", topic, "--partition", "0")
    transactions(careless, "abort", *of_partition, "--start-offset", "0")
    assert transactions(careless, "find-hanging", *of_partition) == []
    assert read(careless.bootstrap, topic, 0) == []
