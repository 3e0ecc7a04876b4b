"""A directory of `log.dirs`: every partition in it, and the checkpoints against their logs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise

from ottla.log import checkpoints, directory_properties, file_names
from ottla.log.directory import LOCK
from ottla.log.files import Files
from ottla.log.inspection.batch_walk import Pace
from ottla.log.inspection.findings import Finding, FindingKind
from ottla.log.inspection.partition_check import PartitionReport, check_partition
from ottla.log.segment_checkpoint import find_losses, read_segment_checkpoint
from ottla.model.errors import CorruptData
from ottla.model.topics import TopicPartition
from ottla.model.values import dataclass, field

OFFSET_CHECKPOINTS = (
    checkpoints.RECOVERY_POINTS,
    checkpoints.LOG_START_OFFSETS,
    checkpoints.HIGH_WATERMARKS,
    checkpoints.CLEANER_OFFSETS,
)


@dataclass(slots=True)
class DirectoryReport:
    path: str
    partitions: dict[TopicPartition, PartitionReport] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)  # of everything in it


def is_in_use(files: Files, path: str) -> bool:
    """Whether a broker holds the directory at this moment."""
    return files.is_locked(os.path.join(path, LOCK))


def partition_names(files: Files, path: str) -> dict[TopicPartition, str]:
    """The partitions' directories in a directory of `log.dirs`."""
    found = {}
    for name, is_directory in files.list_directory(path):
        partition = file_names.parse_directory(name) if is_directory else None
        if partition is not None:
            found[partition] = os.path.join(path, name)
    return found


def check_directory(
    files: Files, path: str, *, look_inside: bool = False, pace: Pace | None = None
) -> DirectoryReport:
    report = DirectoryReport(path)
    is_running = is_in_use(files, path)
    for partition, directory in partition_names(files, path).items():
        found = check_partition(files, directory, is_running=is_running, look_inside=look_inside, pace=pace)
        report.partitions[partition] = found
        report.findings += found.findings
    if not is_running:
        compacted = _compacted(files, path)
        for partition in report.partitions.keys() - compacted:
            report.findings += _check_nothing_is_missing(report.partitions[partition])
        report.findings += _check_listed(files, path, compacted & report.partitions.keys())
    for name in OFFSET_CHECKPOINTS:
        report.findings += check_offset_checkpoint(
            files, os.path.join(path, name), report.partitions, is_running=is_running
        )
    report.findings += _check_properties(files, os.path.join(path, directory_properties.FILE_NAME))
    return report


def _compacted(files: Files, path: str) -> set[TopicPartition]:
    """Partitions whose segments may have lost records at their ends, as compaction does."""
    checkpoint = os.path.join(path, checkpoints.CLEANER_OFFSETS)
    if not files.exists(checkpoint):
        return set()
    try:
        return set(checkpoints.decode_offsets(files.read_all(checkpoint)))
    except CorruptData:
        return set(partition_names(files, path))  # any of them


def _check_nothing_is_missing(report: PartitionReport) -> Iterator[Finding]:
    """Between segments: a file that is gone leaves no other trace, since starts trust what was synced.

    Behind a segment that has gaps itself nothing is said: a first compaction may have been interrupted.
    """
    for before, after in pairwise(report.segments):
        if before.is_dense and before.end_offset < after.base_offset:
            problem = f"offsets {before.end_offset} to {after.base_offset - 1} are missing before it"
            yield Finding(FindingKind.MISSING_RECORDS, after.path, problem, 0, before.end_offset)


def _check_listed(files: Files, path: str, compacted: set[TopicPartition]) -> Iterator[Finding]:
    """Where gaps between segments say nothing, the list of segments does."""
    listed = read_segment_checkpoint(files, path)
    log_starts = _offsets_in(files, os.path.join(path, checkpoints.LOG_START_OFFSETS))
    for partition in sorted(compacted & listed.keys()):
        directory = os.path.join(path, str(partition))
        paths = {
            base: os.path.join(directory, file_names.offset_name(base, file_names.LOG))
            for base in listed[partition].sizes
        }
        sizes = {base: files.size(each) for base, each in paths.items() if files.exists(each)}
        for loss in find_losses(listed[partition], sizes, log_starts.get(partition, 0)):
            yield Finding(
                FindingKind.MISSING_RECORDS, paths[loss.base_offset], loss.problem, offset=loss.base_offset
            )


def _offsets_in(files: Files, path: str) -> dict[TopicPartition, int]:
    try:
        return checkpoints.decode_offsets(files.read_all(path)) if files.exists(path) else {}
    except CorruptData:
        return {}  # a finding of its own


def check_offset_checkpoint(
    files: Files, path: str, partitions: dict[TopicPartition, PartitionReport], *, is_running: bool
) -> Iterator[Finding]:
    """While a broker runs, logs and checkpoints move apart; only the file's form is looked at then."""
    if not files.exists(path):
        return
    try:
        offsets = checkpoints.decode_offsets(files.read_all(path))
    except CorruptData as error:
        yield Finding(FindingKind.CHECKPOINT, path, str(error))
        return
    if is_running:
        return
    for partition, offset in offsets.items():
        report = partitions.get(partition)
        if report is None:
            problem = f"{partition} is at {offset}, but has no directory here"
            yield Finding(FindingKind.CHECKPOINT, path, problem, offset=offset)
        elif offset > report.end_offset:
            problem = f"{partition} is at {offset}, but its log ends at {report.end_offset}"
            yield Finding(FindingKind.CHECKPOINT, path, problem, offset=offset)


def _check_properties(files: Files, path: str) -> Iterator[Finding]:
    if not files.exists(path):
        return
    missing = directory_properties.missing_properties(files.read_all(path))
    if missing:
        yield Finding(FindingKind.METADATA, path, f"{' and '.join(missing)} is missing")
