"""How the rest of the broker uses coordination, whichever one runs: submit a change, hear of its completion.

`LocalCoordination` is the embedded one: it applies in memory at once, in order, and answers when the change
is durable. Reads see what was applied; what leaves the process is answered through `answer`, which holds back
what a power cut could still take away. It owns no thread: its user takes each sync round to a worker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ottla.coordination.acls import Identity
from ottla.coordination.operations import CloseSession, Code, Operation, Result
from ottla.coordination.paths import parent_of
from ottla.coordination.stat import Stat
from ottla.coordination.txn_log import SNAPSHOT_LOG_BYTES, SyncTicket, TxnLog
from ottla.coordination.txns import AclSet, Created, DataSet, Deleted, Txn
from ottla.coordination.watches import Fired, Watches, WatchEvent
from ottla.log.files import Files
from ottla.model.clock import Clock, wall_ms_of
from ottla.model.values import NamedTuple

LOCAL_SESSION = 1
"""The session of the process that embeds the tree; it ends with the process, unlike those of clients."""

Done = Callable[[Result], None]
Callback = Callable[[WatchEvent], None]


class Coordination(Protocol):
    @property
    def multi_bytes_max(self) -> int | None:
        """The most that `operations.multi_bytes` may say of a multi; None: any."""
        ...

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

    def watch_data(self, path: str, watcher: Callback) -> None:
        """Call `watcher` once, when the node is next created, changed or deleted."""
        ...

    def watch_children(self, path: str, watcher: Callback) -> None:
        """Call `watcher` once, when a child is next created or deleted, or the node goes."""
        ...

    def refresh(self, paths: Sequence[str], done: Callable[[], None], *, below: bool = False) -> None:
        """Reads of `paths` (and of everything `below` them) show at least what is true now; then `done`.

        Reads show what was submitted here in any case; this is for what others have changed.
        """
        ...


class HostedCoordination(Coordination, Protocol):
    """The same for who runs it."""

    def sync(self) -> None:
        """Everything submitted is durable and answered. Blocks: for starting, stopping and tests."""
        ...

    def close(self) -> None: ...


class Answer:
    """What a read tells."""

    __slots__ = ("code", "value", "zxid")

    def __init__(self, code: Code, zxid: int, value: Any = None) -> None:
        self.code = code
        self.zxid = zxid  # of the newest transaction whose events have left before it
        self.value = value  # None unless the code is OK; see reads.py


class Requester:
    """Somebody whose answers must leave in the order of the requests."""

    __slots__ = ("is_gone", "waiting")

    def __init__(self) -> None:
        self.waiting = 0  # answers under way
        self.is_gone = False  # nobody listens any more


class _Local(NamedTuple):
    """A watcher in this process, which may read everything."""

    notify: Callback

    @property
    def identities(self) -> None:
        return None


class _Waiting:
    __slots__ = ("changed", "done", "fired", "requester", "result", "zxid")

    def __init__(
        self,
        zxid: int,
        done: Callable[[Any], None],
        result: Result | Answer,
        fired: Sequence[Fired],
        requester: Requester | None,
        changed: Sequence[str] = (),
    ) -> None:
        self.zxid = zxid  # must be durable before the answer may leave
        self.done = done
        self.result = result
        self.fired = fired
        self.requester = requester
        self.changed = changed  # nodes that the transaction of that zxid changes; empty: it makes none


# Field by field, as what every request makes: compiled, a call would make objects of its arguments.


def _waiting(
    zxid: int,
    done: Callable[[Any], None],
    result: Result | Answer,
    fired: Sequence[Fired],
    requester: Requester | None,
    changed: Sequence[str],
) -> _Waiting:
    waiting = _Waiting.__new__(_Waiting)
    waiting.zxid = zxid
    waiting.done = done
    waiting.result = result
    waiting.fired = fired
    waiting.requester = requester
    waiting.changed = changed
    return waiting


def _answer_of(code: Code, zxid: int, value: Any) -> Answer:
    answer = Answer.__new__(Answer)
    answer.code = code
    answer.zxid = zxid
    answer.value = value
    return answer


class LocalCoordination:
    """The tree in this process. Opening it recovers the state and ends the session of the process before."""

    multi_bytes_max = None

    def __init__(
        self,
        files: Files,
        directory: str,
        clock: Clock,
        *,
        snapshot_log_bytes: int = SNAPSHOT_LOG_BYTES,
    ) -> None:
        self._log = TxnLog(files, directory, snapshot_log_bytes)
        self.tree = self._log.tree
        self.watches = Watches()
        self._data_watches = self.watches.data.by_path  # mostly empty: then nobody has to be asked
        self._child_watches = self.watches.children.by_path
        # The newest transaction that is durable and whose events have left: what a client may know of.
        self.answered_zxid = self.tree.last_zxid
        self.is_blocked = False  # the disk is full: the round under way waits for room, changes are refused
        self._clock = clock
        self._waiting: deque[_Waiting] = deque()
        self._unanswered: dict[str, int] = {}  # nodes changed by transactions behind that one, and the newest
        if LOCAL_SESSION in self.tree.ephemerals:
            self.submit(CloseSession(LOCAL_SESSION), lambda _: None)

    # For everybody (see Coordination)

    def submit(
        self,
        operation: Operation,
        done: Done,
        session_id: int = LOCAL_SESSION,
        identities: Sequence[Identity] | None = None,
        requester: Requester | None = None,
    ) -> None:
        tree = self.tree
        if self.is_blocked and not isinstance(operation, CloseSession):
            self._refuse(done, requester)
            return
        txn, result = tree.decide(operation, session_id, wall_ms_of(self._clock), identities)
        fired: Sequence[Fired] = ()
        changed: Sequence[str] = ()
        if txn is not None:
            if self._data_watches or self._child_watches:
                fired = self.watches.fire(txn, tree.nodes)
            tree.apply(txn)
            self._log.append(txn)
            changed = _changed_nodes(txn)
            for path in changed:
                self._unanswered[path] = txn.zxid
        if requester is not None:
            requester.waiting += 1
        # An answer that changes nothing still tells of the changes before it, so it waits for them.
        self._waiting.append(_waiting(tree.last_zxid, done, result, fired, requester, changed))

    def read(self, path: str) -> tuple[bytes | None, Stat] | None:
        return self.tree.get(path)

    def exists(self, path: str) -> Stat | None:
        return self.tree.exists(path)

    def children(self, path: str) -> list[str] | None:
        return self.tree.children(path)

    def watch_data(self, path: str, watcher: Callback) -> None:
        self.watches.data.add(path, _Local(watcher))

    def watch_children(self, path: str, watcher: Callback) -> None:
        self.watches.children.add(path, _Local(watcher))

    def refresh(self, paths: Sequence[str], done: Callable[[], None], *, below: bool = False) -> None:
        done()  # all changes are made here

    # For servers of clients

    @property
    def outstanding(self) -> int:
        """Answers that wait for the disk."""
        return len(self._waiting)

    def answer(
        self,
        requester: Requester,
        shown: str | None,
        done: Callable[[Answer], None],
        code: Code,
        value: Any,
        missed: Sequence[Fired] = (),
    ) -> None:
        """Hand over what a read of the tree has found, in order, when no power cut can take it back.

        That is at once when the node `shown` (None: any node) has no change under way. `missed` are events
        that leave just before.
        """
        if not requester.waiting and (
            not self._unanswered if shown is None else shown not in self._unanswered
        ):
            for watcher, event in missed:
                watcher.notify(event)
            done(_answer_of(code, self.answered_zxid, value))
            return
        zxid = self.tree.last_zxid
        requester.waiting += 1
        self._waiting.append(_Waiting(zxid, done, Answer(code, zxid, value), missed, requester))

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
        self.is_blocked = False
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

    @property
    def is_short_of_room(self) -> bool:
        """The disk was full, and there was no room to be ready for the next time."""
        return self._log.ballast.is_spent

    def maybe_regain_room(self) -> None:
        self._log.ballast.maybe_lay_by()

    def _refuse(self, done: Done, requester: Requester | None) -> None:
        refused = Result(Code.SYSTEM_ERROR, self.answered_zxid, ())
        if requester is None or not requester.waiting:
            done(refused)
        else:
            requester.waiting += 1
            self._waiting.append(_Waiting(self.tree.last_zxid, done, refused, (), requester))

    def _answer(self) -> None:
        waiting, unanswered, durable_zxid = self._waiting, self._unanswered, self._log.durable_zxid
        while waiting:
            next_one = waiting[0]
            if next_one.zxid > durable_zxid:
                break
            waiting.popleft()
            self.answered_zxid = next_one.zxid
            for path in next_one.changed:
                if unanswered.get(path) == next_one.zxid:
                    del unanswered[path]
            for watcher, event in next_one.fired:
                watcher.notify(event)
            requester = next_one.requester
            if requester is not None:
                requester.waiting -= 1
                if requester.is_gone:
                    continue
            next_one.done(next_one.result)


def _changed_nodes(txn: Txn) -> Sequence[str]:
    """Every node that reads differently afterwards, but for the usage of quotas."""
    changes = txn.changes
    if len(changes) == 1 and isinstance(changes[0], DataSet):
        return (changes[0].path,)  # nearly always
    changed: list[str] = []
    for change in changes:
        if isinstance(change, (DataSet, AclSet)):
            changed.append(change.path)
        elif isinstance(change, (Created, Deleted)):
            changed += (change.path, parent_of(change.path))
    return changed
