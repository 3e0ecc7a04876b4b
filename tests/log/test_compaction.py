"""What compaction keeps, drops and changes, in Kafka's sense."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from log.building import (
    NOW_MS,
    PARTITION,
    append,
    config,
    new_log,
    open_directory,
    read_all,
    sync,
)
from log.cleaning import clean, cleanable, job_for
from ottla.log import txn_index
from ottla.log.cleaner import Cleaner
from ottla.log.cleaning_job import CleanedGroup
from ottla.log.directory import LogDirectory
from ottla.log.files import SystemFiles
from ottla.log.partition_log import PartitionLog
from ottla.log.txn_index import AbortedTransaction
from ottla.model.errors import CorruptData
from ottla.records.batch import (
    CONTROL,
    DELETE_HORIZON,
    TRANSACTIONAL,
    BatchHeader,
    CheckedBatch,
    header_bytes,
    read_header,
)
from ottla.records.compression import Codec, compress
from ottla.records.content import Record, build_batch
from ottla.records.findings import CorruptRecords
from ottla.records.formats import records_of

FILES = SystemFiles()
DAY_MS = 24 * 3600 * 1000
Pair = tuple[str | None, str | None]


class Compacted:
    """A log of a compacted topic on a real disk."""

    def __init__(self, path: Path, **settings: Any) -> None:
        self.path = str(path)
        self.topic = config(cleanup_compact=True, cleanup_delete=False, **settings)
        self.directory: LogDirectory
        self.log: PartitionLog
        self.directory, self.log = new_log(FILES, self.path, self.topic)

    def write(self, *pairs: Pair, at: int = NOW_MS, roll: bool = False, **fields: Any) -> int:
        """One batch of (key, value); returns its first offset."""
        records = [
            Record(offset, at, _bytes(key), _bytes(value)) for offset, (key, value) in enumerate(pairs)
        ]
        data = memoryview(build_batch(records, **fields))
        result = self.log.append([CheckedBatch(read_header(data), data)], 0, NOW_MS)
        if roll:
            self.roll()
        return result.first_offset

    def mark(self, producer_id: int, *, abort: bool, epoch: int = 0) -> int:
        """The end of a producer's transaction."""
        key = b"\0\0\0\0" if abort else b"\0\0\0\1"
        data = memoryview(
            build_batch(
                [Record(0, NOW_MS, key, b"\0\0\0\0\0\0")],
                flags=TRANSACTIONAL | CONTROL,
                producer_id=producer_id,
                producer_epoch=epoch,
            )
        )
        return self.log.append([CheckedBatch(read_header(data), data)], 0, NOW_MS).first_offset

    def roll(self) -> None:
        self.log.roll(NOW_MS)
        sync(self.log)

    def clean(self, now_ms: int = NOW_MS, **resources: Any) -> None:
        assert clean(FILES, self.directory, self.log, now_ms, **resources) is not None

    def reopen(self, *, cleanly: bool = True) -> None:
        if cleanly:
            self.directory.close()
        else:
            self.directory.abandon()
        self.directory = open_directory(FILES, self.path, self.topic)
        assert not self.directory.failed
        self.log = self.directory.logs[PARTITION]

    def records(self) -> list[tuple[int, str | None, str | None]]:
        found = []
        for _, data in self.batches():
            found += [
                (record.offset, _text(record.key), _text(record.value)) for record in records_in_one(data)
            ]
        return found

    def batches(self) -> list[tuple[BatchHeader, bytes]]:
        found = []
        for segment in self.log.segments:
            for position, header in segment.headers(0):
                found.append((header, bytes(segment.log.pread(header.size, position))))
        return found

    def names(self, suffix: str) -> list[str]:
        return sorted(name for name in os.listdir(self.log.directory) if name.endswith(suffix))


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("latin-1")


def records_in_one(batch: bytes) -> list[Record]:
    return list(records_of(batch))


@pytest.fixture
def compacted(tmp_path: Path) -> Compacted:
    return Compacted(tmp_path / "logs")


def test_the_last_value_of_each_key_stays_with_its_offset(compacted: Compacted) -> None:
    compacted.write(("a", "1"), ("b", "1"), ("a", "2"), roll=True)
    compacted.write(("b", "2"), ("c", "1"), roll=True)
    compacted.clean()
    assert compacted.records() == [(2, "a", "2"), (3, "b", "2"), (4, "c", "1")]
    assert [record.offset for record in read_all(compacted.log)] == [2, 3, 4]
    assert (compacted.log.log_start_offset, compacted.log.log_end_offset) == (0, 5)


