"""A topic that is produced to without being created comes into being; a look at it alone creates nothing."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, Producer

from compat.admins.confluent import ConfluentAdmin
from compat.broker import unique_name
from compat.cases import QUICK, few_cases
from compat.clients.confluent import consumer
from compat.clients.kafka_package import KafkaProducer
from compat.clients.roster import CLIENTS, NAMES


@pytest.mark.parametrize("writer", NAMES)
def test_producing_creates_the_topic(bootstrap: str, writer: str) -> None:
    topic = unique_name("auto")
    CLIENTS[writer].write(bootstrap, topic, 0, few_cases(), QUICK)
    assert len(CLIENTS["confluent"].read(bootstrap, topic, {0: 3})[0]) == 3
    assert list(ConfluentAdmin(bootstrap).describe_topic(topic).replicas) == [0]


def test_metadata_creates_the_topic_when_the_client_allows_it(bootstrap: str) -> None:
    topic = unique_name("asked-for")
    with KafkaProducer(bootstrap_servers=bootstrap, allow_auto_create_topics=True) as asking:
        assert asking.partitions_for(topic) == {0}


def test_metadata_creates_nothing_when_the_client_forbids_it(bootstrap: str) -> None:
    topic = unique_name("only-looked-for")
    looking = consumer(bootstrap, allow_auto_create_topics=False)
    try:
        found = looking.list_topics(topic, timeout=10).topics[topic]
        assert found.error is not None
        assert found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
        assert topic not in looking.list_topics(timeout=10).topics
    finally:
        looking.close()


def test_topic_with_a_bad_name_is_not_created(bootstrap: str) -> None:
    failures: list[int] = []
    producer = Producer({"bootstrap.servers": bootstrap, "message.timeout.ms": 5_000})
    producer.produce("no good", b"v", on_delivery=lambda error, message: failures.append(error.code()))
    producer.flush(20)
    assert failures == [KafkaError.TOPIC_EXCEPTION]
