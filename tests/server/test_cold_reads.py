"""Fetch of data that is not in memory: a worker reads it first, and the turn waits for no disk."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from calls import append, at, create_topic, describe_topic, fetch, fetch_request, values_in
from in_process import InProcessBroker, running_broker
from node.sick_disk import SickFiles
from ottla.log.files import FileRange
from ottla.model.errors import ErrorCode
from ottla.server.handlers import fetch as fetch_handler
from ottla.server.warming import cold_ranges
from wire import WireClient


@pytest.fixture
def disk() -> SickFiles:
    return SickFiles()


@pytest.fixture
def running(tmp_path: Path, disk: SickFiles, monkeypatch: pytest.MonkeyPatch) -> Iterator[InProcessBroker]:
    """A broker to which all data is cold."""
    monkeypatch.setattr(fetch_handler, "cold_ranges", list[FileRange])
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


def test_data_that_cannot_be_read_costs_its_reader_the_connection_and_nobody_else(
    running: InProcessBroker, disk: SickFiles
) -> None:
    with WireClient(running.bootstrap) as client, WireClient(running.bootstrap) as reader:
        topic = create_topic(client)
        append(client, topic, b"v")
        disk.failing["pread"] = "*.log"
        reader.send(fetch_request(topic, at(0)), 12)
        assert reader.is_closed_by_peer()
        disk.failing.clear()
        (data,) = fetch(client, topic, at(0))
        assert values_in(data) == [b"v"]


def test_data_that_was_just_written_is_warm(tmp_path: Path) -> None:
    """And what the system was told to forget is cold, where it can tell."""
    path = tmp_path / "data"
    path.write_bytes(bytes(1_000_000))
    handle = SickFiles().open(str(path))
    ranges: Sequence[FileRange] = [FileRange(handle, 0, 1_000_000), FileRange(handle, 100, 50)]
    assert cold_ranges(ranges) == []
    os.fsync(handle.fileno())
    os.posix_fadvise(handle.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    assert set(cold_ranges(ranges)) <= set(ranges)  # the probe itself may bring some of it back
    handle.close()


def test_workers_end_with_the_broker(tmp_path: Path) -> None:
    threads = threading.active_count()
    with running_broker(tmp_path):
        assert threading.active_count() > threads
    assert threading.active_count() == threads
