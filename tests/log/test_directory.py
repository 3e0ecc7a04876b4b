"""A directory of logs: whose it is, how it starts and stops, partitions that come and go."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from faults.power_cut import SimulatedFiles
from log.building import (
    CLUSTER_ID,
    NOW_MS,
    PARTITION,
    TOPIC_ID,
    append,
    config,
    new_log,
    open_directory,
    read_all,
    sync,
)
from ottla.log.directory import LogDirectory, NotStoppedCleanly
from ottla.log.directory_properties import WrongDirectory
from ottla.log.files import DirectoryLocked
from ottla.log.system_files import SystemFiles
from ottla.model.errors import CorruptData
from ottla.model.topics import TopicId, TopicPartition


def test_everything_is_there_after_a_clean_stop(tmp_path: Path) -> None:
    directory, log = new_log(SystemFiles(), str(tmp_path))
    append(log, [b"a", b"b"], epoch=2)
    directory.close({PARTITION: 2})
    assert (tmp_path / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":-1}'
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\norders 0 2\n"
    assert (tmp_path / "replication-offset-checkpoint").read_text() == "0\n1\norders 0 2\n"
    assert sorted(os.listdir(tmp_path / "orders-0")) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "00000000000000000002.snapshot",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]
    directory = open_directory(SystemFiles(), str(tmp_path))
    assert directory.was_clean
    assert directory.checkpoints.high_watermarks == {PARTITION: 2}
    assert directory.topic_ids == {PARTITION: TOPIC_ID}
    assert not (tmp_path / ".kafka_cleanshutdown").exists(), "from here on a crash is one"
    log = directory.logs[PARTITION]
    assert [record.value for record in read_all(log)] == [b"a", b"b"]
    assert log.epochs.entries() == ((2, 0),)
    directory.abandon()
    directory = open_directory(SystemFiles(), str(tmp_path))
    assert not directory.was_clean
    directory.abandon()


def test_a_directory_is_used_by_one_broker_only(tmp_path: Path) -> None:
    directory = open_directory(SystemFiles(), str(tmp_path))
    with pytest.raises(DirectoryLocked):
        open_directory(SystemFiles(), str(tmp_path))
    directory.close()
    open_directory(SystemFiles(), str(tmp_path)).abandon()


def open_as(files: SimulatedFiles, cluster_id: str, node_id: int) -> LogDirectory:
    return LogDirectory(
        "/disk", files, cluster_id=cluster_id, node_id=node_id, config_of=lambda _: config(), now_ms=NOW_MS
    )


def test_meta_properties_are_kafkas_and_keep_the_directory_id() -> None:
    files = SimulatedFiles()
    directory = open_as(files, CLUSTER_ID, 7)
    text = files.read_all("/disk/meta.properties").decode()
    assert text.splitlines()[:3] == ["version=0", "broker.id=7", f"cluster.id={CLUSTER_ID}"]
    first = directory.properties.directory_id
    directory.close()
    assert open_as(files, CLUSTER_ID, 7).properties.directory_id == first


def test_a_directory_of_another_broker_or_layout_is_refused_and_stays_free() -> None:
    files = SimulatedFiles()
    open_as(files, CLUSTER_ID, 7).close()
    with pytest.raises(WrongDirectory, match=r"node\.id 7"):
        open_as(files, CLUSTER_ID, 8)
    with pytest.raises(WrongDirectory, match=r"cluster\.id"):
        open_as(files, "another-cluster", 7)
    open_as(files, CLUSTER_ID, 7).close()
    handle = files.open("/disk/meta.properties")
    handle.append([b"ottla.layout.version=99\n"])
    with pytest.raises(WrongDirectory, match="layout version 99"):
        open_as(files, CLUSTER_ID, 7)


def test_a_directory_written_by_kafka_is_taken_over() -> None:
    files = SimulatedFiles()
    files.make_directories("/disk")
    text = "#\n#Mon Jan 01 00:00:00 UTC 2024\ncluster.id=abc\\=def\nversion=0\nbroker.id=3\n"
    files.create("/disk/meta.properties").append([text.encode()])
    assert open_as(files, "abc=def", 3).properties.node_id == 3


def test_a_deleted_partition_goes_out_of_sight_now_and_from_disk_later() -> None:
    files = SimulatedFiles()
    directory, log = new_log(files, "/disk")
    append(log, [b"old"])
    sync(log)
    directory.checkpoints.begin().run()
    directory.delete(PARTITION, NOW_MS, 60_000)
    assert PARTITION not in directory.logs
    assert not files.exists("/disk/orders-0")
    again = directory.create(PARTITION, TopicId(bytes(16)), config(), NOW_MS)
    assert again.log_end_offset == 0
    assert directory.take_due_deletions(NOW_MS + 59_999) is None
    removal = directory.take_due_deletions(NOW_MS + 60_000)
    assert removal is not None
    removal.run()
    assert [name for name, is_directory in files.list_directory("/disk") if is_directory] == ["orders-0"]


def test_what_is_left_of_deleted_partitions_is_removed_after_a_start() -> None:
    files = SimulatedFiles()
    directory, _ = new_log(files, "/disk")
    directory.delete(PARTITION, NOW_MS, 60_000)
    directory.close()
    directory = open_directory(files, "/disk")
    assert directory.logs == {}
    removal = directory.take_due_deletions(NOW_MS)
    assert removal is not None
    removal.run()
    assert not [name for name, is_directory in files.list_directory("/disk") if is_directory]


def test_a_new_partition_is_not_measured_by_an_old_one_of_its_name() -> None:
    files = SimulatedFiles()
    directory, log = new_log(files, "/disk")
    for _ in range(20):
        append(log, [b"old"])
    log.delete_records(15)
    sync(log)
    directory.checkpoints.begin().run()
    directory.delete(PARTITION, NOW_MS, 0)
    log = directory.create(PARTITION, TOPIC_ID, config(), NOW_MS)
    append(log, [b"new"])
    sync(log)
    append(log, [b"torn"])
    for seed in range(20):
        after = open_directory(files.cut(seed), "/disk")
        assert not after.failed
        assert (after.logs[PARTITION].log_start_offset, read_all(after.logs[PARTITION])[0].value) == (
            0,
            b"new",
        )


def test_a_partition_without_topic_id_is_adopted() -> None:
    files = SimulatedFiles()
    directory, log = new_log(files, "/disk")
    append(log, [b"x"])
    directory.abandon()
    files.remove("/disk/orders-0/partition.metadata")
    directory = open_directory(files, "/disk")
    assert PARTITION not in directory.topic_ids
    assert directory.create(PARTITION, TOPIC_ID, config(), NOW_MS) is directory.logs[PARTITION]
    directory.close()
    assert open_directory(files, "/disk").topic_ids == {PARTITION: TOPIC_ID}


def test_directories_of_nobody_are_left_alone() -> None:
    files = SimulatedFiles()
    files.make_directories("/disk/lost+found")
    files.make_directory("/disk/not a topic-1")
    directory = open_directory(files, "/disk")
    assert directory.logs == {}
    directory.close()
    assert files.exists("/disk/lost+found")


def test_a_damaged_checkpoint_stops_the_start_and_frees_the_lock() -> None:
    files = SimulatedFiles()
    open_directory(files, "/disk").close()
    path = "/disk/recovery-point-offset-checkpoint"
    files.write_atomically(path, b"0\n5\nonly one\n")
    with pytest.raises(CorruptData, match=r"recovery-point-offset-checkpoint.*ottla log repair"):
        open_directory(files, "/disk")
    files.write_atomically(path, b"0\n0\n")
    open_directory(files, "/disk").close()


def test_a_full_disk_at_the_stop_is_what_the_ballast_is_for() -> None:
    files = SimulatedFiles()
    directory, log = new_log(files, "/disk")
    append(log, [b"x"])
    files.capacity_bytes = 0
    directory.close()
    assert open_directory(files, "/disk").was_clean


def test_a_full_disk_that_even_the_ballast_does_not_help_costs_only_the_marker() -> None:
    files = SimulatedFiles()
    directory, log = new_log(files, "/disk")
    append(log, [b"x"])
    files.remove("/disk/.ottla_ballast")  # somebody else was faster
    files.capacity_bytes = 0
    with pytest.raises(NotStoppedCleanly, match="No space left"):
        directory.close()
    files.capacity_bytes = None
    directory = open_directory(files, "/disk")
    assert not directory.was_clean
    assert [record.value for record in read_all(directory.logs[PARTITION])] == [b"x"]


def test_sizes_and_space_are_told() -> None:
    files = SimulatedFiles()
    directory, log = new_log(files, "/disk")
    append(log, [b"x" * 100])
    assert directory.size_bytes == log.size_bytes > 100
    files.capacity_bytes = 4_000
    total, usable = directory.space()
    assert total > usable == 4_000


def test_nothing_is_written_for_partitions_that_did_not_change() -> None:
    files = SimulatedFiles()
    directory = open_directory(files, "/disk")
    for number in range(50):
        directory.create(TopicPartition("t", number), TOPIC_ID, config(), NOW_MS)
    directory.close()
    directory = open_directory(files, "/disk")
    before = files.operations
    directory.close()
    assert files.operations - before < 25, (
        "a stop costs by what changed, not by how many partitions there are"
    )


def test_logs_of_nobody_knows_whom_are_not_claimed() -> None:
    files = SimulatedFiles()
    directory, _ = new_log(files, "/disk")
    directory.close()
    files.remove("/disk/meta.properties")
    with pytest.raises(WrongDirectory, match="says whose"):
        open_directory(files, "/disk")
    assert not files.exists("/disk/meta.properties")
