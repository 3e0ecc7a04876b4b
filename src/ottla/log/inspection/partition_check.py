"""One partition's directory: its segments as one log, and the files beside them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise

from ottla.log import checkpoints, file_names, leader_epochs
from ottla.log.files import Files
from ottla.log.inspection.batch_walk import Pace
from ottla.log.inspection.findings import Finding, FindingKind
from ottla.log.inspection.segment_check import SegmentReport, check_segment
from ottla.log.leader_epochs import decode_epoch_starts
from ottla.log.producer_snapshots import decode_snapshot
from ottla.model.errors import CorruptData
from ottla.model.values import dataclass, field


@dataclass(slots=True)
class PartitionReport:
    path: str
    segments: list[SegmentReport] = field(default_factory=list)
    snapshots: list[str] = field(default_factory=list)  # paths
    findings: list[Finding] = field(default_factory=list)

    @property
    def end_offset(self) -> int:
        return self.segments[-1].end_offset if self.segments else 0


def check_partition(
    files: Files,
    path: str,
    *,
    is_running: bool = False,
    look_inside: bool = False,
    pace: Pace | None = None,
) -> PartitionReport:
    """Everything in a partition's directory. `is_running`: a broker works on it at this moment."""
    report = PartitionReport(path)
    names = [name for name, is_directory in files.list_directory(path) if not is_directory]
    logs = sorted(name for name in names if _is_file_of(name, file_names.LOG))
    for name in logs:
        log_path = os.path.join(path, name)
        is_last = name == logs[-1]
        try:
            segment = check_segment(
                files,
                log_path,
                is_last=is_last,
                is_growing=is_last and is_running,
                look_inside=look_inside,
                pace=pace,
            )
        except OSError as error:
            report.findings += _unreadable(error, log_path, is_running)
            continue
        report.findings += _check_follows(report.segments, segment)
        report.findings += _check_index_is_there(segment, names)
        report.segments.append(segment)
        report.findings += segment.findings
    report.findings += _check_beside(files, report, names, is_running)
    return report


def _unreadable(error: OSError, path: str, is_running: bool) -> Iterator[Finding]:
    if not (is_running and isinstance(error, FileNotFoundError)):  # a broker may have dropped it just now
        yield Finding(FindingKind.UNREADABLE, path, error.strerror or str(error))


def _check_follows(before: list[SegmentReport], segment: SegmentReport) -> Iterator[Finding]:
    if before and before[-1].end_offset > segment.base_offset:
        problem = (
            f"begins at {segment.base_offset}, but the segment before it ends at {before[-1].end_offset}"
        )
        yield Finding(FindingKind.CORRUPT_MIDDLE, segment.path, problem, 0, segment.base_offset)


def _check_index_is_there(segment: SegmentReport, names: list[str]) -> Iterator[Finding]:
    name = file_names.offset_name(segment.base_offset, file_names.OFFSET_INDEX)
    if segment.size and name not in names:
        problem = "the index is missing, every lookup reads the log from its beginning"
        yield Finding(FindingKind.INDEX, os.path.join(os.path.dirname(segment.path), name), problem)


def _check_beside(
    files: Files, report: PartitionReport, names: list[str], is_running: bool
) -> Iterator[Finding]:
    for name in names:
        file = os.path.join(report.path, name)
        try:
            if _is_file_of(name, file_names.SNAPSHOT):
                report.snapshots.append(file)
                yield from _check_snapshot(files, file, report.end_offset, is_running)
            elif name == leader_epochs.FILE_NAME:
                yield from _check_epochs(files, file, report, is_running)
            elif name == checkpoints.PARTITION_METADATA:
                checkpoints.decode_partition_metadata(files.read_all(file))
            elif name.endswith(file_names.SWAP) and not is_running:
                problem = "a compaction was interrupted while it put segments in place"
                yield Finding(FindingKind.LEFTOVER, file, problem)
        except CorruptData as error:
            yield Finding(_KINDS.get(name, FindingKind.SNAPSHOT), file, str(error))
        except OSError as error:
            yield from _unreadable(error, file, is_running)


_KINDS = {
    leader_epochs.FILE_NAME: FindingKind.LEADER_EPOCHS,
    checkpoints.PARTITION_METADATA: FindingKind.METADATA,
}


def _check_snapshot(files: Files, path: str, end_offset: int, is_running: bool) -> Iterator[Finding]:
    taken_at = file_names.parse_offset(os.path.basename(path))
    assert taken_at is not None
    for producer_id, entry in decode_snapshot(files.read_all(path)).items():
        if entry.batches and entry.batches[-1].last_offset >= taken_at:
            problem = (
                f"producer {producer_id} has written offset {entry.batches[-1].last_offset} "
                f"in a snapshot of offset {taken_at}"
            )
            yield Finding(FindingKind.SNAPSHOT, path, problem, offset=taken_at)
    if taken_at > end_offset and not is_running:
        problem = f"is of offset {taken_at}, but the log ends at {end_offset}"
        yield Finding(FindingKind.SNAPSHOT, path, problem, offset=taken_at)


def _check_epochs(files: Files, path: str, report: PartitionReport, is_running: bool) -> Iterator[Finding]:
    entries = decode_epoch_starts(files.read_all(path))
    for before, after in pairwise(entries):
        if not (before.epoch < after.epoch and before.start_offset < after.start_offset):
            problem = f"epoch {after.epoch} from {after.start_offset} follows {before}"
            yield Finding(FindingKind.LEADER_EPOCHS, path, problem, offset=after.start_offset)
    if is_running or not entries:
        return
    last = entries[-1]
    if last.start_offset > report.end_offset:
        problem = f"epoch {last.epoch} begins at {last.start_offset}, but the log ends at {report.end_offset}"
        yield Finding(FindingKind.LEADER_EPOCHS, path, problem, offset=last.start_offset)


def _is_file_of(name: str, suffix: str) -> bool:
    return name.endswith(suffix) and file_names.parse_offset(name) is not None
