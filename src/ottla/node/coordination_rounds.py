"""Group commit of the znode log: one sync round at a time, in its worker, never waited for.

A round that finds the disk full waits for room and is tried again; until then changes are refused. A sync
that fails is final.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ottla.coordination.client import LocalCoordination
from ottla.coordination.txn_log import NoRoom, SyncTicket
from ottla.node.workers import Workers
from ottla.server.reactor import Reactor

log = logging.getLogger(__name__)

_RETRY_MS = 1_000  # on a full disk


class CoordinationRounds:
    def __init__(
        self,
        coordination: LocalCoordination,
        worker: Workers,
        reactor: Reactor,
        fail: Callable[[BaseException], None],
    ) -> None:
        self.is_busy = False  # a round is under way
        self._coordination = coordination
        self._worker = worker
        self._reactor = reactor
        self._fail = fail
        if coordination.is_short_of_room:
            self._later(self._regain_room)

    def start(self) -> None:
        """Begins what is due; called once in every turn."""
        ticket = self._coordination.begin_sync()
        if ticket is not None:
            self._run(ticket)

    def _run(self, ticket: SyncTicket) -> None:
        self.is_busy = True
        was_short = self._coordination.is_short_of_room
        self._worker(ticket.run, lambda error: self._finished(ticket, was_short, error))

    def _finished(self, ticket: SyncTicket, was_short: bool, error: BaseException | None) -> None:
        self.is_busy = False
        if isinstance(error, NoRoom):
            if not self._coordination.is_blocked:
                log.error("topics and settings cannot be changed: %s", error)
            self._coordination.is_blocked = True
            self._later(lambda: self._run(ticket))
        elif error is not None:
            self._fail(error)
        else:
            self._coordination.finish_sync(ticket)
        if self._coordination.is_short_of_room and not was_short:
            self._later(self._regain_room)

    def _regain_room(self) -> None:
        if not self._coordination.is_blocked:  # else its round is the first to need the room
            self._coordination.maybe_regain_room()
        if self._coordination.is_short_of_room:
            self._later(self._regain_room)

    def _later(self, action: Callable[[], None]) -> None:
        self._reactor.timers.set(self._reactor.clock.monotonic_ms() + _RETRY_MS, action)
