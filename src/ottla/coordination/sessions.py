"""Sessions of clients and the moment each of them ends unless it is heard of. Pure: time comes in.

Sessions stand in buckets by the time they end. A session that is heard of moves to a later bucket, at most
once for each interval, and a tick looks at the buckets that are due: idle sessions cost nothing.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

from ottla.coordination.acls import Identity
from ottla.coordination.client import Requester
from ottla.coordination.watches import WatchEvent

PASSWORD_BYTES = 16

_ADDRESSES_KEPT = 256  # thousands of clients may come from one


class Line(Protocol):
    """The connection, as far as the room needs it."""

    def notify(self, event: WatchEvent) -> None:
        """The client is told of `event`."""
        ...

    def end(self) -> None:
        """It is closed when what was said before has left."""
        ...


class Client(Requester):
    """One connection of a client: the session it speaks for, who it is, and where its events go."""

    __slots__ = ("identities", "line", "session")

    def __init__(self, address: str, line: Line) -> None:
        super().__init__()
        self.session: Session | None = None  # None before it has said which
        self.identities = _identities_at(address)  # who it has proven to be
        self.line = line

    def notify(self, event: WatchEvent) -> None:
        if not self.is_gone:
            self.line.notify(event)

    def close(self) -> None:
        self.line.end()


@lru_cache(_ADDRESSES_KEPT)
def _identities_at(address: str) -> tuple[Identity, ...]:
    """Of those who have not proven anything yet; one object for all at that address."""
    return (Identity("ip", address),)


class Session:
    __slots__ = ("bucket", "client", "id", "is_closing", "password", "timeout_ms")

    def __init__(self, session_id: int, password: bytes, timeout_ms: int) -> None:
        self.id = session_id
        self.password = password  # proves that a client that comes back is the one that left
        self.timeout_ms = timeout_ms
        self.client: Client | None = None  # the connection that speaks for it
        self.is_closing = False  # closed or expired; nothing more is accepted
        self.bucket = -1  # of the expiry queue; -1: in none

    def __repr__(self) -> str:
        return f"Session({self.id:#x}, timeout_ms={self.timeout_ms})"


class ExpiryQueue:
    def __init__(self, interval_ms: int, now_ms: int) -> None:
        self.interval_ms = interval_ms
        self._buckets: dict[int, dict[Session, None]] = {}
        self._next = now_ms // interval_ms  # the first bucket that is not due yet
        self._last_tick_ms = now_ms
        self._lost_ms = 0  # time in which nobody could be heard, because this process did not run

    def touch(self, session: Session, now_ms: int) -> None:
        """The session was heard of."""
        bucket = (now_ms - self._lost_ms + session.timeout_ms) // self.interval_ms + 1
        if bucket != session.bucket:
            self.remove(session)
            session.bucket = bucket
            self._buckets.setdefault(bucket, {})[session] = None

    def remove(self, session: Session) -> None:
        sessions = self._buckets.get(session.bucket)
        if sessions is not None:
            sessions.pop(session, None)
            if not sessions:
                del self._buckets[session.bucket]
        session.bucket = -1

    def due(self, now_ms: int) -> list[Session]:
        """Take out the sessions whose time has passed."""
        # A machine that was asleep must not find everybody dead: their pings are still in the sockets.
        self._lost_ms += max(0, now_ms - self._last_tick_ms - 2 * self.interval_ms)
        self._last_tick_ms = now_ms
        expired: list[Session] = []
        end = (now_ms - self._lost_ms) // self.interval_ms + 1
        for bucket in range(self._next, end):
            expired += self._buckets.pop(bucket, ())
        self._next = max(self._next, end)
        for session in expired:
            session.bucket = -1
        return expired


def first_session_id(server_id: int, wall_ms: int) -> int:
    """As ZooKeeper makes them: the server in the highest byte, 5 bytes of time, 2 bytes to count on."""
    assert 0 < server_id < 0x7F  # so that no number is negative, where marks of containers and TTLs are
    return server_id << 56 | (wall_ms << 24 & (1 << 64) - 1) >> 8
