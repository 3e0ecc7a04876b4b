"""Group commit of the znode log: one sync round at a time, in its worker, never waited for."""

from __future__ import annotations

from collections.abc import Callable

from ottla.coordination.client import LocalCoordination
from ottla.coordination.txn_log import SyncTicket
from ottla.node.workers import Workers


class CoordinationRounds:
    def __init__(
        self, coordination: LocalCoordination, worker: Workers, fail: Callable[[BaseException], None]
    ) -> None:
        self.is_busy = False  # a round is under way
        self._coordination = coordination
        self._worker = worker
        self._fail = fail

    def start(self) -> None:
        """Begins what is due; called once in every turn."""
        ticket = self._coordination.begin_sync()
        if ticket is not None:
            self.is_busy = True
            self._worker(ticket.run, lambda error: self._finished(ticket, error))

    def _finished(self, ticket: SyncTicket, error: BaseException | None) -> None:
        self.is_busy = False
        if error is not None:
            self._fail(error)
        else:
            self._coordination.finish_sync(ticket)
