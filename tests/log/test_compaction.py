"""What compaction keeps, drops and changes, in Kafka's sense."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from log.building import (
    NOW_MS,
    append,
    read_all,
)
from log.cleaning import (
    DAY_MS,
    Compacted,
    Pair,
    cleanable,
    records_in_one,
)
from ottla.log import txn_index
from ottla.log.partition_log import PartitionLog
from ottla.log.txn_index import AbortedTransaction
from ottla.model.errors import CorruptData
from ottla.records.batch import (
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
