"""Damage anywhere in a segment is found; what is sound is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from log.building import append, config, new_log
from ottla.log.scrub import PIECE_BYTES, SegmentScrub
from ottla.log.system_files import SystemFiles
from ottla.model.errors import CorruptData


@pytest.mark.parametrize("value_bytes", [50, 1_000, 20_000, PIECE_BYTES * 2])
def test_every_batch_is_read_and_a_damaged_one_is_found(tmp_path: Path, value_bytes: int) -> None:
    directory, log = new_log(SystemFiles(), str(tmp_path / "disk"), config())
    while log.size_bytes < 3 * PIECE_BYTES + 7:
        append(log, [b"x" * value_bytes])
    (segment,) = log.segments
    assert scrubbed(SegmentScrub(SystemFiles(), segment)) == log.size_bytes
    path = Path(segment.log.path)
    content = path.read_bytes()
    for position in (70, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
        with pytest.raises(CorruptData, match="is damaged at position"):
            scrubbed(SegmentScrub(SystemFiles(), segment))
    path.write_bytes(content)
    scrubbed(SegmentScrub(SystemFiles(), segment))
    directory.abandon()


def scrubbed(scrub: SegmentScrub) -> int:
    """Bytes of whole batches, all of which are right."""
    while not scrub.is_done:
        scrub.read_piece()
    return scrub._position


def test_what_was_cut_off_in_the_meantime_is_no_damage(tmp_path: Path) -> None:
    directory, log = new_log(SystemFiles(), str(tmp_path / "disk"), config())
    for _ in range(10):
        append(log, [b"x" * 100])
    scrub = SegmentScrub(SystemFiles(), log.segments[0])
    assert scrub.is_of(log.segments)
    log.truncate_to(5, 0)
    assert not scrub.is_of(log.segments)
    directory.abandon()


def test_what_was_renamed_in_the_meantime_is_no_damage(tmp_path: Path) -> None:
    directory, log = new_log(SystemFiles(), str(tmp_path / "disk"), config())
    append(log, [b"v"])
    (segment,) = log.segments
    scrub = SegmentScrub(SystemFiles(), segment)
    assert scrub.is_of(log.segments)
    renamed = Path(segment.log.path).rename(segment.log.path + ".swap")
    with pytest.raises(FileNotFoundError):
        scrub.read_piece()
    segment.log.path = str(renamed)
    assert not scrub.is_of(log.segments)
    directory.abandon()
