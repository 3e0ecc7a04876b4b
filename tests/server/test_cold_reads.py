"""Fetch of data that is not in memory: a worker reads it first, and the turn waits for no disk."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from calls import append, at, create_topic, describe_topic, fetch, fetch_request, values_in
from faults.cold_disk import ColdFiles
from in_process import InProcessBroker, running_broker
from node.sick_disk import SickFiles
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.server import connection
from ottla.server.warming import is_resident
from wire import WireClient


@pytest.fixture
def disk() -> SickFiles:
    return SickFiles()


@pytest.fixture
def running(tmp_path: Path, disk: SickFiles, monkeypatch: pytest.MonkeyPatch) -> Iterator[InProcessBroker]:
    """A broker to which all records are cold."""
    monkeypatch.setattr(connection, "is_resident", lambda *_: False)
    with running_broker(tmp_path, files=disk) as running:
        yield running


def test_cold_data_is_given_as_any_other(running: InProcessBroker) -> None:
    with WireClient(running.bootstrap) as client:
        topic = create_topic(client, partitions=2)
        append(client, topic, b"a", partition=0)
        append(client, topic, b"b" * 500_000, partition=1)
        first, second = fetch(client, topic, at(0, 0), at(0, 1))
        assert values_in(first) == [b"a"]
        assert values_in(second) == [b"b" * 500_000]


def test_others_are_served_while_a_worker_reads(running: InProcessBroker, disk: SickFiles) -> None:
    with WireClient(running.bootstrap) as client, WireClient(running.bootstrap) as reader:
        topic = create_topic(client)
        append(client, topic, b"v")
        disk.reads_held.clear()
        reader.send(fetch_request(topic, at(0)), 12)
        assert reader.is_silent(0.1)
        assert append(client, topic, b"w") == 1
        assert describe_topic(client, topic).error_code == ErrorCode.NONE
        disk.reads_held.set()
        (data,) = reader.receive().responses[0].partitions
        assert values_in(data) == [b"v"]  # as it was when it was asked for


def test_a_reader_that_leaves_meanwhile_is_forgotten(running: InProcessBroker, disk: SickFiles) -> None:
    with WireClient(running.bootstrap) as client:
        topic = create_topic(client)
        append(client, topic, b"v")
        disk.reads_held.clear()
        with WireClient(running.bootstrap) as reader:
            reader.send(fetch_request(topic, at(0)), 12)
            assert reader.is_silent(0.05)
        disk.reads_held.set()
        (data,) = fetch(client, topic, at(0))
        assert values_in(data) == [b"v"]


def test_data_that_cannot_be_read_takes_its_partition_offline_and_nobody_else(
    running: InProcessBroker, disk: SickFiles
) -> None:
    with WireClient(running.bootstrap) as client, WireClient(running.bootstrap) as reader:
        topic, other = create_topic(client), create_topic(client)
        append(client, topic, b"v")
        append(client, other, b"w")
        disk.failing["pread"] = f"*/{topic}-0/*.log"
        reader.send(fetch_request(topic, at(0)), 12)
        assert reader.is_closed_by_peer()  # the answer had begun
        (data,) = fetch(client, topic, at(0))
        assert data.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        (data,) = fetch(client, other, at(0))
        assert values_in(data) == [b"w"]


def test_data_that_was_just_written_is_warm(tmp_path: Path) -> None:
    """And what the system was told to forget is cold, where it can tell."""
    path = tmp_path / "data"
    path.write_bytes(bytes(1_000_000))
    handle = SickFiles().open(str(path))
    assert is_resident(handle, 0, 1_000_000)
    assert is_resident(handle, 100, 50)
    os.fsync(handle.fileno())
    os.posix_fadvise(handle.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    is_resident(handle, 0, 1_000_000)  # whatever this filesystem says, it says it at once
    handle.close()


@pytest.fixture
def cold_disk() -> ColdFiles:
    return ColdFiles()


@pytest.fixture
def cold_broker(tmp_path: Path, cold_disk: ColdFiles) -> Iterator[InProcessBroker]:
    """A broker to which indexes and headers are cold, with a topic of several segments."""
    settings = {"log.segment.bytes": str(1 << 20), "log.index.interval.bytes": "1000"}
    with running_broker(tmp_path, settings, files=cold_disk) as running:
        with WireClient(running.bootstrap) as client:
            create_topic(client, "several")
            for number in range(300):
                append(client, "several", b"%3d" % number + b"x" * 10_000)
        yield running


@pytest.mark.parametrize("offset", [0, 57, 133, 299])
def test_indexes_and_headers_are_read_by_a_worker(
    cold_broker: InProcessBroker, cold_disk: ColdFiles, offset: int
) -> None:
    cold_disk.chill()
    with WireClient(cold_broker.bootstrap) as client:
        (data,) = fetch(client, "several", at(offset))
        assert values_in(data)[0].startswith(b"%3d" % offset)
    assert cold_disk.threads_that_waited <= {"ottla-read-0", "ottla-read-1"}
    assert offset == 299 or cold_disk.threads_that_waited


def test_a_time_is_looked_up_by_a_worker(cold_broker: InProcessBroker, cold_disk: ColdFiles) -> None:
    cold_disk.chill()
    with WireClient(cold_broker.bootstrap) as client:
        asked = ListOffsetsTopic("several", [ListOffsetsPartition(0, -1, 1)])
        response = client.call(ListOffsetsRequest(-1, 0, [asked]), 7)
    (answer,) = response.topics[0].partitions
    assert (answer.error_code, answer.offset) == (ErrorCode.NONE, 0)
    assert cold_disk.threads_that_waited
    assert cold_disk.threads_that_waited <= {"ottla-read-0", "ottla-read-1"}


def test_workers_end_with_the_broker(tmp_path: Path) -> None:
    threads = threading.active_count()
    with running_broker(tmp_path):
        assert threading.active_count() > threads
    assert threading.active_count() == threads
