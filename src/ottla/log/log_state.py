"""What a log consists of, as it was found or made: the loader fills it in, `PartitionLog` works on it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.log.ballast import Ballast
from ottla.log.deletions import Deletions
from ottla.log.filesystem_sync import FilesystemSync
from ottla.log.leader_epochs import LeaderEpochs
from ottla.log.open_files import OpenFiles, PooledFile
from ottla.log.producer_snapshots import ProducerSnapshots
from ottla.log.producer_state import ProducerStates
from ottla.log.segment_list import SegmentList


class Storage(NamedTuple):
    """What the logs of one directory share."""

    pool: OpenFiles
    deletions: Deletions
    ballast: Ballast  # while it is spent nothing may be appended
    filesystem_sync: FilesystemSync | None  # syncs all files of the logs at once, where that is possible


@dataclass(slots=True)
class Unsynced:
    """What the next sync round has to make durable, besides what was appended to the active segment."""

    files: list[PooledFile] = field(default_factory=list)  # in the order of offsets
    directories: set[str] = field(default_factory=set)  # whose names changed
    renames: list[tuple[str, str]] = field(default_factory=list)  # (from, to), when the files are durable

    def __bool__(self) -> bool:
        return bool(self.files or self.directories or self.renames)

    def add_names(self, directory: str) -> None:
        """The directory, and its own name above it, may have changed."""
        self.directories |= {directory, os.path.dirname(directory)}


@dataclass(slots=True)
class LogState:
    segments: SegmentList
    epochs: LeaderEpochs
    producers: ProducerStates
    snapshots: ProducerSnapshots
    log_start_offset: int
    synced_offset: int
    unsynced: Unsynced = field(default_factory=Unsynced)
    is_complete: bool = True  # the files are as a clean stop leaves them
