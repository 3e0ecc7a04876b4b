"""Several log directories: partitions spread over them, and a bad one takes only its own partitions along."""

from __future__ import annotations

import errno
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from calls import (
    append,
    batch_of,
    create_topic,
    describe_topic,
    end_offset,
    produce,
    produce_request,
    values_from,
)
from in_process import InProcessBroker, running_broker
from node.sick_disk import SickFiles
from ottla.model.errors import ErrorCode
from ottla.node.broker import BrokerFailed
from ottla.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from wire import WireClient

OFFLINE = ErrorCode.KAFKA_STORAGE_ERROR
PARTITIONS = 4


def directories_of(data_dir: Path) -> tuple[Path, Path]:
    return data_dir / "a", data_dir / "b"


def two(data_dir: Path) -> dict[str, str]:
    return {"log.dirs": ",".join(map(str, directories_of(data_dir)))}


@contextmanager
def served(
    data_dir: Path, settings: dict[str, str], files: SickFiles | None = None
) -> Iterator[tuple[InProcessBroker, WireClient]]:
    with running_broker(data_dir, settings, files=files) as running, WireClient(running.bootstrap) as client:
        yield running, client


def partitions_in(directory: Path, topic: str) -> set[int]:
    return {int(path.name.rpartition("-")[2]) for path in directory.glob(f"{topic}-*")}


def fill(client: WireClient, topic: str) -> None:
    for partition in range(PARTITIONS):
        append(client, topic, b"v", partition=partition)


def assert_offline(running: InProcessBroker, client: WireClient, topic: str, lost: set[int]) -> None:
    """The lost ones say so; the others take writes."""
    states = describe_topic(client, topic).partitions
    assert {state.partition_index for state in states if state.leader_id == -1} == lost
    for partition in range(PARTITIONS):
        answer = produce(client, topic, batch_of(b"w"), partition=partition)
        assert answer.error_code == (OFFLINE if partition in lost else ErrorCode.NONE)
    assert running.metric("partitions.offline") == len(lost)
    assert running.metric("log.directories.offline") == 1


def test_new_partitions_go_to_the_directory_with_the_fewest(tmp_path: Path) -> None:
    first, second = directories_of(tmp_path)
    with served(tmp_path, {"log.dirs": str(first)}) as (_, client):
        old = create_topic(client, partitions=2)
    with served(tmp_path, two(tmp_path)) as (_, client):
        new = create_topic(client, partitions=PARTITIONS)
        fill(client, new)
        assert partitions_in(first, old) == {0, 1}
        assert len(partitions_in(first, new)) == 1
        assert len(partitions_in(second, new)) == 3
        described = {result.log_dir: result for result in client.call(DescribeLogDirsRequest(), 4).results}
        assert set(described) == {str(first), str(second)}
    with served(tmp_path, two(tmp_path)) as (_, client):
        assert [end_offset(client, new, partition) for partition in range(PARTITIONS)] == [1] * PARTITIONS


@pytest.mark.parametrize("damage", ["a file in its place", "a checkpoint that cannot be read"])
def test_a_bad_directory_at_the_start_takes_only_its_partitions_offline(tmp_path: Path, damage: str) -> None:
    _, second = directories_of(tmp_path)
    with served(tmp_path, two(tmp_path)) as (running, client):
        topic = create_topic(client, partitions=PARTITIONS)
        fill(client, topic)
    lost = partitions_in(second, topic)
    assert len(lost) == 2
    aside = second.with_name("aside")
    if damage == "a file in its place":
        second.rename(aside)
        second.write_bytes(b"")
    else:
        checkpoint = second / "recovery-point-offset-checkpoint"
        content = checkpoint.read_bytes()
        checkpoint.write_bytes(b"nonsense")

    with served(tmp_path, two(tmp_path)) as (running, client):
        assert_offline(running, client, topic, lost)
        results = {result.log_dir: result for result in client.call(DescribeLogDirsRequest(), 4).results}
        assert results[str(second)].error_code == OFFLINE
        fill(client, create_topic(client, partitions=PARTITIONS))  # new ones go where there is a disk

    if damage == "a file in its place":
        second.unlink()
        aside.rename(second)
    else:
        checkpoint.write_bytes(content)
    with served(tmp_path, two(tmp_path)) as (running, client):
        for partition in range(PARTITIONS):
            expected = [b"v"] if partition in lost else [b"v", b"w"]
            assert values_from(client, topic, partition=partition) == expected


def test_a_directory_whose_sync_fails_takes_only_its_partitions_offline(tmp_path: Path) -> None:
    disk = SickFiles()
    _, second = directories_of(tmp_path)
    with served(tmp_path, two(tmp_path), disk) as (running, client):
        topic = create_topic(client, partitions=PARTITIONS)
        fill(client, topic)
        lost = partitions_in(second, topic)
        disk.failing["sync"] = f"{second}/*.log"
        answer = produce(client, topic, batch_of(b"not safe"), partition=min(lost))
        assert answer.error_code == OFFLINE
        assert_offline(running, client, topic, lost)
    assert running.failure is None
    assert len(disk.failed) == 1, "never tried again"
    with served(tmp_path, two(tmp_path)) as (running, client):
        assert values_from(client, topic, partition=max(lost))[0] == b"v"


def test_a_directory_that_takes_no_checkpoint_takes_only_its_partitions_offline(tmp_path: Path) -> None:
    disk = SickFiles()
    _, second = directories_of(tmp_path)
    with served(tmp_path, two(tmp_path), disk) as (running, client):
        topic = create_topic(client, partitions=PARTITIONS)
        fill(client, topic)
        disk.error = errno.EROFS
        disk.failing["create"] = f"{second}/*checkpoint*"
        running.on_owner(running.broker._housekeeping._checkpoint_ends)
        deadline = time.monotonic() + 30
        while running.metric("log.directories.offline") == 0:
            assert time.monotonic() < deadline
        assert_offline(running, client, topic, partitions_in(second, topic))


def test_without_its_last_directory_there_is_no_broker(tmp_path: Path) -> None:
    disk = SickFiles()
    first, second = directories_of(tmp_path)
    with served(tmp_path, two(tmp_path), disk) as (running, client):
        topic = create_topic(client, partitions=PARTITIONS)
        fill(client, topic)
        disk.failing["sync"] = f"{tmp_path}/[ab]/*.log"
        for directory in (second, first):
            client.send(
                produce_request(topic, batch_of(b"w"), partition=min(partitions_in(directory, topic))), 12
            )
        assert isinstance(running.wait(), BrokerFailed)
    for directory in (first, second):
        directory.rename(directory.with_suffix(".aside"))
        directory.write_bytes(b"")
    with (
        pytest.raises(OSError, match=r"File exists|Not a directory"),
        running_broker(tmp_path, two(tmp_path)),
    ):
        pass


def test_a_directory_that_is_gone_at_the_stop_is_told_without_asking_for_room(tmp_path: Path) -> None:
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        produce(client, create_topic(client), batch_of(b"v"))
        shutil.rmtree(tmp_path / "log")
        running.broker.ask_to_stop()
        failure = running.wait()
    assert "see that its files can be written" in str(failure)
