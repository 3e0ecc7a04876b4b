"""How the rest of the broker uses coordination, whichever one runs: submit a change, hear of its completion.

`LocalCoordination` is the embedded one: it applies in memory at once, in order, and answers when the change
is durable. Reads see what was applied. It owns no thread: its user takes each sync round to a worker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from ottla.coordination.operations import CloseSession, Operation, Result, Stat
from ottla.coordination.txn_log import SNAPSHOT_LOG_BYTES, SyncTicket, TxnLog
from ottla.coordination.watches import Fired, Watcher, Watches
from ottla.log.files import Files
from ottla.model.clock import Clock

LOCAL_SESSION = 1
"""The session of the process that embeds the tree; it ends with the process, unlike those of clients."""

Done = Callable[[Result], None]


class Coordination(Protocol):
    def submit(self, operation: Operation, done: Done) -> None:
        """Carry `operation` out; `done` gets the answer later, on the owner's loop, in order."""
        ...

    def read(self, path: str) -> tuple[bytes | None, Stat] | None:
        """Data and Stat, or None without the node."""
        ...

    def exists(self, path: str) -> Stat | None: ...

    def children(self, path: str) -> list[str] | None:
        """Names in order, or None without the node."""
        ...

    def watch_data(self, path: str, watcher: Watcher) -> None:
        """Call `watcher` once, when the node is next created, changed or deleted."""
        ...

    def watch_children(self, path: str, watcher: Watcher) -> None:
        """Call `watcher` once, when a child is next created or deleted, or the node goes."""
        ...


class _Waiting(NamedTuple):
    zxid: int  # must be durable before the answer may leave
    done: Done
    result: Result
    fired: Sequence[Fired]


class LocalCoordination:
    """The tree in this process. Opening it recovers the state and ends the session of the process before."""

    def __init__(
        self,
        files: Files,
        directory: str,
        clock: Clock,
        *,
        snapshot_log_bytes: int = SNAPSHOT_LOG_BYTES,
    ) -> None:
        self._log = TxnLog(files, directory, snapshot_log_bytes)
        self._tree = self._log.tree
        self._clock = clock
        self._watches = Watches()
        self._waiting: deque[_Waiting] = deque()
        if LOCAL_SESSION in self._tree.ephemerals:
            self.submit(CloseSession(LOCAL_SESSION), lambda _: None)

    # For everybody (see Coordination)

    def submit(self, operation: Operation, done: Done, session_id: int = LOCAL_SESSION) -> None:
        txn, result = self._tree.decide(operation, session_id, self._clock.wall_ms())
        fired: Sequence[Fired] = ()
        if txn is not None:
            self._tree.apply(txn)
            self._log.append(txn)
            fired = self._watches.fire(txn)
        # An answer that changes nothing still tells of the changes before it, so it waits for them.
        self._waiting.append(_Waiting(self._tree.last_zxid, done, result, fired))

    def read(self, path: str) -> tuple[bytes | None, Stat] | None:
        return self._tree.get(path)

    def exists(self, path: str) -> Stat | None:
        return self._tree.exists(path)

    def children(self, path: str) -> list[str] | None:
        return self._tree.children(path)

    def watch_data(self, path: str, watcher: Watcher) -> None:
        self._watches.watch_data(path, watcher)

    def watch_children(self, path: str, watcher: Watcher) -> None:
        self._watches.watch_children(path, watcher)

    # For the owner of the loop

    def begin_sync(self) -> SyncTicket | None:
        """The next round for a worker to `run`, or None when there is nothing to do or one is under way.

        Answers that need no round leave here. Call it once in every turn; without work it costs nothing.
        """
        ticket = self._log.begin_sync()
        if ticket is None and self._waiting:
            self._answer()
        return ticket

    def finish_sync(self, ticket: SyncTicket) -> None:
        """After `ticket.run()` returned: watch events and answers leave, in order."""
        self._log.finish_sync(ticket)
        self._answer()

    def sync(self) -> None:
        """Everything submitted is durable and answered. Blocks: for starting, stopping and tests."""
        while (ticket := self.begin_sync()) is not None:
            ticket.run()
            self.finish_sync(ticket)

    def close(self) -> None:
        """Durable, answered, closed. The round under way, if any, must have been finished."""
        self._log.close()
        self._answer()

    def _answer(self) -> None:
        waiting, durable_zxid = self._waiting, self._log.durable_zxid
        while waiting and waiting[0].zxid <= durable_zxid:
            answer = waiting.popleft()
            for watcher, event in answer.fired:
                watcher(event)
            answer.done(answer.result)
