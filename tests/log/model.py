"""A log beside a plain list that must equal it, through random operations, crashes and power cuts."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from faults.power_cut import PowerCut
from log.building import PARTITION, batch, read_all, records_in
from log.simulated_log import SimulatedLog
from ottla.log.flusher import Flusher
from ottla.records.batch import BatchHeader, CheckedBatch


class Kept(NamedTuple):
    """A record as the model remembers it."""

    value: bytes
    timestamp: int
    epoch: int
    producer: tuple[int, int, int] | None  # id, epoch, sequence


class ModelledLog(SimulatedLog):
    """Every operation is done to the log and to the list; `check` compares them."""

    def __init__(self, seed: int) -> None:
        super().__init__(
            seed,
            segment_bytes=(600, 2_000, 20_000),
            index_interval_bytes=(0, 100, 4096),
            segment_index_bytes=(60, 10_000),
            retention_bytes=(-1, 3_000),
            retention_ms=(-1, 5_000),
            preallocate=(True, False, False, False, False),
        )
        self.kept: list[Kept] = []  # what was appended and not truncated; the index is the offset
        self.log_start = 0  # a crash may let the log start earlier again, but nobody may rely on that
        self.synced = 0  # as finished rounds promised
        self.epoch = 0
        self.counter = 0
        self.unsure: list[Kept] = []  # of an append under way: a power cut may or may not leave them
        # Of appends that a full disk refused, with their first offsets: cut off again, but until the next
        # sync a power cut may undo that.
        self.refused: list[tuple[int, list[Kept]]] = []
        self.truncating_to: int | None = None  # likewise
        self.open()

    # -- operations ----------------------------------------------------------------------------------------

    def operations(self) -> Mapping[Callable[[], None], int]:
        return {
            self.append: 50,
            self.roll: 3,
            self.sync: 12,
            self.checkpoint: 4,
            self.delete_records: 3,
            self.retain: 4,
            self.truncate: 3,
            self.new_epoch: 2,
            self.remove_files: 3,
            self.fill_the_disk: 2,
            self.read_somewhere: 10,
        }

    def append(self) -> None:
        batches: list[CheckedBatch] = []
        kept: list[Kept] = []
        before: dict[int, BatchHeader] = {}
        for _ in range(self.random.choice((1, 1, 1, 2, 3))):
            made, records = self._batch(self.kept + kept)
            header = made.header
            if header.producer_id >= 0:
                assert self.log.producers.check(header, before.get(header.producer_id)) is None
                before[header.producer_id] = header
            batches.append(made)
            kept += records
        self.unsure = kept
        result = self.log.append(batches, self.epoch, self.now_ms)
        self.unsure = []
        assert result.first_offset == len(self.kept)
        self.kept += kept
        assert result.last_offset == len(self.kept) - 1
        assert result.log_start_offset <= self.log_start

    def _batch(self, so_far: list[Kept]) -> tuple[CheckedBatch, list[Kept]]:
        count = self.random.choice((1, 1, 2, 5))
        timestamp = self.now_ms + self.random.randrange(-50, 50)
        values = []
        for _ in range(count):
            self.counter += 1
            values.append(b"%d-" % self.counter + b"x" * self.random.choice((0, 10, 300)))
        fields: dict[str, Any] = {}
        producers: list[tuple[int, int, int] | None] = [None] * count
        if self.random.random() < 0.5:
            producer_id = self.random.randrange(3)
            epoch, sequence = next_sequence(so_far, producer_id)
            if self.random.random() < 0.05:
                epoch, sequence = epoch + 1, 0
            fields = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": sequence}
            producers = [(producer_id, epoch, sequence + number) for number in range(count)]
        records = [
            Kept(value, timestamp, self.epoch, producer)
            for value, producer in zip(values, producers, strict=True)
        ]
        return batch(values, timestamp=timestamp, **fields), records

    def sync(self) -> None:
        self.flusher.mark_dirty(self.log)
        done = self.flusher.next_round(self.now_ms)
        if done is None:
            assert self.synced == len(self.kept)
            return
        end_offset = len(self.kept)
        if self.random.random() < 0.3:
            self.append()  # while the round is under way
        done.run()
        self.flusher.finish(done)
        self.synced = end_offset
        assert self.log.synced_offset == end_offset

    def checkpoint(self) -> None:
        self.directory.checkpoints.begin({PARTITION: self.synced}).run()
        if self.random.random() < 0.5:
            self.directory.drop_expired(self.now_ms)

    def delete_records(self) -> None:
        offset = self.random.randint(self.log_start, len(self.kept))
        self.log_start = offset
        self.log.delete_records(offset)

    def retain(self) -> None:
        high_watermark = self.random.randint(self.log_start, len(self.kept))
        self.now_ms += self.random.choice((0, 0, 4_000))
        self.log.apply_retention(self.now_ms, high_watermark)
        assert self.log.log_start_offset <= max(self.log_start, high_watermark)
        self.log_start = max(self.log_start, self.log.log_start_offset)

    def truncate(self) -> None:
        if self.random.random() < 0.2:
            offset = self.random.randint(self.log_start, len(self.kept))
        else:
            offset = self.random.randint(max(self.log_start, len(self.kept) - 10), len(self.kept))
        self.truncating_to = offset
        self.directory.truncate(self.log, offset, self.now_ms)
        self.truncating_to = None
        end_offset = self.log.log_end_offset
        assert offset - 5 < end_offset <= offset, "a batch has at most 5 records"
        del self.kept[end_offset:]
        self.synced = min(self.synced, end_offset)
        self.log_start = min(self.log_start, end_offset)

    def new_epoch(self) -> None:
        self.epoch += 1

    def fill_the_disk(self) -> None:
        """Writes are refused; everything else goes on, and so do writes afterwards."""
        before, start = len(self.kept), self.log.log_start_offset
        self.files.capacity_bytes = self.random.choice((0, 100, 1_000))
        try:
            self.append()
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            taken = self.log.log_end_offset - before
            self.kept += self.unsure[:taken]
            self.refused.append((len(self.kept), self.unsure[taken:]))
            self.unsure = []
        self.retain()
        self.checkpoint()
        assert self.log.log_start_offset >= start
        self.files.capacity_bytes = None
        if self.directory.ballast.is_spent:
            assert self.directory.ballast.maybe_lay_by()

    def read_somewhere(self) -> None:
        offset = self.random.randint(self.log_start, len(self.kept))
        end_offset = self.random.randint(offset, len(self.kept))
        bytes_max = self.random.choice((1, 100, 1_000, 100_000))
        part = self.log.read(offset, bytes_max, end_offset)
        if part is None:
            assert end_offset - offset < 5, "a batch has at most 5 records"
            return
        records = records_in(part.read())
        assert records
        assert records[0].offset <= offset
        assert records[-1].offset < end_offset
        for record in records:
            assert record.value == self.kept[record.offset].value

    # -- restarts ------------------------------------------------------------------------------------------

    def open(self) -> None:
        super().open()
        self.flusher = Flusher()

    def restart_cleanly(self) -> None:
        log_start = self.log.log_start_offset
        self.directory.close()
        self.synced = len(self.kept)
        self.open()
        assert self.directory.was_clean
        assert self.log.log_start_offset == log_start
        assert self.log.log_end_offset == self.log.synced_offset == len(self.kept)

    def crash(self) -> None:
        """The process dies; the operating system keeps what was written."""
        self.directory.abandon()
        self.open()
        assert not self.directory.was_clean
        assert self.log.log_end_offset == self.log.synced_offset == len(self.kept)
        self.synced = len(self.kept)

    def pull_the_plug(self) -> None:
        self.start_after_power_cut()
        end_offset = self.log.log_end_offset
        safe = self.synced if self.truncating_to is None else min(self.synced, self.truncating_to - 5)
        assert safe <= end_offset, f"synced up to {safe}, found up to {end_offset}"
        written = self.kept + self.unsure
        for offset, refused in self.refused:
            at = max(offset, self.log.log_start_offset)
            if (
                self.synced <= at < min(end_offset, offset + len(refused))
                and self._value_at(at) == refused[at - offset].value
            ):
                written = written[:offset] + refused
        assert end_offset <= len(written), "records nobody wrote"
        assert self.log.synced_offset == end_offset
        self.kept = written[:end_offset]
        self.unsure, self.refused, self.truncating_to = [], [], None
        self.log_start = min(self.log_start, end_offset)
        self.synced = end_offset

    def _value_at(self, offset: int) -> bytes | None:
        part = self.log.read(offset, 1, self.log.log_end_offset)
        assert part is not None
        return next(record.value for record in records_in(part.read()) if record.offset == offset)

    # -- comparing -----------------------------------------------------------------------------------------

    def check(self) -> None:
        log = self.log
        assert log.log_start_offset <= self.log_start
        assert log.log_end_offset == len(self.kept)
        bytes_max = self.random.choice((200, 1 << 20))
        records = read_all(log, offset=self.log_start, bytes_max=bytes_max)
        found = [(record.offset, record.value, record.timestamp) for record in records]
        assert found == [
            (offset, kept.value, kept.timestamp)
            for offset, kept in enumerate(self.kept)
            if offset >= self.log_start
        ]
        self._check_lookups()
        self._check_epochs()
        self._check_producers()
        assert log.size_bytes == sum(self.files.size(segment.log.path) for segment in log.segments) or (
            self.topic.preallocate
        )

    def _check_lookups(self) -> None:
        if self.log_start == len(self.kept):
            return
        live = list(enumerate(self.kept))[self.log_start :]
        for _ in range(5):
            wanted = self.random.choice(live)[1].timestamp + self.random.choice((-1, 0, 1))
            found = self.log.offset_for_timestamp(wanted)
            if found is not None and found.offset < self.log_start:
                continue
            expected = next(
                ((offset, kept.timestamp) for offset, kept in live if kept.timestamp >= wanted), None
            )
            assert (found and found[:2]) == expected
        newest = self.log.offset_for_max_timestamp()
        assert newest is not None
        assert newest.timestamp >= max(kept.timestamp for _, kept in live)

    def _check_epochs(self) -> None:
        for offset in range(self.log_start, len(self.kept)):
            assert self.log.epochs.epoch_at(offset) == self.kept[offset].epoch

    def _check_producers(self) -> None:
        for producer_id in range(3):
            live = [
                kept
                for kept in self.kept[self.log_start :]
                if kept.producer and kept.producer[0] == producer_id
            ]
            if live:
                entry = self.log.producers.get(producer_id)
                assert entry is not None
                assert (entry.epoch, entry.batches[-1].last_sequence) == live[-1].producer[1:]


def next_sequence(kept: list[Kept], producer_id: int) -> tuple[int, int]:
    """The epoch and sequence with which the producer goes on."""
    for record in reversed(kept):
        if record.producer is not None and record.producer[0] == producer_id:
            return record.producer[1], record.producer[2] + 1
    return 0, 0


def run_with_restarts(seed: int, steps: int) -> None:
    modelled = ModelledLog(seed)
    for _ in range(steps):
        modelled.step()
        chance = modelled.random.random()
        if chance < 0.03:
            modelled.restart_cleanly()
        elif chance < 0.06:
            modelled.crash()
        if chance < 0.1:
            modelled.check()
    modelled.check()


def run_with_power_cuts(seed: int, cuts: int) -> None:
    modelled = ModelledLog(seed)
    for _ in range(cuts):
        modelled.files.stop_at = modelled.files.operations + modelled.random.randrange(1, 150)
        try:
            for _ in range(200):
                modelled.step()
                chance = modelled.random.random()
                if chance < 0.02:
                    modelled.restart_cleanly()
                elif chance < 0.04:
                    modelled.crash()
        except PowerCut:
            pass
        modelled.pull_the_plug()
        modelled.check()
