"""Thousands of files share a few handles; whoever holds one keeps it."""

from __future__ import annotations

from faults.power_cut import SimulatedFiles
from log.building import NOW_MS, TOPIC_ID, append, config, open_directory, read_all, sync
from ottla.log.file_range import FileRange
from ottla.log.open_files import OpenFiles
from ottla.model.topics import TopicPartition


def test_no_more_files_are_open_than_the_pool_allows() -> None:
    simulated = SimulatedFiles()
    pool = OpenFiles(simulated, count_max=10)
    files = [pool.create(f"/{number}") for number in range(100)]
    for file in files * 2:
        file.handle().append([b"x"])
        assert simulated.open_count <= 10
    assert all(simulated.size(file.path) == 2 for file in files)


def test_a_file_in_use_stays_open() -> None:
    pool = OpenFiles(SimulatedFiles(), count_max=10)
    used = pool.create("/used")
    handle = used.handle()
    for number in range(100):
        pool.create(f"/{number}")
        assert used.handle() is handle


def test_a_range_outlives_its_place_in_the_pool() -> None:
    pool = OpenFiles(SimulatedFiles(), count_max=1)
    file = pool.create("/a")
    file.handle().append([b"abc"])
    part = FileRange(file.handle(), 0, 3)
    pool.create("/b")
    pool.create("/c")
    assert file.open_handle() is None
    assert part.read() == b"abc"


def test_many_partitions_work_with_few_open_files() -> None:
    simulated = SimulatedFiles()
    topic = config(segment_bytes=500)
    directory = open_directory(simulated, "/disk", topic, open_files_max=7)
    logs = [directory.create(TopicPartition("t", number), TOPIC_ID, topic, NOW_MS) for number in range(30)]
    for round_number in range(8):
        for log in logs:
            append(log, [b"%d" % round_number] * 3)
        sync(*logs)
        assert simulated.open_count <= 7
    for log in logs:
        assert [record.value for record in read_all(log)] == [b"%d" % (number // 3) for number in range(24)]
