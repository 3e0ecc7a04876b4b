"""A cleaning pass in the test's own thread; the broker spreads it over a process, a worker and its owner."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from log.building import NOW_MS, PARTITION, config, new_log, open_directory, sync
from ottla.log.cleaner import Cleaner
from ottla.log.cleaning_job import Cleaned, CleanedGroup, CleaningJob
from ottla.log.cleaning_plan import Cleanable, Resources, find_cleanable, make_job
from ottla.log.directory import LogDirectory
from ottla.log.files import Files
from ottla.log.partition_log import PartitionLog
from ottla.log.system_files import SystemFiles
from ottla.records.batch import CONTROL, TRANSACTIONAL, BatchHeader, CheckedBatch, read_header
from ottla.records.content import Record, build_batch
from ottla.records.formats import records_of

MIB = 1 << 20
FILES = SystemFiles()
DAY_MS = 24 * 3600 * 1000
Pair = tuple[str | None, str | None]


def cleanable(directory: LogDirectory, log: PartitionLog, now_ms: int = NOW_MS) -> Cleanable:
    cleaned_offset = directory.checkpoints.cleaned_offsets.get(log.topic_partition)
    unstable_offset = log.producers.first_unstable_offset(log.synced_offset)
    stable_offset = log.synced_offset if unstable_offset is None else unstable_offset
    return find_cleanable(log, cleaned_offset, stable_offset, now_ms)


def job_for(
    directory: LogDirectory, log: PartitionLog, now_ms: int = NOW_MS, **resources: Any
) -> CleaningJob:
    """As the process would get it: through its encoding."""
    given = {"dedupe_bytes": MIB, "dedupe_load_factor": 0.9, "read_bytes": 0, "bytes_per_second": 1e9}
    job = make_job(cleanable(directory, log, now_ms), now_ms, Resources(**(given | resources)))
    decoded = CleaningJob.decode(job.encode())
    assert decoded == job
    return decoded


def swap_in(log: PartitionLog, group: CleanedGroup, truncation_count: int, now_ms: int) -> bool:
    """Whether the log took the segment."""
    swap = log.segment_files.begin_swap(group, truncation_count)
    if swap is None:
        return False
    while not swap.is_over:
        log.segment_files.step_swap(swap, now_ms)
        swap.sync()
    return True


def clean(
    files: Files,
    directory: LogDirectory,
    log: PartitionLog,
    now_ms: int = NOW_MS,
    *,
    between: Callable[[], None] = lambda: None,
    begun: Callable[[CleaningJob], None] = lambda job: None,
    **resources: Any,
) -> Cleaned | None:
    """One pass, due or not; `between` runs before every swap. None: it was abandoned, or nothing is dirty."""
    found = cleanable(directory, log, now_ms)
    if found.first_dirty_offset >= found.end_offset:
        return None
    job = job_for(directory, log, now_ms, **resources)
    directory.begin_cleaning(log, job.end_offset).run()
    begun(job)
    truncation_count = log.segment_files.truncation_count
    taken: list[bool] = []

    def report(group: CleanedGroup) -> None:
        between()
        taken.append(all(taken) and swap_in(log, group, truncation_count, now_ms))

    try:
        cleaned = Cleaner(files, job, lambda size: None, report).run()
    except FileNotFoundError:
        return None  # retention took a segment that was still to be read
    finally:
        log.segment_files.end_pass()
    if not all(taken):
        return None
    directory.checkpoints.begin_cleaned(log.topic_partition, cleaned.end_offset).run()
    return cleaned


class Compacted:
    """A log of a compacted topic on a real disk."""

    def __init__(self, path: Path, **settings: Any) -> None:
        self.path = str(path)
        self.topic = config(cleanup_compact=True, cleanup_delete=False, **settings)
        self.directory: LogDirectory
        self.log: PartitionLog
        self.directory, self.log = new_log(FILES, self.path, self.topic)

    def write(self, *pairs: Pair, at: int = NOW_MS, roll: bool = False, **fields: Any) -> int:
        """One batch of (key, value); returns its first offset."""
        records = [
            Record(offset, at, _bytes(key), _bytes(value)) for offset, (key, value) in enumerate(pairs)
        ]
        data = memoryview(build_batch(records, **fields))
        result = self.log.append([CheckedBatch(read_header(data), data)], 0, NOW_MS)
        if roll:
            self.roll()
        return result.first_offset

    def mark(self, producer_id: int, *, abort: bool, epoch: int = 0) -> int:
        """The end of a producer's transaction."""
        key = b"\0\0\0\0" if abort else b"\0\0\0\1"
        data = memoryview(
            build_batch(
                [Record(0, NOW_MS, key, b"\0\0\0\0\0\0")],
                flags=TRANSACTIONAL | CONTROL,
                producer_id=producer_id,
                producer_epoch=epoch,
            )
        )
        return self.log.append([CheckedBatch(read_header(data), data)], 0, NOW_MS).first_offset

    def roll(self) -> None:
        self.log.roll(NOW_MS)
        sync(self.log)

    def clean(self, now_ms: int = NOW_MS, **resources: Any) -> None:
        assert clean(FILES, self.directory, self.log, now_ms, **resources) is not None

    def reopen(self, *, cleanly: bool = True) -> None:
        if cleanly:
            self.directory.close()
        else:
            self.directory.abandon()
        self.directory = open_directory(FILES, self.path, self.topic)
        assert not self.directory.failed
        self.log = self.directory.logs[PARTITION]

    def records(self) -> list[tuple[int, str | None, str | None]]:
        found = []
        for _, data in self.batches():
            found += [
                (record.offset, _text(record.key), _text(record.value)) for record in records_in_one(data)
            ]
        return found

    def batches(self) -> list[tuple[BatchHeader, bytes]]:
        found = []
        for segment in self.log.segments:
            for position, header in segment.headers(0):
                found.append((header, bytes(segment.log.pread(header.size, position))))
        return found

    def names(self, suffix: str) -> list[str]:
        return sorted(name for name in os.listdir(self.log.directory) if name.endswith(suffix))


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("latin-1")


def records_in_one(batch: bytes) -> list[Record]:
    return list(records_of(batch))
