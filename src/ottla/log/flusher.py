"""Group commit: one sync round for all logs that are dirty, while the next ones are being written.

The owner marks logs dirty and asks for rounds, one at a time. A round runs in a lane, or in a worker thread
where it is more than bare syncs. Few files are synced one after the other; for many, where the filesystem can
be synced as a whole, that is cheaper (docs/decisions/0003-one-sync-round.md has the figures).
"""

from __future__ import annotations

import os

from ottla.log.file_syncs import FILES_MAX, FileSyncs
from ottla.log.files import FileHandle
from ottla.log.filesystem_sync import FilesystemSync
from ottla.log.partition_log import PartitionLog
from ottla.log.sync_ticket import SyncTicket

FILES_ONE_BY_ONE_MAX = FILES_MAX
"""Up to this many files are synced one by one: it costs no more, and waits for nobody else's writes."""


class Round:
    """Everything that was dirty when it began."""

    __slots__ = ("_in_lane", "failures", "tickets")

    def __init__(self, tickets: list[tuple[PartitionLog, SyncTicket]]) -> None:
        self.tickets = tickets
        self.failures: dict[str, OSError] = {}  # by log directory: nothing in it is synced ever again
        self._in_lane: list[tuple[PartitionLog, FileHandle]] = []  # the files that a lane syncs one by one

    def run(self) -> None:
        """In a worker thread. What the disk does not take is in `failures` then, and must not be tried again:
        the kernel has dropped the pages and would say that all is well.
        """
        by_filesystem: dict[FilesystemSync | None, list[tuple[PartitionLog, SyncTicket]]] = {}
        for log, ticket in self.tickets:
            by_filesystem.setdefault(ticket.whole, []).append((log, ticket))
        for whole, logs in by_filesystem.items():
            if whole is None or not _sync_whole(whole, [ticket for _, ticket in logs]):
                self._sync_one_by_one(logs)

    def run_one_by_one(self) -> None:
        """As `run`, where the filesystem as a whole could not be synced."""
        self._sync_one_by_one(self.tickets)

    # -- in a lane -----------------------------------------------------------------------------------------

    def for_lane(self) -> FileSyncs | None:
        """What `run` does, as bare syncs of few files or of one filesystem, as nearly every round is."""
        if any(ticket.unsynced.renames for _, ticket in self.tickets):
            return None
        if sum(ticket.file_count for _, ticket in self.tickets) > FILES_ONE_BY_ONE_MAX:
            return self._whole_for_lane()
        fds = []
        for log, ticket in self.tickets:
            if ticket.unsynced.directories:
                return None
            for file in ticket.unsynced.files:
                handle = file.open_handle()
                fd = None if handle is None else handle.sync_fd()
                if handle is None or fd is None:
                    return None
                fds.append(fd)
                self._in_lane.append((log, handle))
        return FileSyncs(fds)

    def _whole_for_lane(self) -> FileSyncs | None:
        whole = self.tickets[0][1].whole
        if whole is None or any(ticket.whole is not whole for _, ticket in self.tickets):
            return None
        fd = whole.sync_fd()
        return None if fd is None else FileSyncs([], fd)

    def settle(self, syncs: FileSyncs, error: int) -> bool:
        """What the lane has come to. False: `run_one_by_one` must find out which files failed."""
        if error and not self._in_lane:
            return False
        for at, (log, handle) in enumerate(self._in_lane):
            number = syncs.error_of(at)
            if number:
                failure = OSError(number, os.strerror(number), handle.name)
                handle.sync_failed(failure)
                self.failures[_log_directory(log)] = failure
        return True

    # -- by a worker ---------------------------------------------------------------------------------------

    def _sync_one_by_one(self, logs: list[tuple[PartitionLog, SyncTicket]]) -> None:
        for log, ticket in logs:
            directory = _log_directory(log)
            if directory not in self.failures:
                try:
                    ticket.run()
                except OSError as error:
                    self.failures[directory] = error

    def raise_failure(self) -> None:
        """For who has one directory only."""
        for error in self.failures.values():
            raise error


def _log_directory(log: PartitionLog) -> str:
    return os.path.dirname(log.directory)


def _sync_whole(whole: FilesystemSync, tickets: list[SyncTicket]) -> bool:
    """Sync the filesystem at once. False: the tickets must run one by one."""
    if sum(ticket.file_count for ticket in tickets) <= FILES_ONE_BY_ONE_MAX:
        return False
    renaming = [ticket for ticket in tickets if ticket.unsynced.renames]
    try:
        whole.sync()
        if renaming:
            for ticket in renaming:
                ticket.rename()
            whole.sync()
    except OSError:
        # A write failed, perhaps of somebody else's file: each of ours tells when it is synced alone.
        return False
    return True


class Flusher:
    """Which logs are dirty, and the round under way."""

    def __init__(self) -> None:
        self._dirty: dict[PartitionLog, None] = {}
        self._round: Round | None = None

    @property
    def is_busy(self) -> bool:
        return self._round is not None

    def mark_dirty(self, log: PartitionLog) -> None:
        self._dirty[log] = None

    def forget(self, log: PartitionLog) -> None:
        """The log was deleted; it takes no part in the next round."""
        self._dirty.pop(log, None)

    def next_round(self, now_ms: int = 0) -> Round | None:
        """A round of what is dirty; None while one is under way, or when nothing is."""
        if self._round is not None or not self._dirty:
            return None
        dirty, self._dirty = self._dirty, {}
        tickets = [(log, ticket) for log in dirty if (ticket := log.begin_sync(now_ms)) is not None]
        if not tickets:
            return None
        self._round = Round(tickets)
        return self._round

    def finish(self, done: Round) -> list[PartitionLog]:
        """The round has run: the logs whose synced offset moved."""
        assert done is self._round
        self._round = None
        return [
            log
            for log, ticket in done.tickets
            if _log_directory(log) not in done.failures and log.finish_sync(ticket)
        ]
