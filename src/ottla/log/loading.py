"""Opening the log of a partition from its directory: trusted after a clean stop, recovered after a crash."""

from __future__ import annotations

import logging
import os
from itertools import pairwise

from ottla.log import file_names, leader_epochs
from ottla.log.checkpoints import PARTITION_METADATA
from ottla.log.epoch_file import EpochFile
from ottla.log.interrupted_swaps import settle_interrupted_swaps
from ottla.log.leader_epochs import LeaderEpochs, decode_leader_epochs
from ottla.log.log_state import LogState, Storage
from ottla.log.open_files import OpenFiles
from ottla.log.partition_log import PartitionLog
from ottla.log.producer_replay import rebuild_producers
from ottla.log.producer_snapshots import ProducerSnapshots
from ottla.log.producer_state import ProducerStates
from ottla.log.recovery import recover_segments
from ottla.log.segment import Segment, create_segment, load_segment, new_segment, rename_deleted
from ottla.log.segment_checkpoint import NOTHING_LISTED, ListedSegments, find_losses
from ottla.log.segment_list import SegmentList
from ottla.log.unsynced import Unsynced
from ottla.model.configs import TopicConfig
from ottla.model.errors import CorruptData
from ottla.model.topics import TopicPartition
from ottla.model.values import dataclass

_log = logging.getLogger(__name__)

_RESTORE = "restore the file, or give the records up with `ottla log repair --drop-corrupt`"


@dataclass(slots=True, frozen=True)
class Hints:
    """What is known about a log from outside of its directory."""

    was_clean: bool  # the last stop completed and synced everything: nothing needs to be checked
    recovery_point: int = 0  # below it everything was synced
    log_start_offset: int | None = None  # as of the last checkpoint; None: it had none
    is_dense: bool = True  # we compact only below the recovery point; Kafka does not look at it
    listed: ListedSegments = NOTHING_LISTED  # segments that must be there


def open_log(
    storage: Storage,
    directory: str,
    topic_partition: TopicPartition,
    config: TopicConfig,
    hints: Hints,
    now_ms: int,
) -> PartitionLog:
    """The log in `directory`. CorruptData: it needs a person; OSError: the disk does."""
    pool = storage.pool
    names = _usable_names(pool, directory)
    epochs = _load_epochs(pool, directory, names)
    epochs_on_disk = epochs.entries()
    segments, is_trusted, is_durable = _load_segments(pool, directory, config, hints, names, epochs)
    end_offset = segments[-1].end_offset
    log_start_offset = max(hints.log_start_offset or 0, segments[0].base_offset)
    known_offset = min(hints.recovery_point, end_offset)  # up to here nothing has changed since the last sync
    epochs.truncate_end(end_offset)
    epochs.truncate_start(log_start_offset)
    snapshots = ProducerSnapshots(pool, directory, _offsets(names, file_names.SNAPSHOT))
    unsynced = Unsynced()
    if snapshots.delete_above(end_offset if is_trusted else known_offset):
        unsynced.directories.add(directory)
    producers = ProducerStates()
    rebuild_producers(
        producers,
        snapshots,
        segments,
        log_start_offset,
        end_offset,
        indexed_offset=end_offset if is_trusted else known_offset,
    )
    if not is_durable:
        _add_all(unsynced, pool, directory, segments, known_offset)
    snapshots.delete_except({segment.base_offset for segment in segments})
    segments[-1].begin_life(now_ms, config)
    epoch_file = EpochFile(pool, directory, epochs, unsynced)
    if epochs.entries() != epochs_on_disk:
        epoch_file.save()
    state = LogState(
        SegmentList(segments),
        epochs,
        epoch_file,
        producers,
        snapshots,
        log_start_offset,
        end_offset if is_durable else known_offset,
        unsynced,
        is_complete=is_trusted,
    )
    return PartitionLog(topic_partition, directory, config, storage, state)


def _load_segments(
    pool: OpenFiles,
    directory: str,
    config: TopicConfig,
    hints: Hints,
    names: list[str],
    epochs: LeaderEpochs,
) -> tuple[list[Segment], bool, bool]:
    """The segments, at least one; whether they were trusted as found; whether they are surely durable."""
    log_start_offset = hints.log_start_offset or 0
    segments = [load_segment(pool, directory, base) for base in _offsets(names, file_names.LOG)]
    _check_nothing_is_lost(directory, segments, hints, log_start_offset)
    _discard_before(pool, segments, log_start_offset)
    for segment, following in pairwise(segments):
        segment.end_offset = following.base_offset
    is_trusted = is_durable = hints.was_clean and _find_end_offset(segments)
    if segments and not is_trusted and _lost_its_beginning(segments, hints, names):
        _discard(pool, segments, len(segments))
    if segments and not is_trusted:
        is_dense = hints.is_dense or not config.cleanup_compact
        is_durable = not recover_segments(
            pool.files, segments, hints.recovery_point, config.index_interval_bytes, epochs, is_dense=is_dense
        )
    if segments and log_start_offset < segments[-1].end_offset < hints.recovery_point:
        raise CorruptData(
            f"{segments[-1].log.path} ends at offset {segments[-1].end_offset}, but the log was synced up to "
            f"{hints.recovery_point}; {_RESTORE}"
        )
    if segments and segments[-1].end_offset < log_start_offset:
        _log.warning("%s ends before its start %d and is dropped", directory, log_start_offset)
        _discard(pool, segments, len(segments))
    if not segments:
        segments.append(create_segment(pool, directory, log_start_offset))
        is_trusted = is_durable = False
    return segments, is_trusted, is_durable


