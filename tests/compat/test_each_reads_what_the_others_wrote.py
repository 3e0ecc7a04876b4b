"""The matrix writer × reader: keys, values, headers, timestamps, types and offsets survive byte for byte."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat.broker import CreateTopic
from compat.cases import LANES, STAMPED_LANES, TOPIC_CONFIGS
from compat.clients.roster import CLIENTS, NAMES
from compat.record import LOG_APPEND_TIME
from compat.writing import WrittenTopic, write_topic

WrittenBy = Callable[[str], WrittenTopic]


def _memo(write: WrittenBy) -> WrittenBy:
    """Each writer writes once; a failed attempt is tried again by the next test, which then shows it too."""
    topics: dict[str, WrittenTopic] = {}

    def written_by(writer: str) -> WrittenTopic:
        if writer not in topics:
            topics[writer] = write(writer)
        return topics[writer]

    return written_by


@pytest.fixture(scope="module")
def written_by(bootstrap: str, create_topic: CreateTopic) -> WrittenBy:
    def write(writer: str) -> WrittenTopic:
        topic = create_topic(f"from-{writer}", partitions=len(LANES), configs=TOPIC_CONFIGS)
        return write_topic(CLIENTS[writer], bootstrap, topic, LANES)

    return _memo(write)


@pytest.fixture(scope="module")
def stamped_by(bootstrap: str, create_topic: CreateTopic) -> WrittenBy:
    def write(writer: str) -> WrittenTopic:
        configs = {**TOPIC_CONFIGS, "message.timestamp.type": "LogAppendTime"}
        topic = create_topic(f"stamped-{writer}", partitions=len(STAMPED_LANES), configs=configs)
        return write_topic(CLIENTS[writer], bootstrap, topic, STAMPED_LANES, LOG_APPEND_TIME)

    return _memo(write)


@pytest.mark.parametrize("reader", NAMES)
@pytest.mark.parametrize("writer", NAMES)
def test_every_record_is_read_as_written(
    bootstrap: str, written_by: WrittenBy, writer: str, reader: str
) -> None:
    problems = written_by(writer).unread_by(CLIENTS[reader], bootstrap)
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("reader", NAMES)
@pytest.mark.parametrize("writer", NAMES)
def test_log_append_time_is_the_brokers_and_the_same_for_all(
    bootstrap: str, stamped_by: WrittenBy, writer: str, reader: str
) -> None:
    problems = stamped_by(writer).unread_by(CLIENTS[reader], bootstrap)
    assert not problems, "\n".join(problems)