def test_keys_are_kept_across_passes_and_segments(compacted: Compacted) -> None:
    compacted.write(("a", "1"), ("b", "1"), roll=True)
    compacted.clean()
    compacted.write(("a", "2"), roll=True)
    compacted.clean()
    assert compacted.records() == [(1, "b", "1"), (2, "a", "2")]


def test_the_active_segment_is_never_cleaned(compacted: Compacted) -> None:
    compacted.write(("a", "1"), roll=True)
    compacted.write(("a", "2"), ("a", "3"))
    compacted.clean()
    assert [offset for offset, _, _ in compacted.records()] == [0, 1, 2]


def test_nothing_behind_the_stable_offset_is_cleaned_nor_counts(compacted: Compacted) -> None:
    compacted.write(("a", "1"), roll=True)
    compacted.write(("a", "2"), roll=True)
    compacted.write(("a", "3"), flags=TRANSACTIONAL, producer_id=7, producer_epoch=0, base_sequence=0)
    compacted.roll()
    assert cleanable(compacted.directory, compacted.log).end_offset == 2, "an open transaction begins there"
    compacted.clean()
    assert [offset for offset, _, _ in compacted.records()] == [1, 2]


def test_records_without_a_key_go(compacted: Compacted) -> None:
    compacted.write(("a", "1"), (None, "lost"), roll=True)
    compacted.clean()
    assert compacted.records() == [(0, "a", "1")]


def test_an_empty_key_is_a_key(compacted: Compacted) -> None:
    compacted.write(("", "1"), ("", "2"), roll=True)
    compacted.clean()
    assert compacted.records() == [(1, "", "2")]


@pytest.mark.parametrize("codec", list(Codec))
def test_a_shortened_batch_keeps_its_codec_offsets_and_timestamps(compacted: Compacted, codec: Codec) -> None:
    compacted.write(("a", "1"), ("b", "1"), at=NOW_MS + 5, codec=codec, roll=True)
    compacted.write(("a", "2"), at=NOW_MS + 9, roll=True)
    compacted.clean()
    (header, data), _ = compacted.batches()
    assert (header.codec, header.base_offset, header.last_offset, header.record_count) == (codec, 0, 1, 1)
    assert (header.base_timestamp, header.max_timestamp) == (NOW_MS + 5, NOW_MS + 5)
    assert records_in_one(data) == [Record(1, NOW_MS + 5, b"b", b"1")]


def test_a_batch_that_loses_nothing_stays_byte_for_byte(compacted: Compacted) -> None:
    compacted.write(("a", "1"), ("b", "1"), codec=Codec.ZSTD, roll=True)
    before = compacted.batches()
    compacted.clean()
    assert compacted.batches() == before


class TestTombstones:
    def test_one_hides_what_was_before_it_and_gets_its_time_to_go(self, compacted: Compacted) -> None:
        compacted.write(("a", "1"), ("b", "1"), roll=True)
        compacted.write(("a", None), ("c", "1"), at=NOW_MS - 10, roll=True)
        compacted.clean()
        assert compacted.records() == [(1, "b", "1"), (2, "a", None), (3, "c", "1")]
        header, data = compacted.batches()[-1]
        assert header.delete_horizon_ms == NOW_MS + compacted.topic.delete_retention_ms
        assert [record.timestamp for record in records_in_one(data)] == [NOW_MS - 10] * 2

    def test_it_goes_in_a_pass_after_that_time(self, compacted: Compacted) -> None:
        compacted.write(("a", "1"), ("a", None), ("b", "1"), roll=True)
        compacted.clean()
        compacted.write(("b", "2"), roll=True)
        compacted.clean(NOW_MS + DAY_MS - 1)
        assert (1, "a", None) in compacted.records()
        compacted.write(("b", "3"), roll=True)
        compacted.clean(NOW_MS + DAY_MS)
        assert compacted.records() == [(4, "b", "3")]

    def test_a_time_to_go_is_not_put_off_by_later_passes(self, compacted: Compacted) -> None:
        compacted.write(("a", None), ("b", "1"), roll=True)
        compacted.clean()
        compacted.write(("b", "2"), roll=True)
        compacted.clean(NOW_MS + 1000)
        header, _ = compacted.batches()[0]
        assert header.delete_horizon_ms == NOW_MS + DAY_MS


