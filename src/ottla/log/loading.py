"""Opening the log of a partition from its directory: trusted after a clean stop, recovered after a crash."""

from __future__ import annotations

import logging
import os
import random
from dataclasses import dataclass
from itertools import pairwise

from ottla.log import file_names, leader_epochs
from ottla.log.deletions import Deletions
from ottla.log.files import FileHandle
from ottla.log.leader_epochs import LeaderEpochs, decode_leader_epochs
from ottla.log.open_files import OpenFiles
from ottla.log.partition_log import PartitionLog
from ottla.log.producer_snapshots import ProducerSnapshots, rebuild_producers
from ottla.log.producer_state import ProducerStates
from ottla.log.recovery import recover_segments
from ottla.log.segment import Segment, create_segment, load_segment
from ottla.model.configs import TopicConfig
from ottla.model.errors import CorruptData
from ottla.model.topics import TopicPartition

_log = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class LoadState:
    """What is known about a partition from outside of its directory."""

    was_clean: bool  # the last stop wrote everything: nothing needs to be checked
    recovery_point: int = 0
    log_start_offset: int = 0


def open_log(
    pool: OpenFiles,
    deletions: Deletions,
    directory: str,
    topic_partition: TopicPartition,
    config: TopicConfig,
    state: LoadState,
    now_ms: int,
) -> PartitionLog:
    """The log in `directory`. CorruptData: it needs a person; OSError: the disk does."""
    files = pool.files
    names = _usable_names(pool, directory)
    segments = [load_segment(pool, directory, base) for base in _offsets(names, file_names.LOG)]
    snapshots = ProducerSnapshots(files, directory, _offsets(names, file_names.SNAPSHOT))
    epochs = _load_epochs(pool, directory, names)
    for segment, following in pairwise(segments):
        segment.end_offset = following.base_offset

    is_whole = state.was_clean
    if not segments:
        if state.recovery_point > state.log_start_offset:
            raise CorruptData(f"{directory} holds no segment, but was synced up to {state.recovery_point}")
        segments = [create_segment(pool, directory, state.log_start_offset)]
        is_whole = False
    elif state.was_clean:
        segments[-1].end_offset = _end_offset(segments[-1])
    else:
        recover_segments(
            files,
            segments,
            state.recovery_point,
            config.index_interval_bytes,
            epochs,
            is_dense=not config.cleanup_compact,
        )
    end_offset = segments[-1].end_offset
    if end_offset < state.log_start_offset:
        _log.warning("%s ends at %d, before its start %d", directory, end_offset, state.log_start_offset)
        for segment in segments:
            _remove(pool, segment)
        segments = [create_segment(pool, directory, state.log_start_offset)]
        end_offset = state.log_start_offset
        is_whole = False

    log_start_offset = max(state.log_start_offset, segments[0].base_offset)
    epochs_changed = epochs.truncate_end(end_offset) | epochs.truncate_start(log_start_offset)
    producers = ProducerStates()
    snapshots.delete_above(end_offset)
    rebuild_producers(producers, snapshots, segments, log_start_offset, end_offset)
    snapshots.delete_except({segment.base_offset for segment in segments})
    active = segments[-1]
    active.created_ms = now_ms
    active.roll_jitter_ms = random.randrange(max(1, min(config.segment_jitter_ms, config.segment_ms)))
    log = PartitionLog(
        topic_partition,
        directory,
        config,
        pool,
        deletions,
        segments,
        epochs,
        producers,
        snapshots,
        log_start_offset,
        end_offset if is_whole else min(state.recovery_point, end_offset),
    )
    if not is_whole:
        log.mark_recovered()
    elif epochs_changed:
        log.mark_epochs_changed()
    return log


def create_log(
    pool: OpenFiles,
    deletions: Deletions,
    directory: str,
    topic_partition: TopicPartition,
    config: TopicConfig,
    metadata: FileHandle,
    now_ms: int,
) -> PartitionLog:
    """A new, empty log in an existing directory; its first round also syncs `metadata`."""
    segment = create_segment(pool, directory, 0, config.segment_bytes if config.preallocate else 0)
    segment.created_ms = now_ms
    log = PartitionLog(
        topic_partition,
        directory,
        config,
        pool,
        deletions,
        [segment],
        LeaderEpochs(),
        ProducerStates(),
        ProducerSnapshots(pool.files, directory, []),
        0,
        0,
    )
    log.mark_created(metadata)
    return log


def _usable_names(pool: OpenFiles, directory: str) -> list[str]:
    """The names of files that count. What a stop in the middle of something left is removed."""
    names = [name for name, is_directory in pool.files.list_directory(directory) if not is_directory]
    if any(name.endswith(file_names.SWAP) for name in names):
        raise CorruptData(
            f"{directory} was left in the middle of a compaction; start Kafka on it once, then stop it"
        )
    usable = []
    logs = {name.removesuffix(file_names.LOG) for name in names if name.endswith(file_names.LOG)}
    for name in names:
        stem, dot, suffix = name.partition(".")
        is_orphan = dot + suffix in file_names.SEGMENT_SUFFIXES and stem not in logs
        if is_orphan or name.endswith((file_names.DELETED, file_names.CLEANED, ".tmp")):
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


def _end_offset(segment: Segment) -> int:
    """The offset behind the last batch of a segment that is whole: from the last index entry on, by
    headers.
    """
    entry = segment.offset_index.last()
    end_offset = segment.base_offset
    for _, header in segment.headers(entry[1] if entry is not None else 0):
        end_offset = header.next_offset
    return end_offset


def _remove(pool: OpenFiles, segment: Segment) -> None:
    for suffix in file_names.SEGMENT_SUFFIXES:
        path = segment.path_stem + suffix
        if pool.files.exists(path):
            pool.files.remove(path)
