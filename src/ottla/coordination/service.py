"""The tree as a service for clients: connections, sessions, requests in order. What ZooKeeper's wire calls.

Everything runs on the owner's loop and returns at once. What a client is told leaves through `done` and its
`Line`, in the order in which the client must see it, and only when no power cut can take it back.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from ottla.coordination.client import Answer, Done, LocalCoordination
from ottla.coordination.operations import CloseSession, Code, OpenSession, Operation, Refusal, Result
from ottla.coordination.reads import Read, Reader
from ottla.coordination.sessions import PASSWORD_BYTES, Client, ExpiryQueue, Line, Session, first_session_id
from ottla.coordination.upkeep import Upkeep
from ottla.model.clock import Clock, monotonic_ms_of
from ottla.model.values import NamedTuple

logger = logging.getLogger(__name__)

TICK_MS = 2_000
"""ZooKeeper's `tickTime`: the unit of session timeouts."""

_SERVER_ID = 1
_TICKS_PER_TIMEOUT = (2, 20)


class Statistics(NamedTuple):
    nodes: int
    ephemerals: int
    data_bytes: int  # of paths and data
    sessions: int
    watches: int
    watched_paths: int
    watching_clients: int
    outstanding: int  # requests that wait for the disk
    zxid: int


class CoordinationService:
    def __init__(
        self,
        coordination: LocalCoordination,
        clock: Clock,
        *,
        tick_ms: int = TICK_MS,
        session_timeout_ms_min: int | None = None,
        session_timeout_ms_max: int | None = None,
    ) -> None:
        """Session timeouts are between 2 and 20 ticks unless other limits are given."""
        shortest_ticks, longest_ticks = _TICKS_PER_TIMEOUT
        self.session_timeout_ms_min = session_timeout_ms_min or shortest_ticks * tick_ms
        self.session_timeout_ms_max = session_timeout_ms_max or longest_ticks * tick_ms
        self.tick_ms = tick_ms
        self.tick_interval_ms = max(1, tick_ms // 4)  # how often `tick` is to be called
        self._coordination = coordination
        self._tree = coordination.tree
        self._clock = clock
        self._reader = Reader(coordination.tree, coordination.watches)
        self._expiry = ExpiryQueue(self.tick_interval_ms, clock.monotonic_ms())
        self._upkeep = Upkeep(coordination)
        self._sessions: dict[int, Session] = {}
        self._next_session_id = first_session_id(_SERVER_ID, clock.wall_ms())
        self._restore_sessions()

    def _restore_sessions(self) -> None:
        """Sessions outlive a restart; each has its whole timeout to come back."""
        for session_id, terms in self._tree.sessions.items():
            session = Session(session_id, terms.password, terms.timeout_ms)
            self._sessions[session_id] = session
            self._expiry.touch(session, monotonic_ms_of(self._clock))
            self._next_session_id = max(self._next_session_id, session_id + 1)

    @property
    def zxid(self) -> int:
        """Of the newest transaction that clients may know of."""
        return self._coordination.answered_zxid

    # Connections and sessions

    def connect(self, address: str, line: Line) -> Client:
        """A client has connected."""
        return Client(address, line)

    def disconnect(self, client: Client) -> None:
        """The connection is gone, and its watches with it; the session has its timeout to come back."""
        client.is_gone = True
        self._coordination.watches.remove_watcher(client)
        if client.session is not None and client.session.client is client:
            client.session.client = None

    def open_session(self, client: Client, timeout_ms: int, done: Callable[[Session], None]) -> None:
        """A new session; `done` when it is durable."""
        session = Session(self._next_session_id, os.urandom(PASSWORD_BYTES), self._negotiated(timeout_ms))
        self._next_session_id += 1
        self._sessions[session.id] = session
        self._attach(client, session)
        operation = OpenSession(session.id, session.timeout_ms, session.password)
        self._coordination.submit(operation, lambda _: done(session), session.id, None, client)

    def reopen_session(
        self,
        client: Client,
        session_id: int,
        password: bytes,
        timeout_ms: int,
        done: Callable[[Session | None], None],
    ) -> None:
        """A client comes back; None when its session is over or the password is wrong.

        The connection that spoke for the session before is closed.
        """
        session = self._sessions.get(session_id)
        if session is None or session.is_closing or not _are_equal(session.password, password):
            done(None)
            return
        if (before := session.client) is not None:
            self.disconnect(before)
            before.close()
        session.timeout_ms = self._negotiated(timeout_ms)
        self._attach(client, session)
        done(session)

    def close_session(self, client: Client, done: Done) -> None:
        """The session ends and its ephemeral nodes go."""
        if client.session is None or client.session.is_closing:
            self.submit(client, Refusal(Code.SESSION_EXPIRED), done)
            return
        self._end(client.session, done, client)

    def _negotiated(self, timeout_ms: int) -> int:
        return min(max(timeout_ms, self.session_timeout_ms_min), self.session_timeout_ms_max)

    def _attach(self, client: Client, session: Session) -> None:
        client.session = session
        session.client = client
        self._expiry.touch(session, monotonic_ms_of(self._clock))

    def _end(self, session: Session, done: Done, client: Client | None = None) -> None:
        session.is_closing = True
        self._expiry.remove(session)
        del self._sessions[session.id]
        self._coordination.submit(CloseSession(session.id), done, session.id, None, client)

    # Requests

    def submit(self, client: Client, operation: Operation, done: Callable[[Result], None]) -> None:
        """Carry a change out for the client; `done` when it is durable, never before this returns."""
        session = client.session
        if session is None or session.is_closing:
            operation, session_id = Refusal(Code.SESSION_EXPIRED), 0
        else:
            session_id = session.id
            self._expiry.touch(session, monotonic_ms_of(self._clock))
        self._coordination.submit(operation, done, session_id, client.identities, client)

    def read(self, client: Client, read: Read, done: Callable[[Answer], None]) -> None:
        """Answer from the tree. `done` may be called before this returns."""
        session = client.session
        if session is None or session.is_closing:
            self._coordination.answer(client, None, done, Code.SESSION_EXPIRED, None)
            return
        self._expiry.touch(session, monotonic_ms_of(self._clock))
        found = self._reader.read(client, read)
        self._coordination.answer(client, found.shown, done, found.code, found.value, found.missed)

    def touch(self, client: Client) -> None:
        """The client was heard of (a ping); requests count by themselves."""
        session = client.session
        if session is not None and not session.is_closing:
            self._expiry.touch(session, monotonic_ms_of(self._clock))

    # Time

    def tick(self, now_ms: int) -> None:
        """End the sessions that were not heard of, and nodes whose time has come."""
        for session in self._expiry.due(now_ms):
            logger.info("session %#x expired: not heard of for %d ms", session.id, session.timeout_ms)
            self._end(session, lambda _, session=session: _close_client(session))  # type: ignore[misc]
        self._upkeep.tick(now_ms, self._clock.wall_ms())

    # For who looks at the service

    def sessions(self) -> Iterator[Session]:
        return iter(self._sessions.values())

    def ephemerals(self) -> Mapping[int, AbstractSet[str]]:
        """Paths by the session that they live with."""
        return self._tree.ephemerals

    def watched_paths(self) -> dict[str, set[int]]:
        """Every path that clients watch, and the sessions that do."""
        watches = self._coordination.watches
        watched: dict[str, set[int]] = {}
        for table in (watches.data, watches.children):
            for watcher, paths in table.by_watcher.items():
                if isinstance(watcher, Client) and watcher.session is not None:
                    for path in paths:
                        watched.setdefault(path, set()).add(watcher.session.id)
        return watched

    def statistics(self) -> Statistics:
        data, children = self._coordination.watches.data, self._coordination.watches.children
        return Statistics(
            nodes=len(self._tree.nodes),
            ephemerals=sum(map(len, self._tree.ephemerals.values())),
            data_bytes=self._tree.data_bytes,
            sessions=len(self._sessions),
            watches=sum(len(table.by_watcher[one]) for table in (data, children) for one in table.by_watcher),
            watched_paths=len(data.by_path.keys() | children.by_path.keys()),
            watching_clients=len(data.by_watcher.keys() | children.by_watcher.keys()),
            outstanding=self._coordination.outstanding,
            zxid=self.zxid,
        )


def _close_client(session: Session) -> None:
    if session.client is not None:
        session.client.close()


def _are_equal(known: bytes, told: bytes) -> bool:
    """In a time that does not tell where they differ. (`hmac` would bring all of OpenSSL into memory.)"""
    different = len(known) ^ len(told)
    for one, other in zip(known, told, strict=False):
        different |= one ^ other
    return not different
