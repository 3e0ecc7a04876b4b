"""What the log costs: appending, reading, lookups, sync rounds, recovery, and starts with many partitions.

    python -m benchmarks.log [--directory DIRECTORY] [part ...]

The directory (default: a temporary one) should be on the disk that counts: syncs are measured there. Parts
are appending, reading, durable_appends, rounds, recovering and starting; without a name all of them.
"""

from __future__ import annotations

import argparse
import logging
import os
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable

from ottla.log import flusher
from ottla.log.directory import LogDirectory
from ottla.log.partition_log import PartitionLog
from ottla.log.system_files import SystemFiles
from ottla.model.configs import DEFAULT_TOPIC_CONFIG, TopicConfig
from ottla.model.topics import TopicId, TopicPartition
from ottla.model.values import replace
from ottla.records.batch import CheckedBatch, read_header
from ottla.records.content import Record, build_batch

NOW_MS = 1_700_000_000_000
TOPIC_ID = TopicId(bytes(range(16)))


def batch(value_bytes: int, **fields: int) -> CheckedBatch:
    data = memoryview(build_batch([Record(0, NOW_MS, None, b"x" * value_bytes)], **fields))
    return CheckedBatch(read_header(data), data)


def opened(path: str, config: TopicConfig = DEFAULT_TOPIC_CONFIG) -> LogDirectory:
    return LogDirectory(
        path, SystemFiles(), cluster_id="benchmark", node_id=1, config_of=lambda _: config, now_ms=NOW_MS
    )


def one_log(path: str, config: TopicConfig = DEFAULT_TOPIC_CONFIG) -> tuple[LogDirectory, PartitionLog]:
    directory = opened(path, config)
    return directory, directory.create(TopicPartition("t", 0), TOPIC_ID, config, NOW_MS)


def microseconds(work: Callable[[], object], count: int, repeats: int = 5) -> float:
    """Best of some repeats, per call."""
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        for _ in range(count):
            work()
        best = min(best, time.perf_counter() - began)
    return best / count * 1e6


def row(name: str, value: str, note: str = "") -> None:
    print(f"{name:<52}{value:>16}  {note}")


