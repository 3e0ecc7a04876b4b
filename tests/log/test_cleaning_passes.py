"""What a cleaning pass does to segments, when one is due, and what else may happen meanwhile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from log.building import (
    NOW_MS,
    PARTITION,
    read_all,
    sync,
)
from log.cleaning import (
    FILES,
    Compacted,
    clean,
    cleanable,
    job_for,
)
from ottla.log.cleaner import Cleaner
from ottla.log.cleaning_job import CleanedGroup


@pytest.fixture
def compacted(tmp_path: Path) -> Compacted:
    return Compacted(tmp_path / "logs")


class TestSegments:
    def test_small_ones_become_one_and_lookups_still_work(self, tmp_path: Path) -> None:
        compacted = Compacted(tmp_path / "logs", index_interval_bytes=100)
        for number in range(40):
            compacted.write((f"key{number % 20}", f"{number}"), at=NOW_MS + number, roll=True)
        compacted.clean()
        assert [segment.base_offset for segment in compacted.log.segments] == [0, 40]
        assert compacted.names(".log") == [f"{base:020}.log" for base in (0, 40)]
        assert compacted.names(".index") == [f"{base:020}.index" for base in (0, 40)]
        for offset in range(41):
            expected = list(range(max(offset, 20), 40))
            assert [record.offset for record in read_all(compacted.log, offset=offset)] == expected
        found = compacted.log.offset_for_timestamp(NOW_MS + 3)
        assert found is not None
        assert found.offset == 20

    def test_they_are_not_merged_beyond_segment_bytes(self, tmp_path: Path) -> None:
        compacted = Compacted(tmp_path / "logs", segment_bytes=250)
        for number in range(6):
            compacted.write((f"key{number}", "v" * 20), roll=True)
        compacted.clean()
        sizes = [segment.size for segment in compacted.log.segments[:-1]]
        assert max(sizes) <= 250
        assert len(sizes) == 3

    def test_empty_ones_stay_where_they_are_until_they_fit_a_neighbour(self, tmp_path: Path) -> None:
        compacted = Compacted(tmp_path / "logs", segment_bytes=100)
        for number in range(4):
            compacted.write(("key", f"{number}" * 10), roll=True)
        compacted.clean()
        assert compacted.records() == [(3, "key", "3333333333")]
        compacted.reopen(cleanly=False)
        compacted.write(("key", "x"), roll=True)
        compacted.clean()
        assert compacted.records() == [(4, "key", "x")]
        assert len(compacted.log.segments) == 3

    def test_the_new_file_is_as_old_as_the_newest_it_replaces(self, compacted: Compacted) -> None:
        compacted.write(("a", "1"), roll=True)
        compacted.write(("a", "2"), roll=True)
        for segment, modified_ms in zip(compacted.log.segments, (1_000_000, 2_000_000), strict=False):
            os.utime(segment.log.path, (modified_ms / 1000, modified_ms / 1000))
        compacted.clean()
        assert FILES.modified_ms(compacted.log.segments[0].log.path) == 2_000_000

    def test_old_files_are_removed_after_the_delay(self, compacted: Compacted) -> None:
        compacted.write(("a", "1"), roll=True)
        compacted.clean()
        assert compacted.names(".deleted")
        assert compacted.directory.take_due_deletions(NOW_MS) is None
        removal = compacted.directory.take_due_deletions(NOW_MS + compacted.topic.file_delete_delay_ms)
        assert removal is not None
        removal.run()
        assert compacted.names(".deleted") == compacted.names(".swap") == compacted.names(".cleaned") == []


class TestWhatIsDue:
    def test_the_dirty_ratio_decides(self, tmp_path: Path) -> None:
        compacted = Compacted(tmp_path / "logs", min_cleanable_dirty_ratio=0.5)
        compacted.write(*((f"key{number}", "v") for number in range(20)), roll=True)
        assert cleanable(compacted.directory, compacted.log).is_due
        compacted.clean()
        assert not cleanable(compacted.directory, compacted.log).is_due
        compacted.write(("key1", "w"), roll=True)
        found = cleanable(compacted.directory, compacted.log)
        assert 0 < found.dirty_ratio < 0.5
        assert not found.is_due

    def test_young_segments_wait(self, tmp_path: Path) -> None:
        compacted = Compacted(tmp_path / "logs", min_compaction_lag_ms=1000)
        compacted.write(("a", "1"), at=NOW_MS - 5000, roll=True)
        compacted.write(("a", "2"), at=NOW_MS - 500, roll=True)
        compacted.write(("a", "3"), at=NOW_MS - 5000, roll=True)
        assert cleanable(compacted.directory, compacted.log, NOW_MS).end_offset == 1
        assert cleanable(compacted.directory, compacted.log, NOW_MS + 500).end_offset == 3

    def test_what_waited_too_long_is_cleaned_whatever_the_ratio(self, tmp_path: Path) -> None:
        compacted = Compacted(tmp_path / "logs", min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=1000)
        compacted.write(("a", "1"), at=NOW_MS, roll=True)
        assert not cleanable(compacted.directory, compacted.log, NOW_MS + 1000).is_due
        assert cleanable(compacted.directory, compacted.log, NOW_MS + 1001).is_due

    def test_what_is_not_synced_waits(self, compacted: Compacted) -> None:
        compacted.write(("a", "1"))
        compacted.log.roll(NOW_MS)
        assert cleanable(compacted.directory, compacted.log).end_offset == 0
        sync(compacted.log)
        assert cleanable(compacted.directory, compacted.log).end_offset == 1

    def test_a_small_map_makes_several_passes_of_it(self, compacted: Compacted) -> None:
        compacted.write(*((f"key{number}", "old") for number in range(30)))
        compacted.write(*((f"key{number}", "new") for number in range(30)), roll=True)
        ends = []
        while cleanable(compacted.directory, compacted.log).dirty_bytes:
            compacted.clean(dedupe_bytes=24 * 12)
            ends.append(compacted.directory.checkpoints.cleaned_offsets[PARTITION])
        assert ends == [10, 20, 30, 40, 50, 60]
        assert compacted.records() == [(30 + number, f"key{number}", "new") for number in range(30)]


class TestTheCheckpoint:
    def test_it_has_kafkas_format_and_survives_a_restart(self, compacted: Compacted) -> None:
        compacted.write(("a", "1"), roll=True)
        compacted.clean()
        path = Path(compacted.path, "cleaner-offset-checkpoint")
        assert path.read_text() == "0\n1\norders 0 1\n"
        compacted.reopen()
        assert cleanable(compacted.directory, compacted.log).first_dirty_offset == 1

    def test_a_damaged_one_means_starting_over(self, compacted: Compacted) -> None:
        compacted.write(("a", "1"), roll=True)
        compacted.clean()
        Path(compacted.path, "cleaner-offset-checkpoint").write_text("nonsense")
        compacted.reopen()
        assert cleanable(compacted.directory, compacted.log).first_dirty_offset == 0

    def test_a_truncation_lowers_it(self, compacted: Compacted) -> None:
        compacted.write(("a", "1"), roll=True)
        compacted.write(("b", "1"), roll=True)
        compacted.clean()
        compacted.directory.truncate(compacted.log, 1, NOW_MS)
        assert Path(compacted.path, "cleaner-offset-checkpoint").read_text() == "0\n1\norders 0 0\n"

    def test_deleted_records_move_the_first_dirty_offset(self, compacted: Compacted) -> None:
        compacted.write(("a", "1"), roll=True)
        compacted.write(("b", "1"), roll=True)
        compacted.log.delete_records(1)
        assert cleanable(compacted.directory, compacted.log).first_dirty_offset == 1


class TestMeanwhile:
    def test_a_truncation_makes_the_pass_worthless(self, compacted: Compacted) -> None:
        for number in range(4):
            compacted.write(("a", f"{number}"), roll=True)

        def truncate() -> None:
            compacted.directory.truncate(compacted.log, 2, NOW_MS)

        assert clean(FILES, compacted.directory, compacted.log, between=truncate) is None
        assert [offset for offset, _, _ in compacted.records()] == [0, 1]
        compacted.reopen(cleanly=False)
        assert [offset for offset, _, _ in compacted.records()] == [0, 1]

    def test_dropped_segments_make_the_pass_worthless(self, compacted: Compacted) -> None:
        for number in range(4):
            compacted.write(("a", f"{number}"), roll=True)

        def drop() -> None:
            compacted.log.delete_records(2)
            compacted.directory.checkpoints.begin().run()
            compacted.directory.drop_expired(NOW_MS)

        assert clean(FILES, compacted.directory, compacted.log, between=drop) is None
        assert [offset for offset, _, _ in compacted.records()] == [2, 3]
        assert PARTITION not in compacted.directory.checkpoints.cleaned_offsets

    def test_deleted_records_do_not_disturb_it(self, compacted: Compacted) -> None:
        for number in range(4):
            compacted.write((f"{number}", "v"), roll=True)
        between = lambda: compacted.log.delete_records(2)  # noqa: E731
        assert clean(FILES, compacted.directory, compacted.log, between=between) is not None
        assert [record.offset for record in read_all(compacted.log)] == [2, 3]

    @pytest.mark.parametrize("steps", [1, 2])
    def test_a_truncation_in_the_middle_of_a_swap_settles_it_first(
        self, compacted: Compacted, steps: int
    ) -> None:
        for number in range(4):
            compacted.write((f"{number}", "v"), roll=True)
        groups: list[CleanedGroup] = []
        Cleaner(FILES, job_for(compacted.directory, compacted.log), lambda size: None, groups.append).run()
        swap = compacted.log.segment_files.begin_swap(groups[0], compacted.log.segment_files.truncation_count)
        assert swap is not None
        for _ in range(steps):
            compacted.log.segment_files.step_swap(swap, NOW_MS)
        compacted.directory.truncate(compacted.log, 2, NOW_MS)
        assert swap.is_over
        assert [offset for offset, _, _ in compacted.records()] == [0, 1]
        assert compacted.names(".swap") == compacted.names(".cleaned") == []
        compacted.reopen(cleanly=False)
        assert [offset for offset, _, _ in compacted.records()] == [0, 1]

    def test_readers_finish_on_the_old_segment(self, compacted: Compacted) -> None:
        compacted.write(("a", "1"), ("a", "2"), roll=True)
        part = compacted.log.read(0, 1 << 20, 2)
        assert part is not None
        before = part.read()
        compacted.clean()
        assert part.read() == before
