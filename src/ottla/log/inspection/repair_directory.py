"""The plan for a partition or a whole directory: what each log and checkpoint needs, by verification."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator

from ottla.log import checkpoints, segment_checkpoint
from ottla.log.files import Files
from ottla.log.inspection.batch_walk import BrokenBytes, walk
from ottla.log.inspection.directory_check import OFFSET_CHECKPOINTS, partition_names
from ottla.log.inspection.findings import Finding, FindingKind
from ottla.log.inspection.partition_check import PartitionReport, check_partition
from ottla.log.inspection.repair_plan import (
    Cut,
    RepairPlan,
    Replace,
    Step,
    Wish,
    plan_checkpoint,
    plan_partition,
)
from ottla.model.errors import CorruptData
from ottla.model.topics import TopicPartition
from ottla.model.values import dataclass, field


@dataclass(slots=True)
class DirectoryRepair:
    steps: list[Step] = field(default_factory=list)
    left: list[Finding] = field(default_factory=list)


def plan_repair(files: Files, log_directory: str, only: TopicPartition | None, wish: Wish) -> DirectoryRepair:
    """What to do in a directory of `log.dirs`, or for one partition in it and its checkpoint entries."""
    repair = DirectoryRepair()
    directories = partition_names(files, log_directory)
    end_offsets = {}
    for partition, path in directories.items():
        if only is not None and partition != only:
            continue
        report = check_partition(files, path)
        plan = plan_partition(report, wish, _find_cut(files, report, wish.cut_at))
        repair.steps += plan.steps
        repair.left += plan.left
        end_offsets[partition] = _trusted_end(plan)
    checked = set(end_offsets) if only is not None else _everything_of(files, log_directory, end_offsets)
    for name in OFFSET_CHECKPOINTS:
        path = os.path.join(log_directory, name)
        if files.exists(path):
            step = plan_checkpoint(path, _offsets_in(files, path), end_offsets, checked)
            if step is not None:
                repair.steps.append(step)
    if repair.steps or wish.drop_corrupt:
        listing = os.path.join(log_directory, segment_checkpoint.FILE_NAME)
        repair.steps[:0] = _forget_listed(files, listing, end_offsets)
    return repair


def _forget_listed(files: Files, path: str, partitions: Collection[TopicPartition]) -> Iterator[Step]:
    """The list of segments is of the logs as they were. (A broker makes it anew.)"""
    if not files.exists(path):
        return
    data = files.read_all(path)
    try:
        left = segment_checkpoint.without_entries(data, partitions)
    except (CorruptData, ValueError):
        left = b""
    if left != data:
        yield Replace(path, left, "a start would miss segments that were given up")


def _trusted_end(plan: RepairPlan) -> int:
    """Where the log ends; a damaged one that stays so keeps its checkpoints."""
    is_kept_damaged = any(finding.kind is FindingKind.CORRUPT_MIDDLE for finding in plan.left)
    return 2**63 - 1 if is_kept_damaged else plan.end_offset


def _everything_of(
    files: Files, log_directory: str, end_offsets: dict[TopicPartition, int]
) -> set[TopicPartition]:
    """Also the partitions that only checkpoints know of."""
    known = set(end_offsets)
    for name in OFFSET_CHECKPOINTS:
        path = os.path.join(log_directory, name)
        if files.exists(path):
            known |= set(_offsets_in(files, path) or ())
    return known


def _offsets_in(files: Files, path: str) -> dict[TopicPartition, int] | None:
    try:
        return checkpoints.decode_offsets(files.read_all(path))
    except CorruptData:
        return None


def _find_cut(files: Files, report: PartitionReport, cut_at: int | None) -> Cut | None:
    """At the first batch that holds or follows the offset, or at the log's end."""
    if cut_at is None or not report.segments:
        return None
    segment = next((s for s in reversed(report.segments) if s.base_offset <= cut_at), report.segments[0])
    before = [other.end_offset for other in report.segments if other.path < segment.path]
    end_offset = before[-1] if before else segment.base_offset
    handle = files.open(segment.path, writable=False)
    try:
        for part in walk(handle, segment.size, segment.base_offset):
            is_behind = (
                (part.next_offset is None or part.next_offset >= cut_at)
                if isinstance(part, BrokenBytes)
                else part.header.last_offset >= cut_at
            )
            if is_behind:
                return Cut(segment.path, part.position, end_offset)
            if not isinstance(part, BrokenBytes):
                end_offset = part.header.next_offset
    finally:
        handle.close()
    return Cut(segment.path, segment.size, end_offset)
