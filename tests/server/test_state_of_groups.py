"""`__consumer_offsets`: made on first use, few batches, durable before anybody is told, loaded back."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from calls import at, batch_of, batches_in, commit_request, create_topic, describe_topic, fetch, produce
from group_calls import Member, commit_code, committed, fetch_request, find_coordinator
from in_process import InProcessBroker, running_broker
from node.sick_disk import SickFiles
from ottla.coordinator.state_log import partition_for
from ottla.model.errors import ErrorCode
from ottla.model.topics import OFFSETS_TOPIC
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.records.content import Record, build_batch
from ottla.records.formats import records_of
from wire import WireClient

SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "2"}
DEADLINE_SECONDS = 30


@contextmanager
def broker_with(
    data_dir: Path, files: SickFiles | None = None, **settings: str
) -> Iterator[tuple[InProcessBroker, WireClient]]:
    given = SETTINGS | {name.replace("_", "."): value for name, value in settings.items()}
    with running_broker(data_dir, given, files=files) as running, WireClient(running.bootstrap) as client:
        yield running, client


def log_of_groups(client: WireClient, partition: int) -> list[bytes]:
    """Its batches."""
    (data,) = fetch(client, OFFSETS_TOPIC, at(0, partition))
    return batches_in(data)


def wait_for(condition: object) -> None:
    assert callable(condition)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# -- the topic -----------------------------------------------------------------------------------------------


def test_the_topic_is_made_when_the_first_group_is_asked_for(tmp_path: Path) -> None:
    with broker_with(tmp_path, offsets_topic_segment_bytes="2000000") as (_, client):
        assert describe_topic(client, OFFSETS_TOPIC).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        find_coordinator(client, "g")
        topic = describe_topic(client, OFFSETS_TOPIC)
        assert (topic.error_code, topic.is_internal, len(topic.partitions)) == (ErrorCode.NONE, True, 2)
        described = client.call(DescribeConfigsRequest([DescribeConfigsResource(2, OFFSETS_TOPIC)]), 4)
        configs = {each.name: each.value for each in described.results[0].configs}
        assert configs["cleanup.policy"] == "compact"
        assert configs["segment.bytes"] == "2000000"
        assert configs["compression.type"] == "producer"


def test_asking_for_its_metadata_does_not_make_it(tmp_path: Path) -> None:
    with broker_with(tmp_path) as (_, client):
        request = MetadataRequest([MetadataRequestTopic(name=OFFSETS_TOPIC)], allow_auto_topic_creation=True)
        (topic,) = client.call(request, 12).topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_one_that_a_person_made_before_keeps_its_partitions(tmp_path: Path) -> None:
    with broker_with(tmp_path) as (_, client):
        create_topic(client, OFFSETS_TOPIC, partitions=7, configs={"cleanup.policy": "compact"})
        topic = create_topic(client)
        find_coordinator(client, "groupid")
        Member(client, "groupid").commit(topic, 5)
        assert len(describe_topic(client, OFFSETS_TOPIC).partitions) == 7
        assert len(log_of_groups(client, partition_for("groupid", 7))) == 1


def test_clients_cannot_write_to_it_unless_they_are_kafkas_tools(tmp_path: Path) -> None:
    with broker_with(tmp_path) as (running, client):
        find_coordinator(client, "g")
        answer = produce(client, OFFSETS_TOPIC, batch_of(b"v"))
        assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        with WireClient(running.bootstrap, client_id="__admin_client") as tool:
            assert produce(tool, OFFSETS_TOPIC, batch_of(b"v")).error_code == ErrorCode.NONE


def test_a_request_before_the_topic_is_there_finds_no_coordinator(tmp_path: Path) -> None:
    with broker_with(tmp_path) as (_, client):
        assert Member(client, "g").heartbeat() == ErrorCode.NOT_COORDINATOR
        assert client.call(ListGroupsRequest(), 5).groups == ()


# -- writing -------------------------------------------------------------------------------------------------


def test_commits_of_one_turn_are_one_batch(tmp_path: Path) -> None:
    with broker_with(tmp_path) as (running, client), ExitStack() as clients:
        topic = create_topic(client)
        find_coordinator(client, "g")
        others = [clients.enter_context(WireClient(running.bootstrap)) for _ in range(20)]
        for other in others:  # known to the reactor
            assert Member(other, "g").commit(topic, 0) == ErrorCode.NONE
        before = len(log_of_groups(client, partition_for("g", 2)))
        pause = threading.Event()
        running.broker._reactor.post(lambda: pause.wait(DEADLINE_SECONDS))
        for number, other in enumerate(others):
            other.send(commit_request("g", topic, number), 9)
        time.sleep(0.2)  # all have arrived when the broker looks again
        pause.set()
        assert {commit_code(other.receive()) for other in others} == {ErrorCode.NONE}
        batches = log_of_groups(client, partition_for("g", 2))[before:]
        assert sum(len(list(records_of(batch))) for batch in batches) == len(others)
        assert len(batches) <= 2


@pytest.mark.parametrize("codec", range(5))
def test_the_log_is_compressed_as_the_setting_says(tmp_path: Path, codec: int) -> None:
    with broker_with(tmp_path, offsets_topic_compression_codec=str(codec)) as (_, client):
        topic = create_topic(client)
        find_coordinator(client, "g")
        Member(client, "g").commit(topic, 5)
        (batch,) = log_of_groups(client, partition_for("g", 2))
        assert batch[22] & 7 == codec


def test_nobody_is_told_before_the_disk_has_it(tmp_path: Path) -> None:
    disk = SickFiles()
    disk.held_paths = f"*{OFFSETS_TOPIC}*"
    with broker_with(tmp_path, disk) as (running, client), WireClient(running.bootstrap) as reader:
        topic = create_topic(client)
        find_coordinator(client, "g")
        Member(client, "g").commit(topic, 1)
        disk.held.clear()
        client.send(commit_request("g", topic, 2), 9)
        assert client.is_silent(0.3), "the commit is not durable"
        member = Member(reader, "g")
        member.join()
        reader.send(member.sync_request({member.id: b"all"}), 5)
        assert reader.is_silent(0.3), "neither is the assignment"
        with WireClient(running.bootstrap) as third:
            third.send(commit_request("other", topic, 2), 9)
            assert third.is_silent(0.1)
        disk.held.set()
        assert commit_code(client.receive()) == ErrorCode.NONE
        assert bytes(reader.receive().assignment) == b"all"
        assert committed(client, "g", topic) == 2


def test_an_offset_is_not_told_before_the_disk_has_it(tmp_path: Path) -> None:
    disk = SickFiles()
    disk.held_paths = f"*{OFFSETS_TOPIC}*"
    with broker_with(tmp_path, disk) as (running, client), WireClient(running.bootstrap) as reader:
        topic = create_topic(client)
        find_coordinator(client, "g")
        disk.held.clear()
        client.send(commit_request("g", topic, 2), 9)
        assert client.is_silent(0.2)
        found: list[int] = []
        asking = threading.Thread(target=lambda: found.append(committed(reader, "g", topic)))
        asking.start()
        asking.join(0.3)
        assert not found
        disk.held.set()
        asking.join(DEADLINE_SECONDS)
        assert found == [2]


def test_a_full_disk_is_told_and_what_was_not_written_is_forgotten(tmp_path: Path) -> None:
    disk = SickFiles()
    with broker_with(tmp_path, disk) as (_, client):
        topic = create_topic(client)
        find_coordinator(client, "g")
        assert Member(client, "g").commit(topic, 1) == ErrorCode.NONE
        disk.error = errno.ENOSPC
        disk.failing["append"] = f"*{OFFSETS_TOPIC}*"
        assert Member(client, "g").commit(topic, 2) == ErrorCode.NOT_COORDINATOR
        # Loaded anew, and known to fail.
        wait_for(lambda: Member(client, "g").commit(topic, 2) == ErrorCode.COORDINATOR_NOT_AVAILABLE)
        assert committed(client, "g", topic) == 1
        del disk.failing["append"]
        wait_for(lambda: Member(client, "g").commit(topic, 3) == ErrorCode.NONE)
        assert committed(client, "g", topic) == 3


# -- loading -------------------------------------------------------------------------------------------------


def test_groups_and_offsets_are_there_after_a_restart(tmp_path: Path) -> None:
    groups = [f"group-{number}" for number in range(20)]
    with broker_with(tmp_path) as (_, client):
        topic = create_topic(client)
        find_coordinator(client, "g")
        for number, group in enumerate(groups):
            Member(client, group).commit(topic, number)
        member = Member(client, "g")
        member.settle()
        member.commit(topic, 77)
    with broker_with(tmp_path) as (_, client):
        again = Member(client, "g")
        again.id, again.generation = member.id, member.generation
        wait_for(lambda: client.call(ListGroupsRequest(), 5).error_code == ErrorCode.NONE)
        assert again.heartbeat() == ErrorCode.NONE
        assert bytes(again.sync().assignment) == b"all"
        assert committed(client, "g", topic) == 77
        assert [committed(client, group, topic) for group in groups] == list(range(20))
        assert len(client.call(ListGroupsRequest(), 5).groups) == 21


def check_refused(client: WireClient, group: str, topic: str, version: int, code: ErrorCode) -> None:
    """Wherever a client may look: no partition seems to have no offset."""
    answer = client.call(fetch_request(group, topic, 0, version), version)
    if version >= 8:
        (told,) = answer.groups
        assert (told.error_code, told.topics) == (code, ())
        return
    assert answer.error_code == (code if version >= 2 else ErrorCode.NONE)
    ((partition,),) = (each.partitions for each in answer.topics)
    assert (partition.partition_index, partition.error_code) == (0, code)


def test_while_one_partition_is_loading_others_are_served(tmp_path: Path) -> None:
    slow, quick = "groupid", "g"
    assert partition_for(slow, 2) != partition_for(quick, 2)
    with broker_with(tmp_path) as (_, client):
        topic = create_topic(client)
        find_coordinator(client, slow)
        assert Member(client, slow).commit(topic, 5) == ErrorCode.NONE
    disk = SickFiles()
    disk.reads_held.clear()
    with broker_with(tmp_path, disk) as (_, client):
        try:
            assert Member(client, slow).commit(topic, 6) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            assert client.call(ListGroupsRequest(), 5).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            assert Member(client, slow).heartbeat() == ErrorCode.NONE, "as in Kafka: nobody is dead yet"
            assert Member(client, quick).commit(topic, 1) == ErrorCode.NONE
            for version in range(1, 10):
                check_refused(client, slow, topic, version, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        finally:
            disk.reads_held.set()
        wait_for(lambda: client.call(ListGroupsRequest(), 5).error_code == ErrorCode.NONE)
        assert committed(client, slow, topic) == 5


def test_a_strangers_bytes_are_skipped(tmp_path: Path) -> None:
    with broker_with(tmp_path) as (running, client):
        topic = create_topic(client)
        find_coordinator(client, "g")
        Member(client, "g").commit(topic, 5)
        place = partition_for("g", 2)
        junk = [
            Record(0, 0, b"", b""),
            Record(1, 0, b"hello", b"world"),
            Record(2, 0, b"\0\1\0\1g\0\1t\0\0\0\0", b"\0\3"),
            Record(3, 0, b"\0\2\0\1g", b"\xff" * 50),
        ]
        with WireClient(running.bootstrap, client_id="__admin_client") as tool:
            answer = produce(tool, OFFSETS_TOPIC, build_batch(junk), partition=place)
            assert answer.error_code == ErrorCode.NONE
    with broker_with(tmp_path) as (_, client):
        wait_for(lambda: client.call(ListGroupsRequest(), 5).error_code == ErrorCode.NONE)
        assert committed(client, "g", topic) == 5


def test_a_topic_deleted_takes_its_groups_along_and_a_new_one_starts_empty(tmp_path: Path) -> None:
    with broker_with(tmp_path) as (running, client), WireClient(running.bootstrap) as other:
        topic = create_topic(client)
        find_coordinator(client, "g")
        member = Member(client, "g")
        member.settle()
        member.commit(topic, 5)
        waiting = Member(other, "g")
        waiting.send_join(3)
        assert other.is_silent(0.2)
        client.call(DeleteTopicsRequest(topics=[DeleteTopicState(OFFSETS_TOPIC)]), 6)
        assert waiting.receive_join().error_code == ErrorCode.NOT_COORDINATOR
        assert member.heartbeat() == ErrorCode.NOT_COORDINATOR
        find_coordinator(client, "g")
        assert member.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
        assert committed(client, "g", topic) == -1


def test_offsets_of_a_topic_that_went_unnoticed_are_forgotten_at_the_next_start(tmp_path: Path) -> None:
    with broker_with(tmp_path) as (running, client):
        topic = create_topic(client)
        find_coordinator(client, "g")
        Member(client, "g").commit(topic, 5)
        groups = running.broker._services.groups
        running.on_owner(lambda: running.broker._controller.on_change.remove(groups.follow))
        client.call(DeleteTopicsRequest(topics=[DeleteTopicState(topic)]), 6)
    with broker_with(tmp_path) as (_, client):
        create_topic(client, topic)
        wait_for(lambda: client.call(ListGroupsRequest(), 5).error_code == ErrorCode.NONE)
        assert committed(client, "g", topic) == -1


def test_offsets_expire(tmp_path: Path) -> None:
    with broker_with(tmp_path, offsets_retention_check_interval_ms="50") as (running, client):
        topic = create_topic(client)
        find_coordinator(client, "g")
        Member(client, "g").commit(topic, 5)
        kept = Member(client, "kept")
        kept.commit(topic, 6)
        day_ms = 24 * 60 * 60 * 1000
        clock = running.broker.clock
        wall_ms = clock.wall_ms
        groups = running.broker._services.groups

        def age() -> None:
            partition = groups.find("g")
            commit = partition.machine.offsets.of_group("g")[topic][0]
            commit.commit_timestamp_ms = wall_ms() - 8 * day_ms  # type: ignore[misc]

        running.on_owner(age)
        wait_for(lambda: committed(client, "g", topic) == -1)
        assert committed(client, "kept", topic) == 6
        assert [each.group_id for each in client.call(ListGroupsRequest(), 5).groups] == ["kept"]
