"""What would make a damaged log whole again: decided from the findings, step by step, without doing anything.

Only what cannot cost records is planned unasked: cutting a torn tail, and rebuilding what the log itself can
tell. A corrupt middle is given up only on a word: `cut_at` an offset, or `drop_corrupt`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from ottla.log import checkpoints, file_names, leader_epochs
from ottla.log.inspection.findings import Finding, FindingKind
from ottla.log.inspection.partition_check import PartitionReport
from ottla.log.inspection.segment_check import SegmentReport
from ottla.log.leader_epochs import LeaderEpochs
from ottla.model.topics import TopicPartition
from ottla.model.values import dataclass, field


@dataclass(slots=True, frozen=True)
class RemoveBytes:
    """Take a part out of a log file."""

    path: str
    position: int
    end: int
    why: str

    def __str__(self) -> str:
        return f"take out {self.end - self.position} bytes at {self.position}: {self.why}"


@dataclass(slots=True, frozen=True)
class PutAside:
    path: str
    why: str

    def __str__(self) -> str:
        return f"put aside: {self.why}"


@dataclass(slots=True, frozen=True)
class Replace:
    """Write a small file anew."""

    path: str
    content: bytes
    why: str

    def __str__(self) -> str:
        return f"write anew: {self.why}"


@dataclass(slots=True, frozen=True)
class RebuildIndexes:
    path: str  # of the .log file

    def __str__(self) -> str:
        return "rebuild the offset index and the time index"


@dataclass(slots=True, frozen=True)
class RebuildTxnIndexes:
    path: str  # of the partition's directory

    def __str__(self) -> str:
        return "rebuild the transaction indexes"


Step = RemoveBytes | PutAside | Replace | RebuildIndexes | RebuildTxnIndexes


@dataclass(slots=True, frozen=True)
class Wish:
    """What may be given up."""

    cut_at: int | None = None  # everything from this offset on
    drop_corrupt: bool = False  # every damaged part; the offsets in it will be missing


@dataclass(slots=True, frozen=True)
class Cut:
    """Where `Wish.cut_at` lies in the files."""

    path: str  # of the .log file
    position: int  # everything from here on goes, also in the segments that follow
    end_offset: int  # of the log afterwards


@dataclass(slots=True)
class RepairPlan:
    steps: list[Step] = field(default_factory=list)
    left: list[Finding] = field(default_factory=list)  # what these steps do not cure
    end_offset: int = 0  # of the log afterwards


_INCURABLE = (
    FindingKind.BROKEN_RECORDS,
    FindingKind.METADATA,
    FindingKind.LEFTOVER,
    FindingKind.UNREADABLE,
)


def plan_partition(report: PartitionReport, wish: Wish, cut: Cut | None) -> RepairPlan:
    plan = RepairPlan(end_offset=report.end_offset)
    plan.left += [finding for finding in report.findings if finding.kind in _INCURABLE]
    middles = [finding for finding in report.findings if finding.kind is FindingKind.CORRUPT_MIDDLE]
    kept = report.segments
    if cut is not None:
        kept = _cut(plan, report, cut)
        middles = [finding for finding in middles if _lies_before(finding, cut)]
    if middles and not wish.drop_corrupt:
        return RepairPlan([], report.findings, report.end_offset)  # rebuilding around it would hide it
    damaged = {(segment.path, damage.position) for segment in kept for damage in segment.damage}
    plan.left += [finding for finding in middles if (finding.path, finding.position) not in damaged]
    changed = _take_out_damage(plan, kept, cut)
    _rebuild(plan, report, kept, changed)
    return plan


def _lies_before(finding: Finding, cut: Cut) -> bool:
    return (finding.path, finding.position or 0) < (cut.path, cut.position)


def _cut(plan: RepairPlan, report: PartitionReport, cut: Cut) -> list[SegmentReport]:
    """Everything from the cut on goes; the segments that stay."""
    kept = []
    for segment in report.segments:
        if segment.path < cut.path:
            kept.append(segment)
        elif segment.path == cut.path and (cut.position > 0 or segment is report.segments[0]):
            if cut.position < segment.size:
                why = f"the log is cut at offset {cut.end_offset}"
                plan.steps.append(RemoveBytes(cut.path, cut.position, segment.size, why))
            kept.append(segment)
        else:
            plan.steps += _drop_segment(segment, f"it lies behind the cut at offset {cut.end_offset}")
    plan.end_offset = cut.end_offset
    return kept


def _drop_segment(segment: SegmentReport, why: str) -> Iterator[Step]:
    stem = segment.path.removesuffix(file_names.LOG)
    for suffix in file_names.SEGMENT_SUFFIXES:
        yield PutAside(stem + suffix, why)


def _take_out_damage(plan: RepairPlan, segments: list[SegmentReport], cut: Cut | None) -> set[str]:
    """The log files that change."""
    changed = {step.path for step in plan.steps if isinstance(step, RemoveBytes)}
    for segment in segments:
        end = cut.position if cut is not None and cut.path == segment.path else segment.size
        for damage in reversed(segment.damage):  # so that positions before it stay right
            is_reserved = damage.is_zero and segment is segments[-1]
            if not is_reserved and damage.position < end:
                plan.steps.append(RemoveBytes(segment.path, damage.position, damage.end, damage.problem))
                changed.add(segment.path)
    return changed


def _rebuild(plan: RepairPlan, report: PartitionReport, kept: list[SegmentReport], changed: set[str]) -> None:
    for segment in kept:
        stem = segment.path.removesuffix(file_names.LOG)
        indexes = (stem + file_names.OFFSET_INDEX, stem + file_names.TIME_INDEX)
        if segment.path in changed or any(finding.path in indexes for finding in report.findings):
            plan.steps.append(RebuildIndexes(segment.path))
    if changed or any(finding.kind is FindingKind.TXN_INDEX for finding in report.findings):
        plan.steps.append(RebuildTxnIndexes(report.path))
    is_shorter = plan.end_offset < report.end_offset
    plan.steps += _snapshots_aside(report, plan.end_offset)
    if is_shorter or any(finding.kind is FindingKind.LEADER_EPOCHS for finding in report.findings):
        content = _epochs_of(kept, plan.end_offset).encode()
        path = os.path.join(report.path, leader_epochs.FILE_NAME)
        plan.steps.append(Replace(path, content, "as the batches tell"))


def _snapshots_aside(report: PartitionReport, end_offset: int) -> Iterator[Step]:
    damaged = {finding.path for finding in report.findings if finding.kind is FindingKind.SNAPSHOT}
    for path in report.snapshots:
        taken_at = file_names.parse_offset(os.path.basename(path))
        if path in damaged or (taken_at is not None and taken_at > end_offset):
            yield PutAside(path, "the next start makes it anew from the log")


def _epochs_of(segments: list[SegmentReport], end_offset: int) -> LeaderEpochs:
    epochs = LeaderEpochs()
    for segment in segments:
        for epoch, start_offset in segment.leader_epochs.items():
            if epoch > epochs.latest:
                epochs.assign(epoch, start_offset)
    epochs.truncate_end(end_offset)
    return epochs


def plan_checkpoint(
    path: str,
    offsets: dict[TopicPartition, int] | None,
    end_offsets: dict[TopicPartition, int],
    checked: set[TopicPartition],
) -> Step | None:
    """A checkpoint that says no more than the logs hold, of the partitions `checked`. None: it is right.

    `offsets` None: it cannot be read; without it the next start looks through every log.
    """
    if offsets is None:
        return PutAside(path, "the next start looks through every log instead")
    right = {
        partition: min(offset, end_offsets.get(partition, offset))
        for partition, offset in offsets.items()
        if partition in end_offsets or partition not in checked
    }
    if right == offsets:
        return None
    return Replace(path, checkpoints.encode_offsets(right), "so that it says no more than the logs hold")
