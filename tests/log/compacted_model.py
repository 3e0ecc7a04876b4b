"""A compacted log beside a plain model of what compaction keeps, through restarts and power cuts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from faults.power_cut import PowerCut
from log.building import sync
from log.cleaning import clean
from log.simulated_log import SimulatedLog
from ottla.log.cleaning_job import CleaningJob
from ottla.log.partition_log import PartitionLog
from ottla.model.values import replace
from ottla.records.batch import BatchHeader, CheckedBatch, read_header
from ottla.records.compression import Codec
from ottla.records.content import Record, build_batch, records_of

_RETENTION_MS = 2_000


@dataclass(frozen=True)
class Kept:
    """A record as the model remembers it."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    batch: int  # base offset of its batch


class CompactedLog(SimulatedLog):
    """Everything is done to the log and to the model; `check` compares them."""

    def __init__(self, seed: int) -> None:
        super().__init__(
            seed,
            cleanup_compact=True,
            cleanup_delete=False,
            delete_retention_ms=_RETENTION_MS,
            segment_bytes=(400, 1_500, 6_000),
            index_interval_bytes=(0, 100, 4096),
            segment_index_bytes=(60, 10_000),
        )
        self.kept: dict[int, Kept] = {}  # by offset
        self.horizons: dict[int, int] = {}  # of batches, by base offset
        self.producers: dict[int, tuple[int, int, int]] = {}  # id: epoch, last sequence, its offset
        self.end_offset = 0
        self.synced = 0
        self.deleted_before = 0  # a crash may let the log start earlier again, but nobody may rely on that
        self.counter = 0
        self.job: CleaningJob | None = None  # of the pass under way
        self.unsure: dict[int, Kept] = {}  # of an append under way
        self.open()

    # -- operations ------------------------------------------------------------------------------------------

    def operations(self) -> Mapping[Callable[[], None], int]:
        return {
            self.append: 50,
            self.roll: 8,
            self.sync: 12,
            self.clean: 8,
            self.delete_records: 1,
            self.drop_expired: 2,
            self.remove_files: 2,
        }

    def append(self) -> None:
        base_offset, count = self.end_offset, self.random.choice((1, 1, 2, 6))
        records = {}
        for offset in range(base_offset, base_offset + count):
            self.counter += 1
            value = (
                None
                if self.random.random() < 0.2
                else b"%d" % self.counter + b"x" * self.random.choice((0, 90))
            )
            key = None if self.random.random() < 0.05 else b"key%d" % self.random.randrange(8)
            records[offset] = Kept(key, value, self.now_ms + self.random.randrange(-50, 50), base_offset)
        producer: dict[str, int] = {}
        producer_id: int | None = None
        if self.random.random() < 0.5:
            producer_id = self.random.randrange(3)
            entry = self.log.producers.get(producer_id)
            epoch, sequence = (entry.epoch, entry.batches[-1].last_sequence) if entry else (0, -1)
            producer = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": sequence + 1}
        made = [
            Record(number, each.timestamp, each.key, each.value)
            for number, each in enumerate(records.values())
        ]
        data = memoryview(build_batch(made, codec=self.random.choice(list(Codec)), **producer))
        self.unsure = records
        result = self.log.append([CheckedBatch(read_header(data), data)], 0, self.now_ms)
        self.unsure = {}
        assert result.first_offset == base_offset
        self.kept |= records
        self.end_offset += count
        if producer_id is not None:
            self.producers[producer_id] = epoch, sequence + count, self.end_offset - 1

    def sync(self) -> None:
        sync(self.log)
        self.synced = self.end_offset

    def clean(self) -> None:
        """Sometimes with a map too small for everything, sometimes while other things happen."""
        dedupe_bytes = self.random.choice((1 << 16, 24 * 5))
        self.job = None
        done = clean(
            self.files,
            self.directory,
            self.log,
            self.now_ms,
            between=self.meanwhile,
            begun=self.began,
            dedupe_bytes=dedupe_bytes,
        )
        if done is not None:
            assert self.job is not None
            self.compact(self.job, done.end_offset)
        elif self.job is not None:
            self.adopt(self.job)
        self.job = None

    def began(self, job: CleaningJob) -> None:
        self.job = job

    def meanwhile(self) -> None:
        if self.random.random() < 0.5:
            self.random.choice((self.append, self.roll, self.sync, self.delete_records, self.drop_expired))()

    def delete_records(self) -> None:
        self.log.delete_records(self.random.randint(self.log.log_start_offset, self.synced))
        self.deleted_before = max(self.deleted_before, self.log.log_start_offset)

    def drop_expired(self) -> None:
        self.directory.checkpoints.begin().run()
        self.directory.drop_expired(self.now_ms)

    def truncate(self) -> None:
        """Behind some batch; in a gap that compaction left, a restart would find an earlier end."""
        ends = [header.next_offset for header, _ in self.batches()][-5:]
        if not ends or ends[0] < self.log.log_start_offset:
            return
        self.directory.truncate(self.log, self.random.choice(ends), self.now_ms)
        self.end_offset = self.log.log_end_offset
        self.kept = {offset: each for offset, each in self.kept.items() if offset < self.end_offset}
        self.horizons = {batch: time for batch, time in self.horizons.items() if batch < self.end_offset}
        self.synced = min(self.synced, self.end_offset)
        self._learn_producers()

    # -- the model of a pass ---------------------------------------------------------------------------------

    def compact(self, job: CleaningJob, end_offset: int) -> None:
        """What a whole pass does."""
        self.kept, self.horizons = self.compacted(job, end_offset)

    def compacted(self, job: CleaningJob, end_offset: int) -> tuple[dict[int, Kept], dict[int, int]]:
        last = {
            each.key: offset
            for offset, each in sorted(self.kept.items())
            if job.first_dirty_offset <= offset < end_offset
        }
        rewritten = next(
            (each.end_offset for each in job.segments if each.end_offset >= end_offset), end_offset
        )
        kept, horizons = {}, dict(self.horizons)
        for offset, each in self.kept.items():
            horizon = self.horizons.get(each.batch)
            is_live = each.value is not None or horizon is None or job.now_ms < horizon
            if offset < end_offset and not (
                each.key is not None and offset >= last.get(each.key, -1) and is_live
            ):
                continue
            kept[offset] = each
            if each.value is None and offset < rewritten:
                horizons.setdefault(each.batch, job.now_ms + job.delete_retention_ms)
        return kept, horizons

    def adopt(self, job: CleaningJob) -> None:
        """A pass was cut off, some segments are cleaned: no record came, none went that must stay."""
        found = self.found()
        assert found.items() <= self.kept.items()
        whole, _ = self.compacted(job, job.end_offset)
        newest = {each.key: offset for offset, each in sorted(self.kept.items()) if each.key is not None}
        for key, offset in newest.items():
            is_needed = offset in whole and offset >= self.log.log_start_offset
            assert offset in found or not is_needed, f"the last record of {key!r} is lost"
        self.kept = found
        self.horizons = {
            header.base_offset: header.base_timestamp
            for header, _ in self.batches()
            if header.delete_horizon_ms is not None
        }

    def found(self) -> dict[int, Kept]:
        """What is in the segments, also before the log's start."""
        return {
            record.offset: Kept(record.key, record.value, record.timestamp, header.base_offset)
            for header, data in self.batches()
            for record in records_of(data)
        }

    def batches(self) -> list[tuple[BatchHeader, bytes]]:
        return [
            (header, bytes(segment.log.pread(header.size, position)))
            for segment in self.log.segments
            for position, header in segment.headers(0)
        ]

    # -- restarts --------------------------------------------------------------------------------------------

    def restart(self, *, cleanly: bool) -> None:
        if cleanly:
            self.directory.close()
        else:
            self.directory.abandon()
        self.open()
        self.synced = self.end_offset
        assert self.log.log_end_offset == self.end_offset

    def change_policy(self) -> None:
        """From compact to delete and back, live and across restarts, takes nothing away."""
        compact = self.random.random() < 0.5
        self.topic = replace(self.topic, cleanup_compact=compact, cleanup_delete=not compact, retention_ms=-1)
        self.log.set_config(self.topic)

    def pull_the_plug(self) -> None:
        self.start_after_power_cut()
        end_offset = self.log.log_end_offset
        assert self.synced <= end_offset <= self.end_offset + len(self.unsure)
        self.kept |= self.unsure
        self.kept = {offset: each for offset, each in self.kept.items() if offset < end_offset}
        self.unsure = {}
        self.end_offset = self.synced = end_offset
        if self.job is not None:
            self.adopt(self.job)
            self.job = None
        self._learn_producers()

    def _learn_producers(self) -> None:
        """What was cut off is gone with its sequences; the batch before it may be compacted by then."""
        ends = {header.last_offset for header, _ in self.batches()}
        self.producers = {
            producer_id: (entry.epoch, entry.batches[-1].last_sequence, entry.batches[-1].last_offset)
            for producer_id, entry in self.log.producers.entries().items()
            if entry.batches[-1].last_offset in ends
        }

    # -- comparing -------------------------------------------------------------------------------------------

    def check(self) -> None:
        log = self.log
        assert log.log_end_offset == self.end_offset
        start = log.log_start_offset
        expected = {offset: each for offset, each in sorted(self.kept.items()) if offset >= start}
        assert consumed(log) == [
            (offset, each.key, each.value, each.timestamp) for offset, each in expected.items()
        ]
        for producer_id, (epoch, sequence, offset) in self.producers.items():
            entry = log.producers.get(producer_id)
            if offset >= self.deleted_before:  # else its records were deleted, and a crash may forget it
                assert entry is not None
                assert (entry.epoch, entry.batches[-1].last_sequence) == (epoch, sequence)
        for header, _ in self.batches():
            if header.record_count and header.base_offset >= start:
                assert header.delete_horizon_ms == self.horizons.get(header.base_offset)
        wanted = self.now_ms - self.random.randrange(2_000)
        found: Any = log.offset_for_timestamp(wanted)
        first = next((offset for offset, each in expected.items() if each.timestamp >= wanted), None)
        assert (found and found.offset) == first


