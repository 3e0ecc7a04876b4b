"""`leader-epoch-checkpoint`, kept in step with the epochs of a log.

It is written aside at once, where a full disk can still refuse what is about to be appended; the next sync
round puts it in its place.
"""

from __future__ import annotations

import os

from ottla.log.files import TEMPORARY_SUFFIX
from ottla.log.leader_epochs import FILE_NAME, LeaderEpochs
from ottla.log.open_files import OpenFiles
from ottla.log.unsynced import Unsynced


class EpochFile:
    __slots__ = ("_epochs", "_path", "_pool", "_saved_count", "_unsynced")

    def __init__(self, pool: OpenFiles, directory: str, epochs: LeaderEpochs, unsynced: Unsynced) -> None:
        self._pool = pool
        self._path = os.path.join(directory, FILE_NAME)
        self._epochs = epochs
        self._unsynced = unsynced
        self._saved_count = 0  # names the files apart that are written aside

    def begin_epoch(self, leader_epoch: int, start_offset: int) -> None:
        """A new leader's batches begin at `start_offset`. On OSError the epochs are what they were."""
        before = self._epochs.entries()
        self._epochs.assign(leader_epoch, start_offset)
        try:
            self.save()
        except OSError:
            self._epochs.reset(before)
            raise

    def save(self) -> None:
        self._saved_count += 1
        aside = f"{self._path}.{self._saved_count}{TEMPORARY_SUFFIX}"
        files = self._pool.files
        files.write_new(aside, self._epochs.encode()).close()
        for superseded, _ in self._unsynced.renames:
            files.remove(superseded)
        self._unsynced.renames = [(aside, self._path)]
        self._unsynced.files.append(self._pool.existing(aside))
