"""What a log consists of, as it was found or made: the loader fills it in, `PartitionLog` works on it."""

from __future__ import annotations

from ottla.log.ballast import Ballast
from ottla.log.deletions import Deletions
from ottla.log.epoch_file import EpochFile
from ottla.log.filesystem_sync import FilesystemSync
from ottla.log.leader_epochs import LeaderEpochs
from ottla.log.open_files import OpenFiles
from ottla.log.producer_snapshots import ProducerSnapshots
from ottla.log.producer_state import ProducerStates
from ottla.log.segment_list import SegmentList
from ottla.log.unsynced import Unsynced
from ottla.model.values import NamedTuple, dataclass


class Storage(NamedTuple):
    """What the logs of one directory share."""

    pool: OpenFiles
    deletions: Deletions
    ballast: Ballast  # while it is spent nothing may be appended
    filesystem_sync: FilesystemSync | None  # syncs all files of the logs at once, where that is possible


@dataclass(slots=True)
class LogState:
    segments: SegmentList
    epochs: LeaderEpochs
    epoch_file: EpochFile
    producers: ProducerStates
    snapshots: ProducerSnapshots
    log_start_offset: int
    synced_offset: int
    unsynced: Unsynced
    is_complete: bool  # the files are as a clean stop leaves them
