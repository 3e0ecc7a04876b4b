"""OffsetForLeaderEpoch: where each leader epoch ends, so that a reader can tell whether its log was cut."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from calls import append, create_topic
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.testing import BrokerProcess
from wire import WireClient


def ask(
    client: WireClient, topic: str, epoch: int, *, current: int = -1, partition: int = 0, version: int = 4
) -> EpochEndOffset:
    asked = OffsetForLeaderTopic(topic, [OffsetForLeaderPartition(partition, current, epoch)])
    request = OffsetForLeaderEpochRequest(-1, [asked])
    (answer,) = client.call(request, version).topics[0].partitions
    assert isinstance(answer, EpochEndOffset)
    assert answer.partition == partition
    return answer


def end_of(client: WireClient, topic: str, epoch: int, version: int = 4) -> tuple[int, int]:
    answer = ask(client, topic, epoch, version=version)
    assert answer.error_code == ErrorCode.NONE
    return answer.leader_epoch, answer.end_offset


@pytest.fixture(scope="module")
def crashed() -> Iterator[tuple[BrokerProcess, str]]:
    """A broker that crashed twice: its topic has epoch 0 up to 2, none of epoch 1, and epoch 2 from there."""
    with BrokerProcess() as broker:
        with WireClient(broker.bootstrap) as client:
            topic = create_topic(client)
            append(client, topic, b"a", b"b")
        for _ in range(2):
            broker.kill()
            broker.start()
        with WireClient(broker.bootstrap) as client:
            append(client, topic, b"c")
        yield broker, topic


@pytest.mark.parametrize("version", range(2, 5))
def test_every_version_tells_where_epochs_end(crashed: tuple[BrokerProcess, str], version: int) -> None:
    broker, topic = crashed
    with WireClient(broker.bootstrap) as client:
        assert end_of(client, topic, 0, version) == (0, 2)
        assert end_of(client, topic, 1, version) == (0, 2)  # the largest one up to it
        assert end_of(client, topic, 2, version) == (2, 3)
        assert end_of(client, topic, 3, version) == (-1, -1)
        assert end_of(client, topic, -1, version) == (-1, -1)


@pytest.mark.parametrize("version", range(2, 5))
def test_the_current_epoch_is_checked(crashed: tuple[BrokerProcess, str], version: int) -> None:
    broker, topic = crashed
    with WireClient(broker.bootstrap) as client:
        for current, code in (
            (1, ErrorCode.FENCED_LEADER_EPOCH),
            (2, ErrorCode.NONE),
            (3, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ):
            answer = ask(client, topic, 0, current=current, version=version)
            assert answer.error_code == code
            if code:
                assert (answer.leader_epoch, answer.end_offset) == (-1, -1)


def test_an_empty_partition(client: WireClient) -> None:
    topic = create_topic(client)
    assert end_of(client, topic, 0) == (0, 0)


def test_topics_and_partitions_that_are_not_there(client: WireClient) -> None:
    topic = create_topic(client)
    assert ask(client, "nowhere", 0).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ask(client, topic, 0, partition=3).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