def appending(path: str) -> None:
    cases = {
        "append, 1 record of 100 B": ([batch(100)], 5_000),
        "append, 1 record of 100 B, idempotent": (
            [batch(100, producer_id=1, producer_epoch=0, base_sequence=0)],
            5_000,
        ),
        "append, 16 KiB": ([batch(16 * 1024)], 1_000),
        "append, 16 batches of 1 KiB in one call": ([batch(1024)] * 16, 1_000),
    }
    for name, (batches, count) in cases.items():
        directory, log = one_log(path)
        used_us = microseconds(lambda log=log, batches=batches: log.append(batches, 0, NOW_MS), count)
        directory.abandon()
        shutil.rmtree(path)
        size = sum(len(made.body) for made in batches)
        row(name, f"{used_us:.1f} µs", f"{size / used_us:.0f} MB/s")
    handle = os.open(os.path.dirname(path) + "/raw", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    data, position = [b"x" * 16, b"y" * 152], 0

    def write() -> None:
        nonlocal position
        position += os.pwritev(handle, data, position)

    row("  (the write alone: pwritev of 168 B)", f"{microseconds(write, 5_000):.1f} µs")
    os.close(handle)


def reading(path: str) -> None:
    config = replace(DEFAULT_TOPIC_CONFIG, segment_bytes=1 << 20, message_timestamp_log_append=True)
    directory, log = one_log(path, config)
    made = [batch(1000)]
    while len(log.segments) < 100:
        log.append(made, 0, NOW_MS + log.log_end_offset)
    end = log.log_end_offset
    row("read at the log's end", f"{microseconds(lambda: log.read(end - 1, 1 << 20, end), 5_000):.1f} µs")
    offsets = [number * 7919 % end for number in range(1_000)]
    at = iter(offsets * 10)
    used_us = microseconds(lambda: log.read(next(at), 1 << 20, end), 1_000)
    row("read anywhere in 100 segments", f"{used_us:.1f} µs", f"{end} batches of 1 KB")
    at = iter(offsets * 10)
    used_us = microseconds(lambda: log.offset_for_timestamp(NOW_MS + next(at)), 200)
    row("offset by timestamp, anywhere in 100 segments", f"{used_us:.1f} µs")
    directory.abandon()
    shutil.rmtree(path)


def rounds(path: str) -> None:
    made = batch(4000)
    chosen = flusher.FILES_ONE_BY_ONE_MAX
    for count in (1, 2, 3, 4, 16, 100, 1_000):
        directory = opened(path)
        logs = [
            directory.create(TopicPartition("t", number), TOPIC_ID, DEFAULT_TOPIC_CONFIG, NOW_MS)
            for number in range(count)
        ]
        results = []
        for one_by_one_max in (1 << 30, -1):
            flusher.FILES_ONE_BY_ONE_MAX = one_by_one_max
            times = [_round_ms(logs, made) for _ in range(21 if count <= 100 else 7)][1:]
            results.append(f"{min(times):.2f} / {statistics.median(times):.2f} ms")
        directory.abandon()
        shutil.rmtree(path)
        row(f"sync round, {count} dirty logs, fdatasync each", results[0], "best / median")
        row(f"sync round, {count} dirty logs, one syncfs", results[1], "best / median")
    flusher.FILES_ONE_BY_ONE_MAX = chosen


def _round_ms(logs: list[PartitionLog], made: CheckedBatch) -> float:
    flush = flusher.Flusher()
    for log in logs:
        log.append([made], 0, NOW_MS)
        flush.mark_dirty(log)
    begun = flush.next_round()
    assert begun is not None
    began = time.perf_counter()
    begun.run()
    used = time.perf_counter() - began
    flush.finish(begun)
    return used * 1e3


def durable_appends(path: str) -> None:
    """As the broker syncs them: everything that is dirty in one round."""
    made = batch(4000)
    for count in (1, 10, 100, 1_000):
        directory = opened(path)
        logs = [
            directory.create(TopicPartition("t", number), TOPIC_ID, DEFAULT_TOPIC_CONFIG, NOW_MS)
            for number in range(count)
        ]
        _round_ms(logs, made)  # makes their names durable
        done, began = 0, time.perf_counter()
        while (used := time.perf_counter() - began) < 2:
            _round_ms(logs, made)
            done += 1
        directory.abandon()
        shutil.rmtree(path)
        row(
            f"4 KB appended to each of {count} logs, synced",
            f"{done / used:.0f} rounds/s",
            f"{done * count / used:.0f} logs/s, {done * count * len(made.body) / used / 1e6:.1f} MB/s",
        )


def recovering(path: str) -> None:
    for value_bytes, megabytes in ((16 * 1024, 256), (1024, 64), (100, 16)):
        directory, log = one_log(path)
        made = [batch(value_bytes)] * 10
        while log.size_bytes < megabytes << 20:
            log.append(made, 0, NOW_MS)
        size = log.size_bytes
        directory.abandon()
        began = time.perf_counter()
        directory = opened(path)
        used = time.perf_counter() - began
        directory.abandon()
        shutil.rmtree(path)
        row(
            f"recovery, batches of {value_bytes} B",
            f"{size / used / 1e6:.0f} MB/s",
            f"{used:.2f} s with the sync of {megabytes} MiB",
        )


def starting(path: str) -> None:
    for count in (1_000, 10_000):
        began = time.perf_counter()
        directory = opened(path)
        logs = [
            directory.create(TopicPartition("t", number), TOPIC_ID, DEFAULT_TOPIC_CONFIG, NOW_MS)
            for number in range(count)
        ]
        row(f"create {count} partitions", f"{time.perf_counter() - began:.2f} s")
        made = [batch(100)]
        for log in logs:
            log.append(made, 0, NOW_MS)
        began = time.perf_counter()
        directory.close()
        row("  clean stop, all written to", f"{time.perf_counter() - began:.2f} s")
        del directory, logs, log
        for name, clean in (("clean start", True), ("start after a crash", False)):
            before_kb = _memory_kb()
            began, cpu_began = time.perf_counter(), time.process_time()
            directory = opened(path)
            used, cpu_used = time.perf_counter() - began, time.process_time() - cpu_began
            assert directory.was_clean == clean
            assert all(log.log_end_offset == 1 for log in directory.logs.values())
            open_files = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
            memory_mib = (_memory_kb() - before_kb) // 1024
            note = f"{cpu_used:.2f} s of processor time, {memory_mib} MiB more, {open_files} open files"
            row(f"  {name}", f"{used:.2f} s", note)
            directory.abandon()
            del directory
        shutil.rmtree(path)


def _memory_kb() -> int:
    if os.path.exists("/proc/self/statm"):
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize() // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


PARTS = {part.__name__: part for part in (appending, reading, durable_appends, rounds, recovering, starting)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--directory")
    parser.add_argument("parts", nargs="*", metavar="part", choices=[[], *PARTS])
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    root = tempfile.mkdtemp(dir=options.directory)
    try:
        for name in options.parts or PARTS:
            PARTS[name](os.path.join(root, "logs"))
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
