"""A disk that takes its time to make or rename directories: topics come and go later, nobody else waits."""

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
    list_offset,
    produce,
    produce_request,
    topic_id_of,
    values_from,
)
from in_process import InProcessBroker, running_broker
from node.sick_disk import SickFiles
from ottla.log.checkpoints import CLEAN_SHUTDOWN
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from wire import WireClient

LATEST = -1


@pytest.fixture
def disk() -> SickFiles:
    return SickFiles()


@pytest.fixture
def running(tmp_path: Path, disk: SickFiles) -> Iterator[InProcessBroker]:
    with running_broker(tmp_path, files=disk) as running:
        yield running
        disk.directories_held.set()
        disk.held.set()


@pytest.fixture
def client(running: InProcessBroker) -> Iterator[WireClient]:
    with WireClient(running.bootstrap) as client:
        yield client


@pytest.fixture
def admin(running: InProcessBroker) -> Iterator[WireClient]:
    with WireClient(running.bootstrap) as client:
        yield client


def ask_for_topic(admin: WireClient, name: str, partitions: int = 1) -> None:
    """Without waiting for the answer."""
    admin.send(CreateTopicsRequest([CreatableTopic(name, partitions, 1)]), 7)


def await_known(client: WireClient, name: str) -> None:
    while describe_topic(client, name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        pass


def created(admin: WireClient) -> ErrorCode:
    return ErrorCode(admin.receive().topics[0].error_code)


def test_others_are_served_and_the_answer_waits_for_the_files(
    client: WireClient, admin: WireClient, disk: SickFiles
) -> None:
    other = create_topic(client)
    disk.directories_held.clear()
    ask_for_topic(admin, "slow", partitions=100)
    for number in range(20):
        assert append(client, other, b"v") == number
    assert admin.is_silent(0.1)
    disk.directories_held.set()
    assert created(admin) == ErrorCode.NONE
    for partition in range(100):
        assert append(client, "slow", b"v", partition=partition) == 0


def test_who_waits_for_so_long_only_is_told_that_it_goes_on(
    client: WireClient, admin: WireClient, disk: SickFiles
) -> None:
    topic = create_topic(client)
    disk.directories_held.clear()
    admin.send(CreateTopicsRequest([CreatableTopic("slow", 1, 1)], timeout_ms=50), 7)
    assert created(admin) == ErrorCode.REQUEST_TIMED_OUT
    admin.send(CreatePartitionsRequest([CreatePartitionsTopic(topic, 3, None)], timeout_ms=50), 3)
    assert admin.receive().results[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    disk.directories_held.set()
    admin.send(CreatePartitionsRequest([CreatePartitionsTopic(topic, 4, None)]), 3)  # comes behind them
    assert admin.receive().results[0].error_code == ErrorCode.NONE
    assert append(client, "slow", b"v") == 0
    assert append(client, topic, b"v", partition=2) == 0


def test_who_is_too_early_is_told_to_try_again(
    client: WireClient, admin: WireClient, disk: SickFiles
) -> None:
    disk.directories_held.clear()
    ask_for_topic(admin, "slow")
    await_known(client, "slow")
    (partition,) = describe_topic(client, "slow").partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert partition.offline_replicas == ()
    again = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert produce(client, "slow", batch_of(b"v")).error_code == again
    assert produce(client, "slow", batch_of(b"v"), acks=1).error_code == again
    assert fetch(client, "slow", at(0))[0].error_code == again
    assert list_offset(client, "slow", LATEST).error_code == again
    disk.directories_held.set()
    assert created(admin) == ErrorCode.NONE
    (partition,) = describe_topic(client, "slow").partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.NONE, 1)
    assert append(client, "slow", b"v") == 0


def test_a_topic_that_grows_is_served_meanwhile(
    client: WireClient, admin: WireClient, disk: SickFiles
) -> None:
    topic = create_topic(client)
    disk.directories_held.clear()
    admin.send(CreatePartitionsRequest([CreatePartitionsTopic(topic, 50, None)]), 3)
    assert append(client, topic, b"v") == 0
    assert admin.is_silent(0.1)
    assert [each.leader_id for each in describe_topic(client, topic).partitions] == [1] + 49 * [-1]
    disk.directories_held.set()
    assert admin.receive().results[0].error_code == ErrorCode.NONE
    assert [each.leader_id for each in describe_topic(client, topic).partitions] == 50 * [1]


def test_topics_made_by_asking_for_them_are_told_when_they_can_be_used(
    client: WireClient, admin: WireClient, disk: SickFiles
) -> None:
    disk.directories_held.clear()
    asked = MetadataRequest(topics=[MetadataRequestTopic(name="asked")], allow_auto_topic_creation=True)
    admin.send(asked, 12)
    assert admin.is_silent(0.1)
    disk.directories_held.set()
    assert admin.receive().topics[0].partitions[0].leader_id == 1
    assert append(client, "asked", b"v") == 0


def test_a_coordinator_is_named_when_its_log_can_be_used(
    client: WireClient, admin: WireClient, disk: SickFiles
) -> None:
    disk.directories_held.clear()
    for peer in (admin, client):
        peer.send(FindCoordinatorRequest(key="g", key_type=0), 3)
        assert peer.is_silent(0.1)
    disk.directories_held.set()
    for peer in (admin, client):
        found = peer.receive()
        assert (found.error_code, found.node_id) == (ErrorCode.NONE, 1)


def test_deleted_while_its_files_are_made_and_made_anew_at_once(
    client: WireClient, admin: WireClient, disk: SickFiles, tmp_path: Path
) -> None:
    disk.directories_held.clear()
    ask_for_topic(admin, "twin", partitions=40)
    await_known(client, "twin")
    former = topic_id_of(client, "twin")
    assert client.call(DeleteTopicsRequest(topic_names=["twin"]), 5).responses[0].error_code == 0
    assert describe_topic(client, "twin").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ask_for_topic(client, "twin", partitions=40)
    assert client.is_silent(0.1)
    disk.directories_held.set()
    assert created(admin) == created(client) == ErrorCode.NONE
    assert topic_id_of(client, "twin") != former
    for partition in range(40):
        assert append(client, "twin", b"v", partition=partition) == 0
        metadata = tmp_path / "log" / f"twin-{partition}" / "partition.metadata"
        assert metadata.exists()


def test_a_topic_is_deleted_at_once_though_its_directories_go_later(
    client: WireClient, admin: WireClient, disk: SickFiles
) -> None:
    other = create_topic(client)
    topic = create_topic(client, partitions=100)
    append(client, topic, b"old")
    disk.directories_held.clear()
    delete_topic(client, topic)
    assert describe_topic(client, topic).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ask_for_topic(admin, topic)
    assert append(client, other, b"v") == 0
    assert admin.is_silent(0.1)
    disk.directories_held.set()
    assert created(admin) == ErrorCode.NONE
    append(client, topic, b"new")
    assert values_from(client, topic) == [b"new"]


def test_files_that_are_being_synced_are_out_of_the_way_when_the_name_is_used_again(
    client: WireClient, admin: WireClient, disk: SickFiles, running: InProcessBroker
) -> None:
    topic = create_topic(client)
    append(client, topic, b"old")
    disk.held_paths = f"*/{topic}-0/*"
    disk.held.clear()
    with WireClient(running.bootstrap) as writer:
        writer.send(produce_request(topic, batch_of(b"w")), 12)
        assert writer.is_silent(0.1)
        delete_topic(client, topic)
        ask_for_topic(admin, topic)
        (refused,) = writer.receive().responses[0].partition_responses
        assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await_known(client, topic)
        assert describe_topic(client, topic).partitions[0].leader_id == -1  # the broker does not wait
        assert admin.is_silent(0.1)
        disk.held.set()
        assert created(admin) == ErrorCode.NONE
    append(client, topic, b"new")
    assert values_from(client, topic) == [b"new"]


def test_a_stop_waits_for_the_sync_of_files_that_were_made_during_it(tmp_path: Path) -> None:
    disk = SickFiles()
    with running_broker(tmp_path, files=disk) as running, WireClient(running.bootstrap) as client:
        disk.directories_held.clear()
        with WireClient(running.bootstrap) as admin:
            ask_for_topic(admin, "late")
            await_known(client, "late")
            disk.held_paths = "*/late-0*"
            disk.held.clear()
            running.broker.ask_to_stop()
            disk.directories_held.set()
            assert created(admin) == ErrorCode.NONE
            disk.held.set()
    assert (tmp_path / "log" / CLEAN_SHUTDOWN).exists()


def test_a_stop_in_the_middle_leaves_a_topic_that_the_next_start_completes(tmp_path: Path) -> None:
    disk = SickFiles()
    with running_broker(tmp_path, files=disk) as running, WireClient(running.bootstrap) as client:
        gone = create_topic(client, partitions=100)
        disk.directories_held.clear()
        with WireClient(running.bootstrap) as admin:
            ask_for_topic(admin, "half", partitions=100)
            await_known(client, "half")
            delete_topic(client, gone)
            running.broker.ask_to_stop()
        disk.directories_held.set()
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        assert [each.leader_id for each in describe_topic(client, "half").partitions] == 100 * [1]
        for partition in range(100):
            assert append(client, "half", b"v", partition=partition) == 0
        assert describe_topic(client, gone).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert not list((tmp_path / "log").glob(f"{gone}-?"))
