"""The service on a simulated disk, and clients that remember all they were told, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from faults.power_cut import SimulatedFiles
from ottla.coordination.acls import Identity
from ottla.coordination.client import Answer, LocalCoordination
from ottla.coordination.operations import Operation, Result
from ottla.coordination.reads import Read
from ottla.coordination.service import CoordinationService
from ottla.coordination.sessions import Client, Session
from ottla.coordination.watches import WatchEvent
from ottla.model.clock import ManualClock

DIRECTORY = "/coordination"


class Served:
    def __init__(
        self,
        files: SimulatedFiles | None = None,
        clock: ManualClock | None = None,
        snapshot_log_bytes: int = 1 << 20,
    ) -> None:
        self.files = files or SimulatedFiles()
        self.clock = clock or ManualClock()
        self.coordination = LocalCoordination(
            self.files, DIRECTORY, self.clock, snapshot_log_bytes=snapshot_log_bytes
        )
        self.service = CoordinationService(self.coordination, self.clock)

    def client(self, *identities: Identity, timeout_ms: int = 10_000, address: str = "127.0.0.1") -> Visitor:
        visitor = Visitor(self, address)
        visitor.client.identities += identities
        self.service.open_session(visitor.client, timeout_ms, visitor.opened.append)
        self.coordination.sync()
        return visitor

    def restarted(self) -> Served:
        """The same directory, opened by another process after this one was killed."""
        return Served(self.files, self.clock)

    def pass_time(self, ms: int) -> None:
        """As a broker does: a tick every interval, and what it submits made durable."""
        end_ms = self.clock.monotonic_ms() + ms
        while self.clock.monotonic_ms() < end_ms:
            self.clock.advance(min(self.service.tick_interval_ms, end_ms - self.clock.monotonic_ms()))
            self.service.tick(self.clock.monotonic_ms())
            self.coordination.sync()


class Visitor:
    """A client and everything it was told."""

    def __init__(self, served: Served, address: str = "127.0.0.1") -> None:
        self.served = served
        self.opened: list[Session | None] = []
        self.told: list[Result | Answer | WatchEvent] = []
        self.closed = False
        self.client: Client = served.service.connect(address, self)

    def notify(self, event: WatchEvent) -> None:
        self.told.append(event)

    def end(self) -> None:
        self.closed = True

    @property
    def session(self) -> Session:
        [session] = self.opened
        assert session is not None
        return session

    def come_back(self, to: Served, password: bytes | None = None) -> Visitor:
        visitor = Visitor(to)
        session = self.session
        to.service.reopen_session(
            visitor.client,
            session.id,
            session.password if password is None else password,
            session.timeout_ms,
            visitor.opened.append,
        )
        return visitor

    def submit(self, operation: Operation) -> None:
        self.served.service.submit(self.client, operation, self.told.append)

    def read(self, read: Read) -> None:
        self.served.service.read(self.client, read, self.told.append)

    def do(self, operation: Operation) -> Result:
        """Submit, and wait for the disk."""
        self.submit(operation)
        self.served.coordination.sync()
        result = self.told.pop()
        assert isinstance(result, Result)
        return result

    def ask(self, read: Read) -> Any:
        """The value of a read that is permitted; its code otherwise."""
        self.read(read)
        self.served.coordination.sync()
        answer = self.told.pop()
        assert isinstance(answer, Answer)
        return answer.value if answer.code == 0 else answer.code

    def events(self) -> Sequence[tuple[str, str]]:
        """The events since the last call."""
        events = [(one.type.name, one.path) for one in self.told if isinstance(one, WatchEvent)]
        self.told.clear()
        return events
