"""What a broker does by itself now and then, with a period that a test can wait for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from calls import (
    EARLIEST,
    NOW_MS,
    append,
    at,
    batch_of,
    create_topic,
    delete_topic,
    end_offset,
    fetch,
    list_offset,
    produce,
)
from in_process import InProcessBroker, running_broker
from ottla.model.errors import ErrorCode
from ottla.node import housekeeping
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from wire import WireClient

NEVER = str(2**63 - 1)
INTERVALS = (
    "log.retention.check.interval.ms",
    "log.flush.offset.checkpoint.interval.ms",
    "log.flush.start.offset.checkpoint.interval.ms",
    "producer.id.expiration.check.interval.ms",
)


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InProcessBroker]:
    monkeypatch.setattr(housekeeping, "_TICK_MS", 20)
    with running_broker(tmp_path, dict.fromkeys(INTERVALS, "20")) as running:
        yield running


@pytest.fixture
def client(running: InProcessBroker) -> Iterator[WireClient]:
    with WireClient(running.bootstrap) as client:
        yield client


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def files_of(data_dir: Path, topic: str) -> list[str]:
    return sorted(path.name for path in (data_dir / "log" / f"{topic}-0").glob("*.log*"))


def test_old_records_go_and_so_do_their_files(client: WireClient, tmp_path: Path) -> None:
    configs = {"retention.ms": "1000", "segment.bytes": str(1024 * 1024), "file.delete.delay.ms": "0"}
    topic = create_topic(client, configs=configs)
    for _ in range(3):  # a segment each, with records of long ago
        produce(client, topic, batch_of(bytes(700_000), timestamp=NOW_MS - 3_600_000))
    wait_until(lambda: list_offset(client, topic, EARLIEST).offset == 3)
    assert end_offset(client, topic) == 3
    (data,) = fetch(client, topic, at(0))
    assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    wait_until(lambda: len(files_of(tmp_path, topic)) == 1)
    assert append(client, topic, b"v") == 3


def test_the_oldest_segments_go_when_the_log_is_too_large(client: WireClient, tmp_path: Path) -> None:
    configs = {"retention.ms": "-1", "retention.bytes": "1000000", "segment.bytes": str(1024 * 1024)}
    topic = create_topic(client, configs=configs)
    for _ in range(5):
        append(client, topic, bytes(700_000))
    wait_until(lambda: list_offset(client, topic, EARLIEST).offset == 3)


def test_the_files_of_a_deleted_topic_go(client: WireClient, tmp_path: Path) -> None:
    topic = create_topic(client, partitions=3, configs={"file.delete.delay.ms": "0"})
    append(client, topic, b"v")
    delete_topic(client, topic)
    wait_until(lambda: not list((tmp_path / "log").glob(f"{topic}-*")))


def test_a_log_that_is_not_synced_on_every_write_is_synced_after_flush_ms(
    client: WireClient, running: InProcessBroker
) -> None:
    topic = create_topic(client, configs={"flush.messages": NEVER, "flush.ms": "1"})
    append(client, topic, b"v")
    append(client, topic, b"w")
    partition = running.broker.partitions.named(topic, 0)
    assert partition is not None
    log = partition.log
    wait_until(lambda: running.on_owner(lambda: log.synced_offset) == 2)


def test_checkpoints_follow_what_was_written_and_trimmed(client: WireClient, tmp_path: Path) -> None:
    topic = create_topic(client)
    append(client, topic, b"a", b"b", b"c")

    def checkpoint(name: str) -> str:
        path = tmp_path / "log" / name
        return path.read_text() if path.exists() else ""

    wait_until(lambda: f"{topic} 0 3" in checkpoint("recovery-point-offset-checkpoint"))
    wait_until(lambda: f"{topic} 0 3" in checkpoint("replication-offset-checkpoint"))
    client.call(DeleteRecordsRequest([DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, 2)])]), 2)
    wait_until(lambda: f"{topic} 0 2" in checkpoint("log-start-offset-checkpoint"))


def test_an_idle_broker_writes_no_checkpoints(client: WireClient, tmp_path: Path) -> None:
    topic = create_topic(client)
    append(client, topic, b"v")
    path = tmp_path / "log" / "recovery-point-offset-checkpoint"
    wait_until(lambda: path.exists() and f"{topic} 0 1" in path.read_text())
    time.sleep(0.1)
    before = path.stat().st_mtime_ns
    time.sleep(0.2)
    assert path.stat().st_mtime_ns == before
