"""Repair makes a damaged log whole, gives up only what it was told to, and keeps what it takes away."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from log.building import NOW_MS, PARTITION, config, new_log, open_directory, produced, read_all, sync
from log.inspection.filled import BATCHES, FILES, filled_directory, flip, segment_paths
from ottla.log import checkpoints, leader_epochs
from ottla.log.inspection.directory_check import check_directory
from ottla.log.inspection.findings import FindingKind
from ottla.log.inspection.repair import perform
from ottla.log.inspection.repair_directory import DirectoryRepair, plan_repair
from ottla.log.inspection.repair_plan import Wish
from ottla.log.transaction_markers import build_marker
from ottla.log.txn_index import AbortedTransaction, decode_aborted
from ottla.records.batch import TRANSACTIONAL, CheckedBatch
from ottla.records.formats import scan

NOTHING = Wish()


@pytest.fixture
def partition(tmp_path: Path) -> str:
    return filled_directory(tmp_path / "log")


def plan(partition: str, wish: Wish = NOTHING) -> DirectoryRepair:
    return plan_repair(FILES, os.path.dirname(partition), None, wish)


def repair(partition: str, wish: Wish = NOTHING) -> DirectoryRepair:
    planned = plan(partition, wish)
    for step in planned.steps:
        perform(FILES, step)
    return planned


def content_of(partition: str) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes() for path in sorted(Path(partition).parent.rglob("*")) if path.is_file()
    }


def offsets_served(partition: str) -> list[int]:
    """What a broker finds when it opens the directory, which verifies as whole."""
    assert check_directory(FILES, os.path.dirname(partition), look_inside=True).findings == []
    directory = open_directory(FILES, os.path.dirname(partition), config())
    try:
        assert not directory.failed
        log = directory.logs[PARTITION]
        return [record.offset for record in read_all(log)]
    finally:
        directory.close()


def test_a_healthy_directory_needs_nothing(partition: str) -> None:
    planned = plan(partition)
    assert (planned.steps, planned.left) == ([], [])


def test_planning_changes_nothing(partition: str) -> None:
    flip(segment_paths(partition)[-1], 30)
    before = content_of(partition)
    assert plan(partition, Wish(drop_corrupt=True)).steps
    assert content_of(partition) == before


def test_a_torn_tail_is_cut_and_kept_beside(partition: str) -> None:
    last = segment_paths(partition)[-1]
    position, header = list(scan(Path(last).read_bytes()))[-1]
    flip(last, position + 65)
    lost = Path(last).read_bytes()[position:]
    assert repair(partition).left == []
    assert Path(f"{last}.{position}.removed").read_bytes() == lost
    assert offsets_served(partition) == list(range(header.base_offset))


def test_a_corrupt_middle_is_left_alone_unless_told(partition: str) -> None:
    first = segment_paths(partition)[0]
    flip(first, 70)
    before = content_of(partition)
    planned = repair(partition)
    assert [finding.kind for finding in planned.left] == [FindingKind.CORRUPT_MIDDLE]
    assert planned.steps == []
    assert content_of(partition) == before


def test_a_corrupt_middle_is_dropped_when_told(partition: str) -> None:
    path = segment_paths(partition)[1]
    batches = list(scan(Path(path).read_bytes()))
    position, header = batches[2]
    flip(path, position + 65)
    lost = Path(path).read_bytes()[position : position + header.size]
    assert repair(partition, Wish(drop_corrupt=True)).left == []
    assert Path(f"{path}.{position}.removed").read_bytes() == lost
    missing = set(range(header.base_offset, header.next_offset))
    assert offsets_served(partition) == [at for at in range(BATCHES * 8) if at not in missing]


@pytest.mark.parametrize("cut_at", [0, 3, 5, 100, 101, BATCHES * 8])
def test_a_log_is_cut_at_an_offset(partition: str, cut_at: int) -> None:
    damaged = segment_paths(partition)[-1]
    flip(damaged, 70)
    before = content_of(partition)
    planned = repair(partition, Wish(cut_at=cut_at))
    if cut_at == BATCHES * 8:
        assert planned.left, "the damage lies before the cut"
        assert content_of(partition) == before
        return
    assert planned.left == []
    served = offsets_served(partition)
    assert served == list(range(len(served)))
    assert cut_at - 8 < len(served) <= cut_at
    for name, data in before.items():
        if name.endswith(".log"):
            whole = Path(name).read_bytes() if os.path.exists(name) else b""
            removed = b"".join(
                path.read_bytes() for path in Path(partition).glob(f"{Path(name).name}*.removed")
            )
            assert whole + removed == data, "nothing is lost"


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".snapshot", leader_epochs.FILE_NAME])
def test_what_the_log_can_tell_is_rebuilt(partition: str, suffix: str) -> None:
    path = segment_paths(partition, suffix)[-2 if suffix != leader_epochs.FILE_NAME else -1]
    before = Path(path).read_bytes()
    Path(path).write_bytes(b"\x09" * (len(before) + 1))
    assert repair(partition).left == []
    kept = Path(f"{path}.removed")
    assert kept.read_bytes() == b"\x09" * (len(before) + 1)
    if suffix == leader_epochs.FILE_NAME:
        assert Path(path).read_bytes() == before
    assert offsets_served(partition) == list(range(BATCHES * 8))


@pytest.mark.parametrize(
    "content", [b"garbage", b"0\n2\norders 0 99999\nnobody 1 7\n"], ids=["unreadable", "too far"]
)
@pytest.mark.parametrize(
    "name", [checkpoints.RECOVERY_POINTS, checkpoints.HIGH_WATERMARKS, checkpoints.CLEANER_OFFSETS]
)
def test_checkpoints_say_no_more_than_the_logs_hold(partition: str, name: str, content: bytes) -> None:
    path = Path(partition).parent / name
    path.write_bytes(content)
    assert repair(partition).left == []
    assert offsets_served(partition) == list(range(BATCHES * 8))
    assert Path(f"{path}.removed").read_bytes() == content


def test_metadata_that_only_a_backup_has_is_left_and_named(partition: str) -> None:
    flip(os.path.join(partition, checkpoints.PARTITION_METADATA), 0)
    planned = repair(partition)
    assert [finding.kind for finding in planned.left] == [FindingKind.METADATA]
    assert "backup" in planned.left[0].cure


def test_a_second_repair_keeps_what_the_first_one_put_aside(partition: str) -> None:
    path = segment_paths(partition, ".index")[0]
    for garbage in (b"\x09" * 17, b"\x08" * 17):
        Path(path).write_bytes(garbage)
        repair(partition)
    kept = {file.read_bytes() for file in Path(partition).glob("*.index.removed*")}
    assert kept == {b"\x09" * 17, b"\x08" * 17}


def test_transaction_indexes_are_rebuilt_from_the_log(tmp_path: Path) -> None:
    directory, log = new_log(FILES, str(tmp_path / "log"))

    def marker(producer_id: int, *, commit: bool) -> CheckedBatch:
        return build_marker(producer_id, 0, commit, 4, NOW_MS)

    begun = [produced(producer, 0, 0, 2, flags=TRANSACTIONAL) for producer in (1, 2, 3)]
    log.append([*begun, marker(2, commit=False), marker(1, commit=True), marker(3, commit=False)], 0, NOW_MS)
    sync(log)
    directory.close({PARTITION: log.log_end_offset})
    path = segment_paths(log.directory)[0].replace(".log", ".txnindex")
    Path(path).write_bytes(b"garbage")
    assert repair(log.directory).left == []
    assert decode_aborted(Path(path).read_bytes()) == [
        AbortedTransaction(2, 2, 6, 0),
        AbortedTransaction(3, 4, 8, 9),
    ]
