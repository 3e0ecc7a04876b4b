"""The durable side of the tree: a log of transactions, synced in groups, and snapshots that let old logs go.

The owner appends and begins a round; the round's `run` does all that touches the disk and may be taken to
another thread; the owner then finishes it. Only one round is under way at a time, and between `begin_sync`
and `finish_sync` the files belong to the round.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import TypeVar

from ottla.coordination.frames import LOG_MAGIC, Header, encode_frame, encode_header
from ottla.coordination.recovery import (
    TEMPORARY_SUFFIX,
    log_name,
    recover,
    snapshot_name,
)
from ottla.coordination.snapshots import SnapshotWriter
from ottla.coordination.txns import Txn, encode_record
from ottla.coordination.znodes import Tree
from ottla.log.ballast import Ballast
from ottla.log.disk_errors import is_full_disk
from ottla.log.files import BLOCK_BYTES, DirectAppend, FileHandle, Files
from ottla.model.limits import KIB, MIB

SNAPSHOT_LOG_BYTES = 4 * MIB
"""Log that may pile up before a snapshot (more when the tree is larger): a start reads all of it."""

SNAPSHOTS_KEPT = 2
"""The newest, and the one before it with the logs since, in case the newest turns out damaged."""


FILL_BYTES_MIN = 64 * KIB
FILL_BYTES_MAX = MIB
"""How far ahead of its end a log is filled with zeros: as much as it has, within these bounds. A record that
overwrites zeros is synced in about half the time of one that makes the file longer: that one has to wait for
the journal of the file system too.
"""

BALLAST_BYTES = 256 * KIB
"""Some hundred changes: on a full disk topics can still be deleted, or their retention shortened."""

T = TypeVar("T")


class NoRoom(OSError):
    """The disk is full. Nothing of the step was written, and the round can go on where it is when there is
    room.
    """


class SyncTicket:
    """One round: everything appended before it is durable when `run` returns. An OSError other than NoRoom
    stops the broker.
    """

    __slots__ = ("direct", "steps", "zxid")

    def __init__(
        self, zxid: int, steps: list[Callable[[], None]], direct: DirectAppend | None = None
    ) -> None:
        self.zxid = zxid  # newest transaction of the round
        self.steps = steps  # that are still to be done
        # All there is to do, ready to be written; who has done it clears `steps`. If it was refused, `run`
        # takes another way.
        self.direct = direct

    def run(self) -> None:
        while self.steps:
            self.steps[0]()
            del self.steps[0]


class TxnLog:
    def __init__(self, files: Files, directory: str, snapshot_log_bytes: int = SNAPSHOT_LOG_BYTES) -> None:
        files.make_directories(directory)
        recovered = recover(files, directory)
        self.tree: Tree = recovered.tree
        self.durable_zxid = recovered.tree.last_zxid
        self._files = files
        self._directory = directory
        self._snapshot_log_bytes = snapshot_log_bytes
        self._logs = recovered.logs
        self._snapshots = recovered.snapshots
        self._log_bytes = recovered.log_bytes  # since the last snapshot began
        self._snapshot_bytes = recovered.snapshot_bytes  # of the last snapshot
        self._frames: list[bytes] = []  # appended, not yet in a round
        self._handle: FileHandle | None = None  # the log being written; None: the next round opens a new one
        self._tag = int.from_bytes(os.urandom(4), "big")  # of every file written from here on
        if recovered.last_log_tag is not None:
            self._handle = files.open(self._path(log_name(self._logs[-1])))
            self._handle.truncate(recovered.last_log_end)
            self._tag = recovered.last_log_tag
        self._filled_end = 0  # of the log being written: up to here nobody tries to fill it any more
        self._zeros_end = 0  # and up to here that went well
        self._direct: DirectAppend | None = None  # for what fits into these zeros
        self._snapshot: SnapshotWriter | None = None
        self._snapshot_handle: FileHandle | None = None
        self._under_way: SyncTicket | None = None
        self.ballast = Ballast(files, directory, BALLAST_BYTES)

    def append(self, txn: Txn) -> None:
        """Take a transaction that was just applied to the tree; the next round makes it durable."""
        frame = encode_frame(encode_record(txn, self.durable_zxid), self._tag)
        self._frames.append(frame)
        self._log_bytes += len(frame)

    def begin_sync(self) -> SyncTicket | None:
        """The next round, or None when there is nothing to do or one is under way."""
        if self._under_way is not None:
            return None
        steps: list[Callable[[], None]] = []
        is_direct = False
        if self._frames:
            step = self._direct_step()
            is_direct = step is not None
            steps.append(step or self._log_step())
        if self._snapshot is None and self._log_bytes > max(self._snapshot_log_bytes, self._snapshot_bytes):
            # Everything up to here goes into this round's log file; the next round begins a new one.
            self._snapshot = SnapshotWriter(self.tree, self._tag)
            self._log_bytes = self._snapshot_bytes = 0
        if self._snapshot is not None:
            steps.append(self._snapshot_step(self._snapshot))
        if not steps:
            return None
        direct = self._direct if is_direct and len(steps) == 1 else None
        self._under_way = SyncTicket(self.tree.last_zxid, steps, direct)
        return self._under_way

    def finish_sync(self, ticket: SyncTicket) -> None:
        assert ticket is self._under_way, "rounds finish one by one"
        self._under_way = None
        self.durable_zxid = ticket.zxid

    def close(self) -> None:
        """Everything appended is durable. The round under way, if any, must have been finished; only one that
        found the disk full is tried a last time.
        """
        if self._under_way is not None:
            self._under_way.run()
            self.finish_sync(self._under_way)
        if self._snapshot is not None:
            self._snapshot.abandon()
            self._snapshot = None
        if self._frames:
            self._log_step()()
            self.durable_zxid = self.tree.last_zxid
        for handle in (self._direct, self._handle, self._snapshot_handle):
            if handle is not None:
                handle.close()
        self._direct = self._handle = self._snapshot_handle = None

    def _is_log_finished(self) -> bool:
        """A snapshot began since the last round: its transactions end the file, new ones begin another."""
        return self._handle is not None and self._logs[-1] <= self._last_snapshot_zxid()

    def _direct_step(self) -> Callable[[], None] | None:
        """For nearly all rounds: the frames fit into the zeros that were written ahead of them."""
        handle, direct, frames = self._handle, self._direct, self._frames
        if handle is None or direct is None or self._is_log_finished():
            return None
        if not direct.prepare(frames, self._zeros_end):
            return None
        self._frames = []

        def write() -> None:
            if not direct.run():
                self._append_to_log(handle, frames)

        return write

    def _log_step(self) -> Callable[[], None]:
        frames, self._frames = self._frames, []
        if self._handle is not None and self._is_log_finished():
            self._handle.close()
            self._handle = None
        if self._handle is not None:
            handle = self._handle
            return lambda: self._append_to_log(handle, frames)
        first_zxid = self.durable_zxid + 1
        self._logs.append(first_zxid)

        def begin_log() -> None:
            header = encode_header(LOG_MAGIC, Header(first_zxid, self._tag))
            self._handle = self._make_fit(lambda: self._files.create_anew(self._path(log_name(first_zxid))))
            self._close_direct()
            self._filled_end = self._zeros_end = 0
            self._append_to_log(self._handle, [header, *frames])
            self._files.sync_directory(self._directory)

        return begin_log

    def _last_snapshot_zxid(self) -> int:
        if self._snapshot is not None:
            return self._snapshot.zxid
        return self._snapshots[-1] if self._snapshots else -1

    def _snapshot_step(self, snapshot: SnapshotWriter) -> Callable[[], None]:
        chunk = snapshot.next_chunk()
        self._snapshot_bytes += len(chunk)
        path = self._path(snapshot_name(snapshot.zxid))
        if not snapshot.finished:
            return lambda: self._write_snapshot(path, chunk)
        self._snapshot = None
        self._snapshots.append(snapshot.zxid)
        obsolete = [self._path(name) for name in self._take_obsolete()]

        def complete() -> None:
            self._write_snapshot(path, chunk)
            assert self._snapshot_handle is not None
            self._snapshot_handle.close()
            self._snapshot_handle = None
            self._files.rename(path + TEMPORARY_SUFFIX, path)
            self._files.sync_directory(self._directory)
            for old in obsolete:
                with contextlib.suppress(FileNotFoundError):
                    self._files.remove(old)

        return complete

    def _write_snapshot(self, path: str, chunk: bytes) -> None:
        if self._snapshot_handle is None:
            self._snapshot_handle = self._make_fit(lambda: self._files.create_anew(path + TEMPORARY_SUFFIX))
        # Synced slice by slice, so that no round has to wait for the whole file at the end.
        self._append_durably(self._snapshot_handle, [chunk])

    def _take_obsolete(self) -> list[str]:
        """Names of the files that no recovery will need once the newest snapshot is in place."""
        names = [snapshot_name(zxid) for zxid in self._snapshots[:-SNAPSHOTS_KEPT]]
        self._snapshots = self._snapshots[-SNAPSHOTS_KEPT:]
        if len(self._snapshots) < SNAPSHOTS_KEPT:
            return names
        oldest_kept = self._snapshots[0]
        while len(self._logs) > 1 and self._logs[1] <= oldest_kept + 1:
            names.append(log_name(self._logs.pop(0)))
        return names

    def _append_to_log(self, handle: FileHandle, chunks: list[bytes]) -> None:
        end = handle.size + sum(map(len, chunks))
        # Blocks are written as a whole, so the last one that is touched has to be filled, too.
        if end + BLOCK_BYTES > self._filled_end:
            ahead = min(max(end, FILL_BYTES_MIN), FILL_BYTES_MAX)
            self._filled_end = -(-(end + ahead) // BLOCK_BYTES) * BLOCK_BYTES
            try:
                handle.fill(self._filled_end)
                self._zeros_end = self._filled_end
            except OSError:  # no room for zeros: the append goes without, or says what is wrong
                handle.truncate(handle.size)
                self._zeros_end = 0
        self._append_durably(handle, chunks)
        if self._direct is None and self._zeros_end:
            self._direct = handle.direct()

    def _close_direct(self) -> None:
        if self._direct is not None:
            self._direct.close()
            self._direct = None

    def _append_durably(self, handle: FileHandle, chunks: list[bytes]) -> None:
        self._make_fit(lambda: handle.append(chunks))
        handle.sync()

    def _make_fit(self, action: Callable[[], T]) -> T:
        try:
            return self.ballast.help(action)
        except OSError as error:
            if is_full_disk(error):
                raise NoRoom(error.errno, error.strerror, error.filename) from error
            raise

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)