def consumed(log: PartitionLog) -> list[tuple[Any, ...]]:
    """Every record from the log's start on, as a consumer gets them who passes over what is not there."""
    found: list[tuple[Any, ...]] = []
    offset = log.log_start_offset
    while (part := log.read(offset, 1 << 20, log.log_end_offset)) is not None:
        data = part.read()
        position = 0
        while position < len(data):
            header = read_header(data, position)
            found += [
                (record.offset, record.key, record.value, record.timestamp)
                for record in records_of(data[position : position + header.size])
                if record.offset >= log.log_start_offset
            ]
            position += header.size
            offset = header.next_offset
    return found


def run_with_restarts(seed: int, steps: int) -> None:
    compacted = CompactedLog(seed)
    for _ in range(steps):
        compacted.step()
        chance = compacted.random.random()
        if chance < 0.03:
            compacted.restart(cleanly=True)
        elif chance < 0.06:
            compacted.restart(cleanly=False)
        elif chance < 0.08:
            compacted.truncate()
        elif chance < 0.10:
            compacted.change_policy()
        if chance < 0.2:
            compacted.check()
    compacted.check()


def run_with_power_cuts(seed: int, cuts: int) -> None:
    compacted = CompactedLog(seed)
    for _ in range(cuts):
        compacted.files.stop_at = compacted.files.operations + compacted.random.randrange(1, 200)
        try:
            for _ in range(300):
                compacted.step()
                if compacted.random.random() < 0.02:
                    compacted.restart(cleanly=compacted.random.random() < 0.5)
        except PowerCut:
            pass
        compacted.pull_the_plug()
        compacted.check()
