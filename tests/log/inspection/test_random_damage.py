"""Whatever happens to the files: verification never stumbles, and what a repair leaves opens and is true."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from log.building import PARTITION, config, open_directory, read_all
from log.inspection.filled import FILES, filled_directory
from ottla.log import checkpoints
from ottla.log.inspection.directory_check import check_directory
from ottla.log.inspection.findings import FindingKind
from ottla.log.inspection.repair import perform
from ottla.log.inspection.repair_directory import plan_repair
from ottla.log.inspection.repair_plan import Wish
from ottla.records.content import Record

UNTOUCHED = ("meta.properties", ".lock", ".kafka_cleanshutdown", checkpoints.PARTITION_METADATA)


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("healthy") / "log"
    filled_directory(path)
    return path


@pytest.fixture(scope="module")
def written(healthy: Path, tmp_path_factory: pytest.TempPathFactory) -> set[Record]:
    copy = tmp_path_factory.mktemp("copy") / "log"
    shutil.copytree(healthy, copy)
    return {record._replace(offset=0) for record in served(copy)}


def served(path: Path) -> list[Record]:
    directory = open_directory(FILES, str(path), config())
    try:
        assert not directory.failed
        return read_all(directory.logs[PARTITION])
    finally:
        directory.close()


def damage(rng: random.Random, path: Path) -> None:
    data = bytearray(path.read_bytes())
    at = rng.randrange(len(data)) if data else 0
    size = rng.choice([1, 1, 4, 30, 300])
    match rng.randrange(6):
        case 0:
            data[at : at + 1] = bytes((rng.randrange(256),))
        case 1:
            del data[at:]
        case 2:
            data[at : at + size] = bytes(min(size, len(data) - at))
        case 3:
            data[at : at + size] = rng.randbytes(min(size, len(data) - at))
        case 4:
            data += rng.randbytes(size)
        case 5:
            path.unlink()
            return
    path.write_bytes(data)


def check_one(seed: int, healthy: Path, copy: Path, written: set[Record]) -> None:
    shutil.copytree(healthy, copy)
    rng = random.Random(seed)
    files = sorted(path for path in copy.rglob("*") if path.is_file() and path.name not in UNTOUCHED)
    for path in rng.sample(files, rng.choice([1, 1, 2, 4])):
        damage(rng, path)
    check_directory(FILES, str(copy), look_inside=True)
    for _ in range(2):  # dropping a part may bring to light what lies behind it
        planned = plan_repair(FILES, str(copy), None, Wish(drop_corrupt=True))
        for step in planned.steps:
            perform(FILES, step)
    found = check_directory(FILES, str(copy), look_inside=True).findings
    left = [finding for finding in found if finding.kind is not FindingKind.MISSING_RECORDS]
    assert [finding for finding in left if finding.kind is not FindingKind.CORRUPT_MIDDLE] == []
    if left:
        return  # segments that overlap: offsets were changed where no checksum protects them
    # Offsets of batches are not under their checksum; everything else is.
    assert {record._replace(offset=0) for record in served(copy)} <= written, "nothing is invented"


@pytest.mark.parametrize("seed", range(60))
def test_a_repaired_directory_opens_and_holds_only_what_was_written(
    seed: int, healthy: Path, tmp_path: Path, written: set[Record]
) -> None:
    check_one(seed, healthy, tmp_path / "log", written)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1_000, 3_000))
def test_a_repaired_directory_opens_and_holds_only_what_was_written_at_length(
    seed: int, healthy: Path, tmp_path: Path, written: set[Record]
) -> None:
    check_one(seed, healthy, tmp_path / "log", written)
