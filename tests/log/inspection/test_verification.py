"""Verification finds every kind of damage, says where it is, and finds none in a healthy directory."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from log.building import NOW_MS, PARTITION
from log.inspection.filled import BATCHES, FILES, filled_directory, flip, segment_paths
from old_messages import OLD_CODECS, OLD_FORMATS
from ottla.log import checkpoints, segment_checkpoint
from ottla.log.file_names import offset_name
from ottla.log.inspection.directory_check import check_directory, is_in_use
from ottla.log.inspection.findings import Finding, FindingKind
from ottla.log.inspection.partition_check import check_partition
from ottla.log.inspection.segment_check import check_segment
from ottla.records.batch import header_bytes, read_header
from ottla.records.content import Record, build_batch
from ottla.records.formats import scan
from ottla.records.legacy import build_legacy


@pytest.fixture
def partition(tmp_path: Path) -> str:
    return filled_directory(tmp_path / "log")


def findings(partition: str) -> list[Finding]:
    return check_directory(FILES, os.path.dirname(partition), look_inside=True).findings


def only_finding(partition: str) -> Finding:
    found = findings(partition)
    assert len(found) == 1, found
    return found[0]


def write_segment(directory: Path, content: bytes, base_offset: int = 0) -> str:
    path = directory / offset_name(base_offset, ".log")
    path.write_bytes(content)
    return str(path)


def test_a_healthy_directory_has_no_findings(partition: str) -> None:
    report = check_directory(FILES, os.path.dirname(partition), look_inside=True)
    assert report.findings == []
    checked = report.partitions[PARTITION]
    assert checked.end_offset == BATCHES * 8
    assert sum(segment.batch_count for segment in checked.segments) == BATCHES * 2
    assert sum(segment.record_count for segment in checked.segments) == BATCHES * 8
    assert len(checked.segments) > 3


def test_a_torn_tail_is_named_with_its_position_and_offset(partition: str) -> None:
    last = segment_paths(partition)[-1]
    batches = list(scan(Path(last).read_bytes()))
    position, header = batches[-1]
    os.truncate(last, position + header.size - 5)
    found = [finding for finding in findings(partition) if finding.path == last]
    assert [(finding.kind, finding.position, finding.offset) for finding in found] == [
        (FindingKind.TORN_TAIL, position, header.base_offset)
    ]
    assert "repair" in found[0].cure


def test_what_speaks_of_a_lost_tail_is_found_too(partition: str) -> None:
    last = segment_paths(partition)[-1]
    os.truncate(last, 0)
    kinds = {finding.kind for finding in findings(partition)}
    assert {FindingKind.INDEX, FindingKind.SNAPSHOT, FindingKind.CHECKPOINT} <= kinds


def test_damage_in_the_middle_of_a_segment_is_told_from_a_tail(partition: str) -> None:
    last = segment_paths(partition)[-1]
    (position, _), (after, _) = list(scan(Path(last).read_bytes()))[:2]
    flip(last, position + 70)
    found = [finding for finding in findings(partition) if finding.kind == FindingKind.CORRUPT_MIDDLE]
    assert [finding.position for finding in found] == [position]
    assert f"whole again at {after}" in found[0].problem


def test_the_end_of_an_older_segment_is_a_middle(partition: str) -> None:
    older = segment_paths(partition)[1]
    os.truncate(older, os.path.getsize(older) - 1)
    assert FindingKind.CORRUPT_MIDDLE in {finding.kind for finding in findings(partition)}


def test_a_lost_segment_is_found(partition: str) -> None:
    _, lost, after = segment_paths(partition)[:3]
    os.remove(lost)
    (finding,) = [each for each in findings(partition) if each.kind is FindingKind.MISSING_RECORDS]
    assert (finding.path, finding.offset) == (after, int(Path(lost).stem))
    assert f"offsets {int(Path(lost).stem)} to {int(Path(after).stem) - 1} are missing" in finding.problem


def test_a_compacted_log_may_have_gaps_between_segments(partition: str) -> None:
    os.remove(segment_paths(partition)[1])
    cleaned = checkpoints.encode_offsets({PARTITION: 8})
    Path(os.path.dirname(partition), checkpoints.CLEANER_OFFSETS).write_bytes(cleaned)
    Path(os.path.dirname(partition), segment_checkpoint.FILE_NAME).unlink()  # as when Kafka cleaned it
    assert FindingKind.MISSING_RECORDS not in {each.kind for each in findings(partition)}


def test_a_compacted_log_without_a_segment_that_is_listed_is_found(partition: str) -> None:
    lost = segment_paths(partition)[1]
    os.remove(lost)
    cleaned = checkpoints.encode_offsets({PARTITION: 8})
    Path(os.path.dirname(partition), checkpoints.CLEANER_OFFSETS).write_bytes(cleaned)
    [finding] = [each for each in findings(partition) if each.kind is FindingKind.MISSING_RECORDS]
    assert finding.path == lost
    assert finding.problem.startswith(f"is gone; it held offsets {int(Path(lost).stem)} to ")


def test_the_next_batch_is_found_although_a_length_is_destroyed(tmp_path: Path) -> None:
    batches = [build_batch([Record(at, NOW_MS, None, b"x" * 50)], base_offset=at) for at in range(3)]
    damaged = bytearray(batches[0])
    struct.pack_into(">i", damaged, 8, 1 << 30)
    path = write_segment(tmp_path, bytes(damaged) + batches[1] + batches[2])
    report = check_segment(FILES, path, is_last=True)
    (damage,) = report.damage
    assert (damage.position, damage.end, damage.next_offset) == (0, len(batches[0]), 1)
    assert report.batch_count == 2


def test_every_byte_that_a_checksum_covers_is_watched(tmp_path: Path) -> None:
    batches = [build_batch([Record(at, NOW_MS, b"k", b"v")], base_offset=at, codec=at) for at in range(3)] + [
        build_legacy([Record(3, NOW_MS, b"k", b"v")], 0),
        build_legacy([Record(4, NOW_MS, b"k", b"v")], 1),
    ]
    content = b"".join(batches)
    start = 0
    for data in batches:
        for at in range(start + 8, start + len(data)):
            if start + 12 <= at < start + 16 and len(data) > 61:
                continue  # the leader epoch, which the leader writes without a new checksum
            path = write_segment(tmp_path, content)
            flip(path, at)
            assert check_segment(FILES, path, is_last=True).findings, at
        start += len(data)


def test_offsets_that_go_back_are_found(tmp_path: Path) -> None:
    one = build_batch([Record(5, NOW_MS, None, b"x")], base_offset=5)
    two = build_batch([Record(4, NOW_MS, None, b"x")], base_offset=4)
    path = write_segment(tmp_path, one + two)
    (finding,) = check_segment(FILES, path, is_last=True).findings
    assert "offset 4 follows, where 6 or more is expected" in finding.problem


def test_segments_that_overlap_are_found(tmp_path: Path) -> None:
    one = build_batch([Record(at, NOW_MS, None, b"x") for at in range(9)])
    two = build_batch([Record(5, NOW_MS, None, b"x")], base_offset=5)
    write_segment(tmp_path, one)
    write_segment(tmp_path, two, 5)
    found = check_partition(FILES, str(tmp_path)).findings
    (finding,) = [finding for finding in found if finding.kind is FindingKind.CORRUPT_MIDDLE]
    assert "the segment before it ends at 9" in finding.problem


def test_zeros_behind_the_last_batch_are_reserved_space(partition: str) -> None:
    last = segment_paths(partition)[-1]
    for path in (last, *segment_paths(partition, "index")):
        Path(path).write_bytes(Path(path).read_bytes() + bytes(8 * 12 * 10))
    assert findings(partition) == []


def test_indexes_that_are_only_reserved_space_know_nothing(tmp_path: Path) -> None:
    path = write_segment(tmp_path, b"")
    for suffix in (".index", ".timeindex"):
        Path(path.replace(".log", suffix)).write_bytes(bytes(1200))
    assert check_segment(FILES, path, is_last=True).findings == []


def test_broken_records_under_a_right_checksum_are_found_when_looked_inside(tmp_path: Path) -> None:
    good = build_batch([Record(0, NOW_MS, None, b"x" * 20)])
    body = b"\x7f" + good[62:]
    path = write_segment(tmp_path, header_bytes(read_header(good), body) + body)
    assert check_segment(FILES, path).findings == []
    (finding,) = check_segment(FILES, path, look_inside=True).findings
    assert finding.kind == FindingKind.BROKEN_RECORDS


@pytest.mark.parametrize("change", ["position", "order", "size", "behind the end"])
def test_a_lying_offset_index_is_found(partition: str, change: str) -> None:
    path = segment_paths(partition, ".index")[1]
    entries = list(struct.iter_unpack(">ii", Path(path).read_bytes()))
    assert len(entries) > 2
    if change == "position":
        entries[1] = (entries[1][0], entries[1][1] + 1)
    elif change == "order":
        entries[2] = (entries[1][0], entries[2][1])
    elif change == "behind the end":
        entries.append((entries[-1][0] + 1000, entries[-1][1] + 10_000))
    content = b"".join(struct.pack(">ii", *entry) for entry in entries)
    Path(path).write_bytes(content + (b"abc" if change == "size" else b""))
    found = only_finding(partition)
    assert (found.kind, found.path) == (FindingKind.INDEX, path)


def test_a_missing_offset_index_is_found(partition: str) -> None:
    path = segment_paths(partition, ".index")[1]
    os.unlink(path)
    found = only_finding(partition)
    assert (found.kind, found.path) == (FindingKind.INDEX, path)


@pytest.mark.parametrize("change", ["too early", "order", "behind the end"])
def test_a_lying_time_index_is_found(partition: str, change: str) -> None:
    path = segment_paths(partition, ".timeindex")[1]
    entries = list(struct.iter_unpack(">qi", Path(path).read_bytes()))
    assert len(entries) > 2
    if change == "too early":
        entries[1] = (entries[1][0] - 1, entries[1][1])
    elif change == "order":
        entries[2] = (entries[0][0], entries[2][1])
    else:
        entries.append((entries[-1][0] + 1, entries[-1][1] + 10_000))
    Path(path).write_bytes(b"".join(struct.pack(">qi", *entry) for entry in entries))
    found = only_finding(partition)
    assert (found.kind, found.path) == (FindingKind.INDEX, path)


@pytest.mark.parametrize(
    ("suffix", "kind"),
    [
        (".snapshot", FindingKind.SNAPSHOT),
        ("leader-epoch-checkpoint", FindingKind.LEADER_EPOCHS),
        ("partition.metadata", FindingKind.METADATA),
    ],
)
def test_damaged_files_beside_the_segments_are_found(partition: str, suffix: str, kind: FindingKind) -> None:
    path = segment_paths(partition, suffix)[-1]
    flip(path, 0)
    found = only_finding(partition)
    assert (found.kind, found.path) == (kind, path)


@pytest.mark.parametrize("content", [b"not a checkpoint", b"0\n1\norders 0 999999\n", b"0\n1\nnobody 0 5\n"])
def test_checkpoints_that_do_not_fit_their_logs_are_found(partition: str, content: bytes) -> None:
    path = os.path.join(os.path.dirname(partition), checkpoints.RECOVERY_POINTS)
    Path(path).write_bytes(content)
    found = only_finding(partition)
    assert (found.kind, found.path) == (FindingKind.CHECKPOINT, path)


def test_a_damaged_transaction_index_is_found(partition: str) -> None:
    path = segment_paths(partition)[0].replace(".log", ".txnindex")
    Path(path).write_bytes(struct.pack(">hqqqq", 0, 7, 3, 9, 9) * 2)
    assert only_finding(partition).kind == FindingKind.TXN_INDEX


def test_beside_a_running_broker_a_half_written_end_is_none(partition: str) -> None:
    lock = FILES.lock(os.path.join(os.path.dirname(partition), ".lock"))
    try:
        assert is_in_use(FILES, os.path.dirname(partition))
        last = segment_paths(partition)[-1]
        os.truncate(last, os.path.getsize(last) - 1)
        assert findings(partition) == []
        flip(segment_paths(partition)[0], 70)
        assert {finding.kind for finding in findings(partition)} == {FindingKind.CORRUPT_MIDDLE}
    finally:
        lock.release()
    assert not is_in_use(FILES, os.path.dirname(partition))


@pytest.mark.parametrize("magic", OLD_FORMATS)
@pytest.mark.parametrize("codec", OLD_CODECS)
def test_old_formats_are_verified(tmp_path: Path, magic: int, codec: int) -> None:
    content = b"".join(
        build_legacy([Record(at + n, NOW_MS + at, b"k", b"v") for n in range(5)], magic, codec)
        for at in range(0, 50, 5)
    )
    path = write_segment(tmp_path, content)
    report = check_segment(FILES, path, look_inside=True)
    assert report.findings == []
    assert report.end_offset == 50
    flip(path, len(content) // 2)
    assert check_segment(FILES, path).findings


def test_the_pace_hears_of_every_byte_read(partition: str) -> None:
    path = segment_paths(partition)[0]
    read: list[int] = []
    check_segment(FILES, path, pace=read.append)
    assert sum(read) >= os.path.getsize(path)
