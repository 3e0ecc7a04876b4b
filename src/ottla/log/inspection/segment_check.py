"""One segment, checked as a whole: every batch of its log, and its indexes against them."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ottla.log import file_names
from ottla.log.files import FileHandle, Files
from ottla.log.inspection.batch_walk import BrokenBytes, Pace, WholeBatch, walk
from ottla.log.inspection.findings import Finding, FindingKind
from ottla.log.inspection.index_check import OffsetIndexCheck, TimeIndexCheck, check_order, decode_entries
from ottla.log.offset_index import OffsetIndex
from ottla.log.sparse_index import Entry, SparseIndex
from ottla.log.time_index import TimeIndex
from ottla.log.txn_index import ENTRY_BYTES, decode_aborted
from ottla.model.errors import CorruptData
from ottla.model.offsets import NO_LEADER_EPOCH, NO_TIMESTAMP
from ottla.model.values import dataclass, field
from ottla.records.findings import CorruptRecords
from ottla.records.formats import records_of
from ottla.records.legacy import UNKNOWN_COUNT


@dataclass(slots=True)
class SegmentReport:
    path: str  # of the .log file
    base_offset: int
    end_offset: int  # behind the last whole batch
    size: int = 0  # of the file
    valid_size: int = 0  # where the last whole batch ends
    batch_count: int = 0
    record_count: int = 0  # compressed messages of the old formats count as one
    max_timestamp: int = NO_TIMESTAMP
    leader_epochs: dict[int, int] = field(default_factory=dict)  # first offset seen of each
    damage: list[BrokenBytes] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def is_dense(self) -> bool:
        """Whether every offset from its first on has a record, as long as nothing was compacted or lost."""
        return self.record_count > 0 and self.record_count == self.end_offset - self.base_offset


def check_segment(
    files: Files,
    log_path: str,
    *,
    is_last: bool = False,
    is_growing: bool = False,
    look_inside: bool = False,
    pace: Pace | None = None,
) -> SegmentReport:
    """Read all of a segment and say what is wrong with it. Changes nothing, and needs no lock.

    `is_last`: damage at its end is what a crash leaves. `is_growing`: a broker writes to it at this moment,
    so that its end may be half written. `look_inside`: decode every record too. OSError: it cannot be read.
    """
    base_offset = file_names.parse_offset(os.path.basename(log_path))
    if base_offset is None:
        raise ValueError(f"{log_path} is not named after its first offset")
    report = SegmentReport(log_path, base_offset, base_offset)
    stem = log_path.removesuffix(file_names.LOG)
    # Indexes first: what they know is in the log by the time that is opened.
    offsets = _load_index(files, stem + file_names.OFFSET_INDEX, OffsetIndex, report, is_growing=is_growing)
    times = _load_index(files, stem + file_names.TIME_INDEX, TimeIndex, report, is_growing=is_growing)
    offset_check = OffsetIndexCheck(stem + file_names.OFFSET_INDEX, offsets, base_offset)
    time_check = TimeIndexCheck(stem + file_names.TIME_INDEX, times, base_offset)
    handle = files.open(log_path, writable=False)
    try:
        report.size = handle.size
        for part in walk(handle, report.size, base_offset, pace):
            if isinstance(part, BrokenBytes):
                report.damage.append(part)
                continue
            _count(report, part)
            offset_check.see(*part)
            time_check.see(part.header)
            if look_inside:
                report.findings += _broken_records(handle, log_path, part)
    finally:
        handle.close()
    offset_check.finish(report.valid_size)
    time_check.finish(report.end_offset)
    report.findings += _damage_findings(report, is_last=is_last, is_growing=is_growing)
    report.findings += offset_check.findings + time_check.findings
    report.findings += _check_txn_index(files, stem + file_names.TXN_INDEX)
    return report


def _count(report: SegmentReport, batch: WholeBatch) -> None:
    header = batch.header
    report.end_offset = header.next_offset
    report.valid_size = batch.position + header.size
    report.batch_count += 1
    report.record_count += 1 if header.record_count == UNKNOWN_COUNT else header.record_count
    report.max_timestamp = max(report.max_timestamp, header.max_timestamp)
    if header.leader_epoch != NO_LEADER_EPOCH:
        report.leader_epochs.setdefault(header.leader_epoch, header.base_offset)


def _load_index(
    files: Files, path: str, index_type: type[SparseIndex], report: SegmentReport, *, is_growing: bool
) -> list[Entry]:
    """Its entries as far as they are in order; a missing index knows nothing."""
    try:
        entries, rest = decode_entries(index_type, files.read_all(path))
    except FileNotFoundError:
        return []
    for finding in check_order(path, index_type, entries, 0 if is_growing else rest):
        report.findings.append(finding)
        assert finding.position is not None
        del entries[finding.position // index_type.ENTRY.size :]
    return entries


def _damage_findings(report: SegmentReport, *, is_last: bool, is_growing: bool) -> Iterator[Finding]:
    for damage in report.damage:
        is_tail = damage.next_offset is None
        if is_tail and is_last and (is_growing or damage.is_zero):
            continue  # being written, or reserved
        kind = FindingKind.TORN_TAIL if is_tail and is_last else FindingKind.CORRUPT_MIDDLE
        rest = "the rest of the file" if is_tail else f"whole again at {damage.end}"
        problem = f"{damage.problem}; {damage.size} bytes are lost, {rest}"
        yield Finding(kind, report.path, problem, damage.position, damage.offset)


def _broken_records(handle: FileHandle, path: str, batch: WholeBatch) -> Iterator[Finding]:
    position, header = batch
    try:
        for _ in records_of(handle.pread(header.size, position)):
            pass
    except CorruptRecords as error:
        yield Finding(FindingKind.BROKEN_RECORDS, path, str(error), position, header.base_offset)


def _check_txn_index(files: Files, path: str) -> Iterator[Finding]:
    if not files.exists(path):
        return
    try:
        transactions = decode_aborted(files.read_all(path))
    except CorruptData as error:
        yield Finding(FindingKind.TXN_INDEX, path, str(error))
        return
    last_before = -1
    for number, transaction in enumerate(transactions):
        if not last_before < transaction.last_offset >= transaction.first_offset:
            problem = f"entry {number} is out of order: {transaction}"
            yield Finding(
                FindingKind.TXN_INDEX, path, problem, number * ENTRY_BYTES, transaction.first_offset
            )
        last_before = transaction.last_offset
