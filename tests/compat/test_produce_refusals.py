"""Records a topic does not take are refused with Kafka's codes, and nothing of them is written."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition

from compat.broker import CreateTopic
from compat.clients.confluent import consumer, produce_code
from compat.clients.kafka_package import KafkaProducer, errors
from ottla.model.errors import ErrorCode

_HOUR_MS = 3_600_000


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _code_by_kafka_python(bootstrap: str, topic: str, *, idempotent: bool, **record: object) -> int:
    record = {"timestamp_ms" if name == "timestamp" else name: value for name, value in record.items()}
    with KafkaProducer(
        bootstrap_servers=bootstrap, enable_idempotence=idempotent, max_request_size=5_000_000
    ) as producer:
        future = producer.send(topic, partition=0, **record)
        with pytest.raises(errors.BrokerResponseError) as refusal:
            future.get(20)
    return int(refusal.value.errno)


Produce = Callable[..., int]

_CASES = {
    "larger than max.message.bytes": (
        {"max.message.bytes": "10000"},
        {"value": bytes(20_000)},
        ErrorCode.MESSAGE_TOO_LARGE,
    ),
    "too far in the future": (
        {"message.timestamp.after.max.ms": str(_HOUR_MS)},
        {"value": b"v", "timestamp": _now_ms() + 5 * _HOUR_MS},
        ErrorCode.INVALID_TIMESTAMP,
    ),
    "too far in the past": (
        {"message.timestamp.before.max.ms": str(_HOUR_MS)},
        {"value": b"v", "timestamp": _now_ms() - 5 * _HOUR_MS},
        ErrorCode.INVALID_TIMESTAMP,
    ),
    "without a key in a compacted topic": (
        {"cleanup.policy": "compact"},
        {"value": b"v"},
        ErrorCode.INVALID_RECORD,
    ),
}


@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "plain"])
@pytest.mark.parametrize("produce", [produce_code, _code_by_kafka_python], ids=["confluent", "kafka-python"])
@pytest.mark.parametrize("case", list(_CASES))
def test_record_is_refused_with_its_code_and_not_written(
    bootstrap: str, create_topic: CreateTopic, case: str, produce: Produce, idempotent: bool
) -> None:
    configs, record, code = _CASES[case]
    topic = create_topic("refusing", configs=configs)
    assert ErrorCode(produce(bootstrap, topic, idempotent=idempotent, **record)) == code
    reader = consumer(bootstrap)
    try:
        assert reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=10) == (0, 0)
    finally:
        reader.close()


def test_partition_that_does_not_exist_is_refused(bootstrap: str, create_topic: CreateTopic) -> None:
    topic = create_topic("few", partitions=2)
    codes: list[str] = []
    producer = Producer({"bootstrap.servers": bootstrap, "message.timeout.ms": 4_000})
    try:
        producer.produce(
            topic, b"v", partition=7, on_delivery=lambda error, message: codes.append(error.name())
        )
        producer.flush(20)
    except KafkaException as failure:
        codes.append(failure.args[0].name())
    assert codes == ["_UNKNOWN_PARTITION"]


def test_min_insync_replicas_beyond_the_replicas_there_are_does_not_stop_writing(
    bootstrap: str, create_topic: CreateTopic
) -> None:
    """Kafka caps the setting at the number of replicas."""
    topic = create_topic("strict", configs={"min.insync.replicas": "2"})
    with KafkaProducer(
        bootstrap_servers=bootstrap, acks="all", retries=0, enable_idempotence=False
    ) as producer:
        assert producer.send(topic, b"v").get(20).offset == 0