class TestProducers:
    def test_the_last_batch_of_a_producer_stays_empty(self, compacted: Compacted) -> None:
        fields = {"producer_id": 9, "producer_epoch": 2}
        compacted.write(("a", "1"), base_sequence=0, codec=Codec.GZIP, **fields)
        compacted.write(("a", "2"), ("b", "1"), base_sequence=1, codec=Codec.GZIP, **fields)
        compacted.write(("a", "3"), ("b", "2"), roll=True)
        compacted.clean()
        empty, last = (header for header, _ in compacted.batches())
        assert (empty.base_offset, empty.last_offset, empty.record_count, empty.codec) == (1, 2, 0, 0)
        assert (empty.producer_id, empty.producer_epoch, empty.base_sequence) == (9, 2, 1)
        assert last.base_offset == 3

    def test_sequences_survive_a_crash_after_cleaning(self, compacted: Compacted) -> None:
        compacted.write(("a", "1"), ("b", "1"), producer_id=9, producer_epoch=2, base_sequence=5)
        compacted.write(("a", "2"), ("b", "2"), roll=True)
        compacted.clean()
        for name in compacted.names(".snapshot"):
            os.remove(os.path.join(compacted.log.directory, name))
        compacted.reopen(cleanly=False)
        entry = compacted.log.producers.get(9)
        assert entry is not None
        assert (entry.epoch, entry.batches[-1].last_sequence) == (2, 6)

    def test_the_last_batch_of_a_pass_stays_for_its_offset(self, compacted: Compacted) -> None:
        compacted.write(("a", "1"))
        compacted.write((None, "no key"), roll=True)
        compacted.clean()
        assert [(header.last_offset, header.record_count) for header, _ in compacted.batches()] == [
            (0, 1),
            (1, 0),
        ]


class TestTransactions:
    def transaction(self, compacted: Compacted, producer_id: int, *pairs: Pair, sequence: int = 0) -> int:
        return compacted.write(
            *pairs,
            flags=TRANSACTIONAL,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
        )

    def index_aborted(self, compacted: Compacted, segment: int, *transactions: AbortedTransaction) -> None:
        path = Path(compacted.log.segments[segment].path_stem + ".txnindex")
        path.write_bytes(b"".join(map(txn_index.encode_aborted, transactions)))

    def test_aborted_records_go_and_do_not_hide_others(self, compacted: Compacted) -> None:
        compacted.write(("a", "kept"))
        first = self.transaction(compacted, 1, ("a", "aborted"), ("b", "aborted"))
        marker = compacted.mark(1, abort=True)
        self.transaction(compacted, 2, ("c", "committed"))
        compacted.mark(2, abort=False)
        self.transaction(compacted, 1, ("d", "1"), sequence=2)
        compacted.mark(1, abort=False)
        compacted.roll()
        self.index_aborted(compacted, 0, AbortedTransaction(1, first, marker, marker + 1))
        compacted.clean()
        data = [entry for entry in compacted.records() if entry[1] in ("a", "b", "c", "d")]
        assert data == [(0, "a", "kept"), (4, "c", "committed"), (6, "d", "1")]

    def test_a_marker_stays_until_its_data_is_gone_and_its_time_has_come(self, compacted: Compacted) -> None:
        first = self.transaction(compacted, 1, ("a", "aborted"))
        marker = compacted.mark(1, abort=True)
        self.transaction(compacted, 1, ("z", "1"), sequence=1)  # so that the producer's last batch is another
        compacted.mark(1, abort=False)
        compacted.roll()
        self.index_aborted(compacted, 0, AbortedTransaction(1, first, marker, marker + 1))
        compacted.clean()
        header = self.batch_at(compacted, marker)
        assert header is not None
        assert header.delete_horizon_ms is None, "its data was there when the pass met it"
        assert txn_index.decode_aborted(self.index_bytes(compacted)) == [
            AbortedTransaction(1, first, marker, marker + 1)
        ]
        self.next_pass(compacted, NOW_MS + 1)
        header = self.batch_at(compacted, marker)
        assert header is not None
        assert header.delete_horizon_ms == NOW_MS + 1 + DAY_MS
        assert compacted.names(".txnindex") == []
        self.next_pass(compacted, NOW_MS + 1 + DAY_MS)
        assert self.batch_at(compacted, marker) is None

    def test_a_commit_marker_stays_while_its_data_does(self, compacted: Compacted) -> None:
        self.transaction(compacted, 1, ("a", "1"))
        marker = compacted.mark(1, abort=False)
        compacted.roll()
        for days in range(3):
            self.next_pass(compacted, NOW_MS + days * DAY_MS)
        header = self.batch_at(compacted, marker)
        assert header is not None
        assert header.delete_horizon_ms is None

    def test_the_last_marker_of_a_producer_stays_for_its_epoch(self, compacted: Compacted) -> None:
        marker = compacted.mark(5, abort=True, epoch=3)
        compacted.write(("a", "1"), roll=True)
        for days in range(3):
            self.next_pass(compacted, NOW_MS + days * DAY_MS)
        header = self.batch_at(compacted, marker)
        assert header is not None
        assert (header.record_count, header.producer_epoch) == (0, 3)

    def next_pass(self, compacted: Compacted, now_ms: int) -> None:
        compacted.write(("again", "1"), roll=True)
        compacted.clean(now_ms)

    def batch_at(self, compacted: Compacted, offset: int) -> BatchHeader | None:
        return next((header for header, _ in compacted.batches() if header.base_offset == offset), None)

    def index_bytes(self, compacted: Compacted) -> bytes:
        (name,) = compacted.names(".txnindex")
        return Path(compacted.log.directory, name).read_bytes()


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
            ends.append(compacted.directory.cleaned_offsets[PARTITION])
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


