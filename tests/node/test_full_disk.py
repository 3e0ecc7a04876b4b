"""A full disk refuses writes and nothing else, and the broker goes on by itself when there is room again."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from calls import (
    append,
    batch_of,
    create_topic,
    delete_topic,
    describe_topic,
    end_offset,
    list_offset,
    produce,
    values_from,
)
from faults.small_disk import small_disk
from in_process import InProcessBroker, running_broker
from ottla.model.errors import ErrorCode
from ottla.node import housekeeping
from ottla.node.failures import BrokerFailed
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from wire import WireClient

FULL = ErrorCode.KAFKA_STORAGE_ERROR
EARLIEST = -2
DISK_MIB = 24
KIB = 1024


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "small", DISK_MIB) as path:
        yield path


@pytest.fixture
def running(disk: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InProcessBroker]:
    monkeypatch.setattr(housekeeping, "_TICK_MS", 20)
    monkeypatch.setattr(housekeeping, "_RETENTION_ON_FULL_DISK_MS", 20)
    with running_broker(disk) as running:
        yield running


@pytest.fixture
def client(running: InProcessBroker) -> Iterator[WireClient]:
    with WireClient(running.bootstrap) as client:
        yield client


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def fill(disk: Path, name: str = "somebody-else") -> Path:
    """Somebody else takes all the room there is."""
    path = disk / name
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4 * KIB))
    return path


def fill_by_writing(client: WireClient, topic: str) -> int:
    """How many records were acknowledged before the first refusal."""
    for count in range(1_000):
        answer = produce(client, topic, batch_of(os.urandom(256 * KIB)))
        if answer.error_code != ErrorCode.NONE:
            assert answer.error_code == FULL
            return count
    raise AssertionError("the disk does not get full")


def test_writes_are_refused_reads_go_on_and_writes_go_on_when_there_is_room(
    client: WireClient, disk: Path
) -> None:
    topic = create_topic(client)
    append(client, topic, b"before")
    in_the_way = fill(disk)
    acknowledged = fill_by_writing(client, topic)  # what fits into the room of the index and log files
    assert values_from(client, topic)[0] == b"before"
    assert end_offset(client, topic) == 1 + acknowledged
    in_the_way.unlink()
    wait_until(lambda: produce(client, topic, batch_of(b"after")).error_code == ErrorCode.NONE)
    assert values_from(client, topic)[-1] == b"after"
    assert end_offset(client, topic) == 2 + acknowledged


def test_retention_makes_room_by_itself(client: WireClient) -> None:
    configs = {"retention.bytes": str(2**20), "segment.bytes": str(2**20), "file.delete.delay.ms": "3600000"}
    topic = create_topic(client, configs=configs)
    acknowledged = fill_by_writing(client, topic)
    assert acknowledged * 256 * KIB > (DISK_MIB // 2) * 1024 * KIB
    wait_until(lambda: produce(client, topic, batch_of(b"after")).error_code == ErrorCode.NONE)
    assert list_offset(client, topic, EARLIEST).offset > 0
    assert values_from(client, topic, list_offset(client, topic, EARLIEST).offset)[-1] == b"after"


def test_a_topic_can_be_deleted_on_a_full_disk_and_that_makes_room(client: WireClient) -> None:
    large = create_topic(client, configs={"file.delete.delay.ms": "3600000"})
    other = create_topic(client)
    fill_by_writing(client, large)
    assert produce(client, other, batch_of(b"v")).error_code == FULL
    delete_topic(client, large)
    wait_until(lambda: produce(client, other, batch_of(b"v")).error_code == ErrorCode.NONE)


def test_a_topic_whose_files_do_not_fit_is_told_as_such_and_can_be_used_when_there_is_room(
    client: WireClient, disk: Path
) -> None:
    topic = create_topic(client)
    in_the_way = fill(disk)
    fill_by_writing(client, topic)
    (told,) = client.call(CreateTopicsRequest([CreatableTopic("late", 2, 1)]), 7).topics
    assert told.error_code == FULL
    assert "topic 'late' is there, but 2 of its partitions cannot be used" in (told.error_message or "")
    assert "the disk is full" in (told.error_message or "")
    assert [each.leader_id for each in describe_topic(client, "late").partitions] == [-1, -1]
    in_the_way.unlink()
    wait_until(lambda: describe_topic(client, "late").partitions[1].leader_id == 1)
    assert append(client, "late", b"v", partition=1) == 0


def test_without_any_room_changes_are_refused_and_the_one_under_way_is_done_when_there_is_some(
    running: InProcessBroker, client: WireClient, disk: Path
) -> None:
    topic = create_topic(client)
    in_the_way = fill(disk)
    for ballast in disk.glob("*/.ottla_ballast"):
        ballast.unlink()
    more = fill(disk, "somebody-else-again")
    names = (f"new-{number}" for number in range(10_000))
    with WireClient(running.bootstrap) as other:
        deadline = time.monotonic() + 30
        answered = True
        while not running.on_owner(lambda: running.broker._coordination.is_blocked):
            assert time.monotonic() < deadline
            if answered:
                blocked = next(names)
                other.send(CreateTopicsRequest([CreatableTopic(blocked, 1, 1)]), 7)
            answered = not other.is_silent(0.3)
            if answered:
                other.receive()
        (refused,) = client.call(CreateTopicsRequest([CreatableTopic("refused", 1, 1)]), 7).topics
        assert refused.error_code == FULL
        assert "is full" in (refused.error_message or "")
        assert end_offset(client, topic) == 0
        in_the_way.unlink()
        more.unlink()
        assert other.receive().topics[0].error_code in (ErrorCode.NONE, FULL)  # there, with or without files
        wait_until(lambda: describe_topic(client, blocked).partitions[0].leader_id == 1)
        append(client, blocked, b"v")
        create_topic(client, "refused")


def test_a_stop_on_a_full_disk_is_clean_thanks_to_the_ballast(disk: Path) -> None:
    with running_broker(disk) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client)
        acknowledged = fill_by_writing(client, topic)
    assert (disk / "log" / ".kafka_cleanshutdown").exists()
    with running_broker(disk) as running, WireClient(running.bootstrap) as client:
        assert end_offset(client, topic) == acknowledged
        assert produce(client, topic, batch_of(b"v")).error_code == FULL


def test_a_stop_that_cannot_be_clean_for_want_of_room_is_a_failure(disk: Path) -> None:
    with running_broker(disk) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client)
        append(client, topic, b"v")
        (disk / "log" / ".ottla_ballast").unlink()
        in_the_way = fill(disk)
        running.broker.ask_to_stop()
        failure = running.wait()
    assert isinstance(failure, BrokerFailed)
    assert "not stopped cleanly" in str(failure)
    assert "No space left" in str(failure)
    assert "make room" in str(failure)
    in_the_way.unlink()
    with running_broker(disk) as running, WireClient(running.bootstrap) as client:
        assert values_from(client, topic) == [b"v"]
