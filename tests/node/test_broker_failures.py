"""When the disk fails: nothing is promised that it does not hold, and what can go on goes on."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
from fnmatch import fnmatch
from pathlib import Path

import pytest

from calls import (
    append,
    at,
    batch_of,
    create_topic,
    delete_topic,
    describe_topic,
    end_offset,
    fetch_request,
    produce,
    produce_request,
    unique_name,
    values_from,
)
from in_process import InProcessBroker, running_broker, settings_for
from node.sick_disk import SickFiles
from ottla.log.file_syncs import CAN_SYNC
from ottla.log.files import DirectoryLocked
from ottla.log.system_files import SystemFile
from ottla.model.errors import ErrorCode
from ottla.node import broker as broker_module
from ottla.node.broker import Broker
from ottla.node.failures import BrokerFailed
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from wire import PeerClosed, WireClient

CLEAN_MARKER = ".kafka_cleanshutdown"
NEVER = str(2**63 - 1)


def assert_it_failed(running: InProcessBroker, disk: SickFiles, data_dir: Path) -> None:
    failure = running.wait()
    assert isinstance(failure, BrokerFailed)
    assert "the disk is sick" in str(failure)
    assert not (data_dir / "log" / CLEAN_MARKER).exists()
    assert len({path for operation, path in disk.failed if operation == "sync"}) == len(disk.failed) == 1


def test_a_failed_sync_of_a_log_stops_the_broker_and_acknowledges_nothing(tmp_path: Path) -> None:
    disk = SickFiles()
    with running_broker(tmp_path, files=disk) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client)
        append(client, topic, b"safe")
        disk.failing["sync"] = "*.log"
        with pytest.raises(PeerClosed):
            append(client, topic, b"not safe")
        assert_it_failed(running, disk, tmp_path)
    # Another broker can take over the data at once, and finds what was acknowledged.
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        assert values_from(client, topic)[0] == b"safe"
        (partition,) = describe_topic(client, topic).partitions
        assert partition.leader_epoch == 1


def test_a_failed_sync_of_the_znode_log_stops_the_broker(tmp_path: Path) -> None:
    disk = SickFiles()
    with running_broker(tmp_path, files=disk) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client)
        disk.failing["sync"] = "*/coordination/*"
        with pytest.raises(PeerClosed):
            create_topic(client)
        assert_it_failed(running, disk, tmp_path)
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        assert describe_topic(client, topic).error_code == ErrorCode.NONE


def test_a_failed_direct_write_of_the_znode_log_stops_the_broker(tmp_path: Path) -> None:
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client)
        if not refuse_direct_writes("*/coordination/*"):
            pytest.skip("this file system has no direct writes")
        with pytest.raises(PeerClosed):
            create_topic(client)
        assert isinstance(running.wait(), BrokerFailed)
        assert not (tmp_path / "log" / CLEAN_MARKER).exists()
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        assert describe_topic(client, topic).error_code == ErrorCode.NONE


@pytest.mark.skipif(not CAN_SYNC, reason="not compiled, or not on Linux: workers sync then")
def test_a_sync_that_fails_in_the_lane_stops_the_broker_and_acknowledges_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = os.pipe()
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client)
        append(client, topic, b"safe")
        monkeypatch.setattr(SystemFile, "sync_fd", lambda file: pipe[0])  # which cannot be synced
        with pytest.raises(PeerClosed):
            append(client, topic, b"not safe")
        assert isinstance(running.wait(), BrokerFailed)
        assert not (tmp_path / "log" / CLEAN_MARKER).exists()
    monkeypatch.undo()
    for end in pipe:
        os.close(end)
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        assert values_from(client, topic)[0] == b"safe"


def refuse_direct_writes(paths: str) -> bool:
    """Puts read-only descriptors in the place of those of this process that write past the page cache."""
    found = False
    for fd in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):  # the list's own is closed by now
            path = os.readlink(f"/proc/self/fd/{fd}")
            if fnmatch(path, paths) and fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_DIRECT:
                read_only = os.open(path, os.O_RDONLY)
                os.dup2(read_only, fd, inheritable=False)
                os.close(read_only)
                found = True
    return found


def test_a_sync_that_fails_while_the_broker_stops_leaves_no_marker(tmp_path: Path) -> None:
    disk = SickFiles()
    with running_broker(tmp_path, files=disk) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client)
        disk.held.clear()
        client.send(produce_request(topic, batch_of(b"v")), 12)
        running.on_owner(lambda: None)
        disk.failing["sync"] = "*.log"
        running.broker.ask_to_stop()
        disk.held.set()
        assert_it_failed(running, disk, tmp_path)


def test_a_sync_that_fails_in_the_last_moment_leaves_no_marker(tmp_path: Path) -> None:
    disk = SickFiles()
    with running_broker(tmp_path, files=disk) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client, configs={"flush.messages": NEVER})
        append(client, topic, b"v")
        disk.failing["sync"] = "*.log"
        running.broker.ask_to_stop()
        assert_it_failed(running, disk, tmp_path)


def test_acks_wait_for_the_disk_and_readers_do_too(tmp_path: Path) -> None:
    disk = SickFiles()
    with running_broker(tmp_path, files=disk) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client)
        running.on_owner(lambda: None)
        with WireClient(running.bootstrap) as writer, WireClient(running.bootstrap) as reader:
            disk.held.clear()
            reader.send(fetch_request(topic, at(0), max_wait_ms=60_000), 12)
            writer.send(produce_request(topic, batch_of(b"v")), 12)
            assert writer.is_silent(0.1)
            assert reader.is_silent(0.05)
            assert produce(client, topic, batch_of(b"w"), acks=1).base_offset == 1  # the page cache will do
            assert reader.is_silent(0.05)
            assert describe_topic(client, topic).error_code == ErrorCode.NONE  # the broker itself goes on
            disk.held.set()
            assert writer.receive().responses[0].partition_responses[0].base_offset == 0
            assert reader.receive().responses[0].partitions[0].records


def test_a_slow_disk_does_not_hold_up_the_deletion_of_a_topic_and_its_writers_fail_at_once(
    tmp_path: Path,
) -> None:
    disk = SickFiles()
    disk.held_paths = "*.log"
    with running_broker(tmp_path, files=disk) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client)
        with WireClient(running.bootstrap) as writer:
            disk.held.clear()
            writer.send(produce_request(topic, batch_of(b"v"), timeout_ms=600_000), 12)
            assert writer.is_silent(0.1)
            delete_topic(client, topic)
            (answer,) = writer.receive().responses[0].partition_responses
            assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            other = unique_name("other")  # its files come behind those that go, and these wait for the disk
            client.send(CreateTopicsRequest(topics=[CreatableTopic(other, 1, 1)]), 7)
            assert client.is_silent(0.1)
            disk.held.set()
            assert client.receive().topics[0].error_code == ErrorCode.NONE
        assert append(client, other, b"v") == 0


def test_acks_all_that_time_out_say_so(tmp_path: Path) -> None:
    disk = SickFiles()
    with running_broker(tmp_path, files=disk) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client)
        disk.held.clear()
        response = client.call(produce_request(topic, batch_of(b"v"), timeout_ms=50), 12)
        assert response.responses[0].partition_responses[0].error_code == ErrorCode.REQUEST_TIMED_OUT
        disk.held.set()
        assert end_offset(client, topic) == 1


def test_a_topic_that_becomes_durable_syncs_what_it_has(tmp_path: Path) -> None:
    disk = SickFiles()
    with running_broker(tmp_path, files=disk) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client, configs={"flush.messages": NEVER})
        append(client, topic, b"v")
        log = running.broker.partitions.named(topic, 0).log
        assert running.on_owner(lambda: log.synced_offset) == 0
        resource = AlterConfigsResource(2, topic, [AlterableConfig("flush.messages", 0, "1")])
        client.call(IncrementalAlterConfigsRequest([resource]), 1)
        append(client, create_topic(client), b"x")  # a round later
        assert running.on_owner(lambda: log.synced_offset) == 1


def test_a_full_disk_refuses_the_write_and_takes_the_next(tmp_path: Path) -> None:
    disk = SickFiles()
    with running_broker(tmp_path, files=disk) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client)
        append(client, topic, b"before")
        disk.error = errno.ENOSPC
        disk.failing["append"] = "*.log"
        answer = produce(client, topic, batch_of(b"lost"))
        assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert "the disk is sick" in (answer.error_message or "")
        assert running.on_owner(running.broker._directories.by_emptiness)[0].ballast.is_spent
        disk.failing.clear()
        running.on_owner(running.broker._housekeeping._tick)
        assert append(client, topic, b"after") == 1
        assert values_from(client, topic) == [b"before", b"after"]


def retry_unmade(running: InProcessBroker) -> None:
    """Returns when that has been tried."""
    settled = threading.Event()
    running.on_owner(running.broker._hosting.retry_unmade)
    running.on_owner(lambda: running.broker._hosting.when_hosted(settled.set))
    assert settled.wait(30)


@pytest.mark.parametrize("operation", ["make_directory", "create"])
def test_a_partition_whose_files_cannot_be_made_does_not_end_the_broker(
    tmp_path: Path, operation: str
) -> None:
    disk = SickFiles()
    with running_broker(tmp_path, files=disk) as running, WireClient(running.bootstrap) as client:
        other = create_topic(client)
        disk.failing[operation] = "*/log/unlucky-1*"
        client.call(CreateTopicsRequest([CreatableTopic("unlucky", 3, 1)]), 7)
        append(client, "unlucky", b"v", partition=2)
        refused = produce(client, "unlucky", batch_of(b"v"), partition=1)
        assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert "its files cannot be made" in (refused.error_message or "")
        append(client, other, b"v")
        retry_unmade(running)
        assert running.metric("partitions.offline") == 1
        disk.failing.clear()
        retry_unmade(running)
        append(client, "unlucky", b"v", partition=1)
        assert running.metric("partitions.offline") == 0
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        assert end_offset(client, "unlucky", 1) == end_offset(client, "unlucky", 2) == 1


def test_files_that_cannot_be_removed_do_not_keep_a_topic_from_being_deleted(tmp_path: Path) -> None:
    disk = SickFiles()
    with running_broker(tmp_path, files=disk) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client)
        disk.failing["rename"] = f"*/log/{topic}-0"
        delete_topic(client, topic)
        assert describe_topic(client, topic).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        append(client, create_topic(client), b"v")
    # What is left of it is found at the next start, and is nobody's.
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        create_topic(client, topic)
        assert end_offset(client, topic) == 0


def test_a_partition_that_cannot_be_read_stays_offline_until_its_topic_is_deleted(tmp_path: Path) -> None:
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client, partitions=2)
        append(client, topic, b"v", partition=0)
        append(client, topic, b"v", partition=1)
    log_file = tmp_path / "log" / f"{topic}-0" / "00000000000000000000.log"
    log_file.rename(log_file.with_suffix(".lost"))
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        assert produce(client, topic, batch_of(b"w")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert end_offset(client, topic, 1) == 1
        delete_topic(client, topic)
        create_topic(client, topic)
        append(client, topic, b"anew")


def test_a_log_without_its_topic_id_is_taken_and_gets_it_back(tmp_path: Path) -> None:
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client)
        append(client, topic, b"v")
    metadata = tmp_path / "log" / f"{topic}-0" / "partition.metadata"
    before = metadata.read_bytes()
    metadata.unlink()
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        assert values_from(client, topic) == [b"v"]
        assert metadata.read_bytes() == before


def test_a_clean_start_reads_nothing_of_the_logs(tmp_path: Path) -> None:
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client)
        for _ in range(10):
            append(client, topic, bytes(100_000))
    disk = SickFiles()
    with running_broker(tmp_path, files=disk):
        read = {path: count for path, count in disk.bytes_read.items() if path.endswith(".log")}
        assert sum(read.values()) < 10_000, read


def test_a_stop_does_not_wait_for_ever_for_a_reader_that_is_stuck(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_module, "_DRAIN_MS_MAX", 200)
    with (
        running_broker(tmp_path) as running,
        WireClient(running.bootstrap) as client,
        WireClient(running.bootstrap) as stuck,
    ):
        topic = create_topic(client, configs={"max.message.bytes": str(20 * 1024 * 1024)})
        append(client, topic, bytes(16 * 1024 * 1024))
        stuck.send(fetch_request(topic, at(0, bytes_max=2**30)), 12)
        stuck.socket.recv(1)  # the answer has begun; nobody reads on
        running.stop()
    assert (tmp_path / "log" / CLEAN_MARKER).exists()


def test_a_failed_start_lets_go_of_everything(tmp_path: Path) -> None:
    threads = threading.active_count()
    with running_broker(tmp_path) as running:
        settings = settings_for(tmp_path / "other", {"log.dirs": str(tmp_path / "log")})
        for _ in range(2):
            with pytest.raises(DirectoryLocked, match="another broker uses this directory"):
                Broker(settings).start()
        with WireClient(running.bootstrap) as client:
            create_topic(client)
    port = int(running.bootstrap.rpartition(":")[2])
    with running_broker(tmp_path, {"listeners": f"PLAINTEXT://127.0.0.1:{port}"}):
        with pytest.raises(BrokerFailed, match="Address already in use"):
            Broker(settings_for(tmp_path / "third", {"listeners": f"PLAINTEXT://127.0.0.1:{port}"})).start()
        assert not (tmp_path / "third").exists()
    assert threading.active_count() == threads
