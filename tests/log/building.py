"""Batches, logs and directories for the tests of this room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ottla.log.directory import LogDirectory
from ottla.log.files import Files
from ottla.log.flusher import Flusher
from ottla.log.partition_log import PartitionLog
from ottla.model.configs import DEFAULT_TOPIC_CONFIG, TopicConfig
from ottla.model.topics import TopicId, TopicPartition
from ottla.model.values import replace
from ottla.records.batch import CheckedBatch, read_header
from ottla.records.content import Record, build_batch, records_of

NOW_MS = 1_700_000_000_000
PARTITION = TopicPartition("orders", 0)
TOPIC_ID = TopicId(bytes(range(16)))
CLUSTER_ID = "Some-cluster-id-of-22c"
BALLAST_BYTES = 64 * 1024  # simulated disks copy it at every power cut


def config(**changes: Any) -> TopicConfig:
    return replace(DEFAULT_TOPIC_CONFIG, **changes)


def batch(
    values: Sequence[bytes] = (b"value",),
    *,
    timestamp: int = NOW_MS,
    timestamps: Sequence[int] = (),
    **fields: Any,
) -> CheckedBatch:
    """A batch as a producer sends it."""
    stamps = timestamps or [timestamp] * len(values)
    records = [
        Record(offset, stamp, None, value)
        for offset, (value, stamp) in enumerate(zip(values, stamps, strict=True))
    ]
    data = memoryview(build_batch(records, **fields))
    return CheckedBatch(read_header(data), data)


def produced(
    producer_id: int, epoch: int, sequence: int, count: int = 1, *, timestamp: int = NOW_MS, **fields: Any
) -> CheckedBatch:
    """A batch of an idempotent producer."""
    return batch(
        [b"%d" % number for number in range(count)],
        timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        **fields,
    )


def open_directory(
    files: Files, path: str, topic: TopicConfig | None = None, *, now_ms: int = NOW_MS, **options: Any
) -> LogDirectory:
    used = topic or config()
    return LogDirectory(
        path,
        files,
        cluster_id=CLUSTER_ID,
        node_id=1,
        config_of=lambda _: used,
        now_ms=now_ms,
        ballast_bytes=BALLAST_BYTES,
        **options,
    )


def new_log(files: Files, path: str, topic: TopicConfig | None = None) -> tuple[LogDirectory, PartitionLog]:
    directory = open_directory(files, path, topic)
    return directory, directory.create(PARTITION, TOPIC_ID, topic or config(), NOW_MS)


def append(
    log: PartitionLog, values: Sequence[bytes], *, epoch: int = 0, now_ms: int = NOW_MS, **fields: Any
) -> int:
    """Append one batch; returns its first offset."""
    return log.append([batch(values, **fields)], epoch, now_ms).first_offset


def sync(*logs: PartitionLog) -> None:
    flusher = Flusher()
    for log in logs:
        flusher.mark_dirty(log)
    done = flusher.next_round()
    if done is not None:
        done.run()
        flusher.finish(done)


def records_in(data: bytes) -> list[Record]:
    """The records of all whole batches in `data`."""
    records: list[Record] = []
    position = 0
    while len(data) - position >= 61:
        size = read_header(data, position).size
        if size > len(data) - position:
            break
        records += records_of(data[position : position + size])
        position += size
    return records


def regain_room(log: PartitionLog) -> None:
    """What housekeeping does when the disk is not full any more."""
    assert log._storage.ballast.is_spent
    assert log._storage.ballast.maybe_lay_by()


def read_all(log: PartitionLog, *, offset: int | None = None, bytes_max: int = 1 << 20) -> list[Record]:
    """Every record from `offset` (or the log's start) to its end, as a consumer would get them."""
    offset = log.log_start_offset if offset is None else offset
    found: list[Record] = []
    while (part := log.read(offset, bytes_max, log.log_end_offset)) is not None:
        records = records_in(part.read())
        assert records, (offset, part)
        found += [record for record in records if record.offset >= offset]
        offset = records[-1].offset + 1
    assert offset == log.log_end_offset
    return found
