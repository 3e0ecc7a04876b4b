"""A partition whose files fail goes offline and says why; it waits for a person, and the rest goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from calls import (
    append,
    at,
    batch_of,
    create_topic,
    delete_topic,
    describe_topic,
    fetch,
    fetch_request,
    list_offset,
    produce,
    produce_request,
    told,
    values_from,
)
from in_process import InProcessBroker, running_broker
from node.sick_disk import SickFiles
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from ottla.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from ottla.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from wire import WireClient

OFFLINE = ErrorCode.KAFKA_STORAGE_ERROR
LATEST, SOME_TIME = -1, 1


@pytest.fixture
def disk() -> SickFiles:
    return SickFiles()


@pytest.fixture
def running(tmp_path: Path, disk: SickFiles) -> Iterator[InProcessBroker]:
    with running_broker(tmp_path, files=disk) as running:
        yield running


@pytest.fixture
def client(running: InProcessBroker) -> Iterator[WireClient]:
    with WireClient(running.bootstrap) as client:
        yield client


@pytest.fixture
def topic(client: WireClient, disk: SickFiles) -> str:
    """Of two partitions, the first of which a failed write has taken offline."""
    topic = create_topic(client, partitions=2)
    for partition in range(2):
        append(client, topic, b"v", partition=partition)
    disk.failing["append"] = f"*/{topic}-0/*.log"
    assert produce(client, topic, batch_of(b"w")).error_code == OFFLINE
    disk.failing.clear()
    return topic


def test_every_request_for_it_is_answered_with_the_reason_and_others_are_served(
    client: WireClient, topic: str
) -> None:
    refused = produce(client, topic, batch_of(b"w"))
    assert refused.error_code == OFFLINE
    assert "is offline" in (refused.error_message or "")
    assert "the disk is sick" in (refused.error_message or "")
    assert fetch(client, topic, at(0))[0].error_code == OFFLINE
    assert list_offset(client, topic, LATEST).error_code == OFFLINE
    assert list_offset(client, topic, SOME_TIME).error_code == OFFLINE
    trim = DeleteRecordsRequest([DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, -1)])])
    assert client.call(trim, 2).topics[0].partitions[0].error_code == OFFLINE
    asked = OffsetForLeaderEpochRequest(-1, [OffsetForLeaderTopic(topic, [OffsetForLeaderPartition(0)])])
    assert client.call(asked, 4).topics[0].partitions[0].error_code == OFFLINE
    assert append(client, topic, b"w", partition=1) == 1
    assert values_from(client, topic, partition=1) == [b"v", b"w"]


def test_metadata_names_no_leader_and_this_broker_among_the_offline(client: WireClient, topic: str) -> None:
    offline, healthy = describe_topic(client, topic).partitions
    assert (offline.error_code, offline.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert (offline.replica_nodes, offline.offline_replicas) == ((1,), (1,))
    assert (healthy.error_code, healthy.leader_id, healthy.offline_replicas) == (ErrorCode.NONE, 1, ())
    described = client.call(DescribeTopicPartitionsRequest([TopicRequest(topic)]), 0).topics[0].partitions[0]
    assert (described.error_code, described.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert described.offline_replicas == (1,)


def test_log_dirs_show_it_as_not_in_use(client: WireClient, topic: str) -> None:
    (directory,) = client.call(DescribeLogDirsRequest(), 4).results
    assert directory.error_code == ErrorCode.NONE
    (described,) = directory.topics
    lags = {each.partition_index: each.offset_lag for each in described.partitions}
    assert lags == {0: -1, 1: 0}


def test_the_broker_knows_what_is_offline_and_why(
    running: InProcessBroker, client: WireClient, topic: str
) -> None:
    assert running.metric("partitions.offline") == 1
    (offline,) = running.on_owner(lambda: running.broker.partitions.offline)
    assert (offline.topic, offline.index) == (topic, 0)
    assert "the disk is sick" in offline.reason
    delete_topic(client, topic)
    assert running.metric("partitions.offline") == 0
    create_topic(client, topic, partitions=2)
    assert append(client, topic, b"anew") == 0


def test_a_restart_serves_it_again_with_what_was_acknowledged(tmp_path: Path) -> None:
    disk = SickFiles()
    with running_broker(tmp_path, files=disk) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client)
        append(client, topic, b"v")
        disk.failing["append"] = "*.log"
        assert produce(client, topic, batch_of(b"w")).error_code == OFFLINE
    assert running.failure is None
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        assert values_from(client, topic) == [b"v"]
        assert append(client, topic, b"w") == 1


def test_who_waits_for_it_hears_at_once(
    client: WireClient, running: InProcessBroker, disk: SickFiles
) -> None:
    topic = create_topic(client)
    append(client, topic, b"v")
    with WireClient(running.bootstrap) as writer, WireClient(running.bootstrap) as reader:
        reader.send(fetch_request(topic, at(1), max_wait_ms=600_000), 12)
        disk.held.clear()
        writer.send(produce_request(topic, batch_of(b"w"), timeout_ms=600_000), 12)
        assert writer.is_silent(0.1)
        disk.failing["append"] = "*.log"
        assert produce(client, topic, batch_of(b"x"), acks=1).error_code == OFFLINE
        (answer,) = writer.receive().responses[0].partition_responses
        assert answer.error_code == OFFLINE
        assert told(reader.receive().responses)[0].error_code == OFFLINE
        disk.held.set()
    disk.failing.clear()
    assert append(client, create_topic(client), b"v") == 0
