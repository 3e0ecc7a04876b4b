"""Transactions of stock clients: committed records are read, aborted ones are not, zombies are fenced."""

from __future__ import annotations

import asyncio

import aiokafka
import kafka
import pytest
from aiokafka.errors import ProducerFenced
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from kafka.errors import ProducerFencedError

from compat.broker import CreateTopic, unique_name
from compat.isolation import read
from compat.waiting import eventually

_PATIENCE_S = 60


def transactional(bootstrap: str, transactional_id: str) -> Producer:
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "linger.ms": 0}
    )
    producer.init_transactions(_PATIENCE_S)
    return producer


def test_confluent_commits_and_aborts(bootstrap: str, create_topic: CreateTopic) -> None:
    topic = create_topic()
    producer = transactional(bootstrap, unique_name("id"))
    for number in range(6):
        producer.begin_transaction()
        producer.produce(topic, f"{number}", partition=0)
        producer.flush(_PATIENCE_S)
        if number % 2:
            producer.abort_transaction(_PATIENCE_S)
        else:
            producer.commit_transaction(_PATIENCE_S)
    assert read(bootstrap, topic, 3) == [b"0", b"2", b"4"]
    assert read(bootstrap, topic, 6, "read_uncommitted") == [b"0", b"1", b"2", b"3", b"4", b"5"]


def test_an_open_transaction_holds_back_only_those_who_want_committed_records(
    bootstrap: str, create_topic: CreateTopic
) -> None:
    topic = create_topic()
    plain = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    producer = transactional(bootstrap, unique_name("id"))
    producer.begin_transaction()
    producer.produce(topic, "open", partition=0)
    producer.flush(_PATIENCE_S)
    plain.produce(topic, "plain", partition=0)
    plain.flush(_PATIENCE_S)
    assert read(bootstrap, topic, 0) == []
    assert read(bootstrap, topic, 2, "read_uncommitted") == [b"open", b"plain"]
    producer.commit_transaction(_PATIENCE_S)
    assert read(bootstrap, topic, 2) == [b"open", b"plain"]


def test_offsets_of_a_transaction_count_when_it_commits(bootstrap: str, create_topic: CreateTopic) -> None:
    topic, group = create_topic(), unique_name("group")
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    producer = transactional(bootstrap, unique_name("id"))
    for offset, commit in ((5, False), (7, True)):
        producer.begin_transaction()
        producer.send_offsets_to_transaction(
            [TopicPartition(topic, 0, offset)], consumer.consumer_group_metadata(), _PATIENCE_S
        )
        if commit:
            producer.commit_transaction(_PATIENCE_S)
        else:
            producer.abort_transaction(_PATIENCE_S)
        (committed,) = consumer.committed([TopicPartition(topic, 0)], _PATIENCE_S)
        assert committed.offset == (7 if commit else -1001)
    consumer.close()


def test_confluent_zombies_are_fenced(bootstrap: str, create_topic: CreateTopic) -> None:
    topic, transactional_id = create_topic(), unique_name("id")
    zombie = transactional(bootstrap, transactional_id)
    zombie.begin_transaction()
    zombie.produce(topic, "zombie", partition=0)
    zombie.flush(_PATIENCE_S)
    successor = transactional(bootstrap, transactional_id)
    successor.begin_transaction()
    successor.produce(topic, "successor", partition=0)
    successor.commit_transaction(_PATIENCE_S)
    with pytest.raises(KafkaException) as fenced:
        zombie.commit_transaction(_PATIENCE_S)
    assert (fenced.value.args[0].code(), fenced.value.args[0].fatal()) == (KafkaError._FENCED, True)
    assert read(bootstrap, topic, 1) == [b"successor"]


def test_a_transaction_that_takes_too_long_is_aborted(bootstrap: str, create_topic: CreateTopic) -> None:
    topic = create_topic()
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": unique_name("id"),
            "transaction.timeout.ms": 1_000,
            "linger.ms": 0,
        }
    )
    producer.init_transactions(_PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, "late", partition=0)
    producer.flush(_PATIENCE_S)
    plain = Producer({"bootstrap.servers": bootstrap})
    plain.produce(topic, "plain", partition=0)
    plain.flush(_PATIENCE_S)
    assert eventually(lambda: read(bootstrap, topic, 0) == [b"plain"], _PATIENCE_S)


def test_kafka_python_commits_aborts_and_is_fenced(bootstrap: str, create_topic: CreateTopic) -> None:
    topic, transactional_id = create_topic(), unique_name("id")
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, transactional_id=transactional_id)
    producer.init_transactions()
    for number in range(4):
        producer.begin_transaction()
        producer.send(topic, b"%d" % number, partition=0).get(_PATIENCE_S)
        if number % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    successor = kafka.KafkaProducer(bootstrap_servers=bootstrap, transactional_id=transactional_id)
    successor.init_transactions()
    producer.begin_transaction()
    with pytest.raises(ProducerFencedError):
        producer.send(topic, b"zombie", partition=0).get(_PATIENCE_S)
    producer.close(timeout=0)
    successor.close()
    assert read(bootstrap, topic, 2) == [b"0", b"2"]


def test_aiokafka_commits_aborts_and_is_fenced(bootstrap: str, create_topic: CreateTopic) -> None:
    topic, transactional_id = create_topic(), unique_name("id")

    async def run() -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=transactional_id)
        await producer.start()
        for number in range(4):
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"%d" % number, partition=0)
            if number % 2:
                await producer.abort_transaction()
            else:
                await producer.commit_transaction()
        successor = aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=transactional_id)
        await successor.start()
        await producer.begin_transaction()
        with pytest.raises(ProducerFenced):
            await producer.send_and_wait(topic, b"zombie", partition=0)
        await successor.stop()
        await producer.stop()

    asyncio.run(asyncio.wait_for(run(), _PATIENCE_S))
    assert read(bootstrap, topic, 2) == [b"0", b"2"]