class TestWhatIsBroken:
    def broken_batch(self, codec: Codec) -> CheckedBatch:
        """A right checksum, and records that are none."""
        good = memoryview(build_batch([Record(0, NOW_MS, b"k", b"v")]))
        body = compress(codec, b"\x7f" * 40)
        header = read_header(good)._replace(attributes=int(codec))
        data = memoryview(header_bytes(header, body) + bytes(body))
        return CheckedBatch(read_header(data), data)

    @pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
    def test_broken_records_end_the_pass_and_leave_the_log_as_it_is(
        self, compacted: Compacted, codec: Codec
    ) -> None:
        compacted.write(("a", "1"), ("a", "2"), roll=True)
        compacted.log.append([self.broken_batch(codec)], 0, NOW_MS)
        compacted.roll()
        before = os.listdir(compacted.log.directory)
        with pytest.raises(CorruptRecords, match=r"batch at 2.*breaks at byte"):
            compacted.clean()
        assert sorted(os.listdir(compacted.log.directory)) == sorted(before)
        assert len(read_all_batches(compacted.log)) == 2

    def test_a_decompression_that_fails_does_too(self, compacted: Compacted) -> None:
        good = memoryview(build_batch([Record(0, NOW_MS, b"k", b"v")], codec=Codec.ZSTD))
        header = read_header(good)
        data = memoryview(header_bytes(header, b"nonsense") + b"nonsense")
        compacted.log.append([CheckedBatch(read_header(data), data)], 0, NOW_MS)
        compacted.roll()
        with pytest.raises(CorruptRecords):
            compacted.clean()

    def test_a_flipped_bit_is_damage(self, compacted: Compacted) -> None:
        compacted.write(("a", "some value"), roll=True)
        path = Path(compacted.log.segments[0].log.path)
        content = bytearray(path.read_bytes())
        content[-3] ^= 1
        path.write_bytes(content)
        with pytest.raises(CorruptData, match="at position 0: the checksum"):
            compacted.clean()


def read_all_batches(log: PartitionLog) -> Sequence[BatchHeader]:
    return [header for segment in log.segments for _, header in segment.headers(0)]


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
            compacted.directory.begin_checkpoint().run()
            compacted.directory.drop_expired(NOW_MS)

        assert clean(FILES, compacted.directory, compacted.log, between=drop) is None
        assert [offset for offset, _, _ in compacted.records()] == [2, 3]
        assert PARTITION not in compacted.directory.cleaned_offsets

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
        swap = compacted.log.begin_swap(groups[0], compacted.log.truncation_count)
        assert swap is not None
        for _ in range(steps):
            compacted.log.step_swap(swap, NOW_MS)
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


def test_old_batches_of_append_time_keep_their_time(tmp_path: Path) -> None:
    compacted = Compacted(tmp_path / "logs", message_timestamp_log_append=True)
    compacted.write(("a", "1"), ("b", None), at=5)
    append(compacted.log, [b"no key"])
    compacted.write(("a", "2"), roll=True)
    compacted.clean()
    header, data = compacted.batches()[0]
    assert header.attributes & DELETE_HORIZON
    assert header.max_timestamp == NOW_MS
    assert records_in_one(data) == [Record(1, NOW_MS, b"b", None)]