def _check_nothing_is_lost(
    directory: str, segments: list[Segment], hints: Hints, log_start_offset: int
) -> None:
    if not segments and hints.recovery_point > log_start_offset:
        raise CorruptData(f"{directory} holds no segment, but was synced up to {hints.recovery_point}")
    found = {segment.base_offset: segment.size for segment in segments}
    for loss in find_losses(hints.listed, found, log_start_offset):
        path = os.path.join(directory, file_names.offset_name(loss.base_offset, file_names.LOG))
        raise CorruptData(f"{path} {loss.problem}; {_RESTORE}")


def _add_all(
    unsynced: Unsynced, pool: OpenFiles, directory: str, segments: list[Segment], synced_offset: int
) -> None:
    """After a crash: whatever was found behind `synced_offset`, and its names, may be in memory only."""
    for segment in segments:
        if segment.end_offset >= synced_offset:
            unsynced.files += segment.complete()
    unsynced.files.append(pool.existing(os.path.join(directory, PARTITION_METADATA)))
    unsynced.add_names(directory)


def new_log(
    storage: Storage, directory: str, topic_partition: TopicPartition, config: TopicConfig, now_ms: int
) -> PartitionLog:
    """An empty log whose files were just made; its first round also syncs their names."""
    segment = new_segment(storage.pool, directory)
    segment.begin_life(now_ms, config)
    unsynced = Unsynced(files=[storage.pool.existing(os.path.join(directory, PARTITION_METADATA))])
    unsynced.add_names(directory)
    epochs = LeaderEpochs()
    state = LogState(
        SegmentList([segment]),
        epochs,
        EpochFile(storage.pool, directory, epochs, unsynced),
        ProducerStates(),
        ProducerSnapshots(storage.pool, directory, []),
        log_start_offset=0,
        synced_offset=0,
        unsynced=unsynced,
        is_complete=False,
    )
    return PartitionLog(topic_partition, directory, config, storage, state)


def _usable_names(pool: OpenFiles, directory: str) -> list[str]:
    """The names of files that count. What a stop in the middle of something left is removed."""
    names = [name for name, is_directory in pool.files.list_directory(directory) if not is_directory]
    names = settle_interrupted_swaps(pool, directory, names)
    usable = []
    logs = {name.removesuffix(file_names.LOG) for name in names if name.endswith(file_names.LOG)}
    for name in names:
        stem, dot, suffix = name.partition(".")
        is_orphan = dot + suffix in file_names.SEGMENT_SUFFIXES and stem not in logs
        if is_orphan or name.endswith((file_names.DELETED, ".tmp")):
            pool.files.remove(os.path.join(directory, name))
        else:
            usable.append(name)
    return usable


def _offsets(names: list[str], suffix: str) -> list[int]:
    offsets = (file_names.parse_offset(name) for name in names if name.endswith(suffix))
    return sorted(offset for offset in offsets if offset is not None)


def _load_epochs(pool: OpenFiles, directory: str, names: list[str]) -> LeaderEpochs:
    if leader_epochs.FILE_NAME not in names:
        return LeaderEpochs()
    return decode_leader_epochs(pool.files.read_all(os.path.join(directory, leader_epochs.FILE_NAME)))


def _find_end_offset(segments: list[Segment]) -> bool:
    """The log ends behind its last batch, not far from the last index entry. False: the index lies."""
    if not segments:
        return False
    segment = segments[-1]
    entry = segment.offset_index.last()
    try:
        for _, header in segment.headers(entry[1] if entry is not None else 0):
            segment.end_offset = header.next_offset
    except CorruptData as damage:
        _log.warning("%s is recovered although the last stop was clean: %s", segment.log.path, damage)
        return False
    return True


def _lost_its_beginning(segments: list[Segment], hints: Hints, names: list[str]) -> bool:
    """Whether segments before the first one are missing that nobody dropped: the rest is of no worth then.

    That is only possible where nothing was acknowledged. Retention drops segments when a checkpoint holds the
    new log start; and a log that has its epochs on disk has had a round, so its first segment was durable.
    """
    first_base = segments[0].base_offset
    if first_base <= max(hints.log_start_offset or 0, hints.recovery_point):
        return False
    return hints.log_start_offset is not None or leader_epochs.FILE_NAME not in names


def _discard_before(pool: OpenFiles, segments: list[Segment], log_start_offset: int) -> None:
    """Segments that retention had dropped, or would have: whatever is left of them is no part of the log."""
    count = sum(segment.base_offset <= log_start_offset for segment in segments) - 1
    _discard(pool, segments, max(count, 0))


def _discard(pool: OpenFiles, segments: list[Segment], count: int) -> None:
    """Remove the files of the first segments."""
    for segment in segments[:count]:
        for path in rename_deleted(pool.files, segment):
            pool.files.remove(path)
    del segments[:count]
