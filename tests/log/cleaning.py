"""A cleaning pass in the test's own thread; the broker spreads it over a process, a worker and its owner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from log.building import NOW_MS
from ottla.log.cleaner import Cleaner
from ottla.log.cleaning_job import Cleaned, CleanedGroup, CleaningJob
from ottla.log.cleaning_plan import Cleanable, Resources, find_cleanable, make_job
from ottla.log.directory import LogDirectory
from ottla.log.files import Files
from ottla.log.partition_log import PartitionLog

MIB = 1 << 20


def cleanable(directory: LogDirectory, log: PartitionLog, now_ms: int = NOW_MS) -> Cleanable:
    cleaned_offset = directory.cleaned_offsets.get(log.topic_partition)
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
    swap = log.begin_swap(group, truncation_count)
    if swap is None:
        return False
    while not swap.is_over:
        log.step_swap(swap, now_ms)
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
    directory.begin_checkpoint().run()
    job = job_for(directory, log, now_ms, **resources)
    begun(job)
    truncation_count = log.truncation_count
    taken: list[bool] = []

    def report(group: CleanedGroup) -> None:
        between()
        taken.append(all(taken) and swap_in(log, group, truncation_count, now_ms))

    try:
        cleaned = Cleaner(files, job, lambda size: None, report).run()
    except FileNotFoundError:
        return None  # retention took a segment that was still to be read
    if not all(taken):
        return None
    directory.begin_cleaner_checkpoint(log.topic_partition, cleaned.end_offset).run()
    return cleaned
