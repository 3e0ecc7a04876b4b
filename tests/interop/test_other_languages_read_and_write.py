"""Java, franz-go and kafkajs write and read the same records as the Python clients, across all of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat.broker import CreateTopic
from compat.cases import LANES, STAMPED_LANES, TOPIC_CONFIGS
from compat.clients.client import Client
from compat.clients.confluent import Confluent
from compat.record import LOG_APPEND_TIME
from compat.writing import WrittenTopic, write_topic
from interop.drivers import DRIVERS

# The first build downloads what the drivers need.
pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

CLIENTS: dict[str, Client] = {Confluent.name: Confluent(), **DRIVERS}
WrittenBy = Callable[[str], WrittenTopic]


@pytest.fixture(scope="module")
def written_by(bootstrap: str, create_topic: CreateTopic) -> WrittenBy:
    topics: dict[str, WrittenTopic] = {}

    def written(writer: str) -> WrittenTopic:
        if writer not in topics:
            topic = create_topic(f"from-{writer}", partitions=len(LANES), configs=TOPIC_CONFIGS)
            topics[writer] = write_topic(CLIENTS[writer], bootstrap, topic, LANES)
        return topics[writer]

    return written


@pytest.fixture(scope="module")
def stamped_by(bootstrap: str, create_topic: CreateTopic) -> WrittenBy:
    topics: dict[str, WrittenTopic] = {}

    def written(writer: str) -> WrittenTopic:
        if writer not in topics:
            configs = {**TOPIC_CONFIGS, "message.timestamp.type": "LogAppendTime"}
            topic = create_topic(f"stamped-{writer}", partitions=len(STAMPED_LANES), configs=configs)
            topics[writer] = write_topic(CLIENTS[writer], bootstrap, topic, STAMPED_LANES, LOG_APPEND_TIME)
        return topics[writer]

    return written


@pytest.mark.parametrize("reader", CLIENTS)
@pytest.mark.parametrize("writer", CLIENTS)
def test_every_record_is_read_as_written(
    bootstrap: str, written_by: WrittenBy, writer: str, reader: str
) -> None:
    problems = written_by(writer).unread_by(CLIENTS[reader], bootstrap)
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("reader", CLIENTS)
@pytest.mark.parametrize("writer", CLIENTS)
def test_log_append_time_is_the_brokers_and_the_same_for_all(
    bootstrap: str, stamped_by: WrittenBy, writer: str, reader: str
) -> None:
    problems = stamped_by(writer).unread_by(CLIENTS[reader], bootstrap)
    assert not problems, "\n".join(problems)
