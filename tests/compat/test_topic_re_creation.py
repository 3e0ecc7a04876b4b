"""A topic is deleted and created again under its name; running clients go on with the new one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer

from compat.admins.admin import Refusal
from compat.admins.kafka_python import KafkaPythonAdmin
from compat.broker import CreateTopic
from compat.clients.kafka_package import KafkaProducer
from compat.consumers.aio import AioConsumer
from compat.consumers.confluent import ConfluentConsumer
from compat.consumers.consumer import EARLIEST, AssignedConsumer, Settings, read
from compat.consumers.kafka_python import KafkaPythonConsumer
from compat.waiting import eventually
from ottla.model.errors import ErrorCode

Send = Callable[[str, bytes], int]


class _ConfluentSender:
    name = "confluent"

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "topic.metadata.refresh.interval.ms": 500})

    def send(self, topic: str, value: bytes) -> int:
        answers = []
        self._producer.produce(topic, value, partition=0, on_delivery=lambda *answer: answers.append(answer))
        self._producer.flush(30)
        [(error, message)] = answers
        assert error is None, error
        return message.offset()

    def close(self) -> None:
        self._producer.flush(1)


class _KafkaPythonSender:
    name = "kafka-python"

    def __init__(self, bootstrap: str) -> None:
        self._producer = KafkaProducer(bootstrap_servers=bootstrap, metadata_max_age_ms=500)

    def send(self, topic: str, value: bytes) -> int:
        return int(self._producer.send(topic, value, partition=0).get(30).offset)

    def close(self) -> None:
        self._producer.close()


class _AioSender:
    name = "aiokafka"

    def __init__(self, bootstrap: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._producer = self._loop.run_until_complete(self._start(bootstrap))

    async def _start(self, bootstrap: str) -> AIOKafkaProducer:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap, enable_idempotence=True, metadata_max_age_ms=500
        )
        await producer.start()
        return producer

    def send(self, topic: str, value: bytes) -> int:
        answer = self._loop.run_until_complete(self._producer.send_and_wait(topic, value, partition=0))
        return int(answer.offset)

    def close(self) -> None:
        self._loop.run_until_complete(self._producer.stop())
        self._loop.close()


@pytest.fixture
def re_create(python_admin: KafkaPythonAdmin) -> Callable[[str], None]:
    def delete_and_create(topic: str) -> None:
        python_admin.delete_topic(topic)
        assert eventually(lambda: topic not in python_admin.topics())
        try:
            python_admin.create_topic(topic, 1)
        except Refusal as refusal:  # a client that still asks for it was faster (auto.create.topics.enable)
            if refusal.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
        assert eventually(lambda: topic in python_admin.topics())

    return delete_and_create


@pytest.mark.parametrize(
    "kind", [_ConfluentSender, _KafkaPythonSender, _AioSender], ids=lambda kind: kind.name
)
def test_idempotent_producer_goes_on(
    kind, bootstrap: str, create_topic: CreateTopic, re_create: Callable[[str], None]
) -> None:
    topic = create_topic("again")
    sender = kind(bootstrap)
    try:
        assert [sender.send(topic, b"old %d" % i) for i in range(3)] == [0, 1, 2]
        re_create(topic)
        time.sleep(1.0)
        assert [sender.send(topic, b"new %d" % i) for i in range(3)] == [0, 1, 2]
    finally:
        sender.close()
    reader = ConfluentConsumer(bootstrap, topic, Settings())
    reader.assign({0: EARLIEST})
    assert [record.value for record in read(reader, 3)] == [b"new 0", b"new 1", b"new 2"]
    reader.close()


@pytest.mark.parametrize(
    "kind", [ConfluentConsumer, KafkaPythonConsumer, AioConsumer], ids=lambda kind: kind.name
)
def test_consumer_reads_the_new_topic(
    kind, bootstrap: str, create_topic: CreateTopic, re_create: Callable[[str], None]
) -> None:
    """Its position lies beyond the end of the new topic: most clients start again at the beginning.

    kafka-python learns from the leader's epochs that the log was cut, and goes on from the new end.
    """
    topic = create_topic("again")
    sender = _ConfluentSender(bootstrap)
    for i in range(5):
        sender.send(topic, b"old %d" % i)
    consumer: AssignedConsumer = kind(bootstrap, topic, Settings(reset=EARLIEST))
    try:
        consumer.assign({0: EARLIEST})
        assert len(read(consumer, 5)) == 5
        re_create(topic)
        fresh = _ConfluentSender(bootstrap)
        fresh.send(topic, b"new 0")
        fresh.send(topic, b"new 1")
        values = [record.value for record in read(consumer, 2, within_s=4.0)]
        fresh.send(topic, b"new 2")
        values += [record.value for record in read(consumer, 1)]
        assert values in ([b"new 0", b"new 1", b"new 2"], [b"new 2"])
    finally:
        consumer.close()
