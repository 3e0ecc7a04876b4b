"""Group commit of the znode log: one sync round at a time, in its worker, never waited for.

A round that finds the disk full waits for room and is tried again; until then changes are refused. A sync
that fails is final.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ottla.coordination.client import LocalCoordination
from ottla.coordination.txn_log import NoRoom, SyncTicket
from ottla.log.disk_lane import DiskLane
from ottla.node.workers import Workers
from ottla.server.reactor import Reactor

log = logging.getLogger(__name__)

_RETRY_MS = 1_000  # on a full disk
_LONG_US = (
    1_000  # of a round: on a busy disk one more round costs everybody more than waiting for others does
)
_GATHER_PART = 3  # of the last round's time may be waited
_GATHER_US_MAX = 2_000


class CoordinationRounds:
    def __init__(
        self,
        coordination: LocalCoordination,
        worker: Workers,
        reactor: Reactor,
        fail: Callable[[BaseException], None],
        lane: DiskLane | None = None,
    ) -> None:
        """`lane` for rounds that are one durable append, as nearly all are; without it they are the worker's,
        too.
        """
        self.is_busy = False  # a round is under way
        # Those who were answered together ask again together. Where a round takes long, the next one waits
        # for as many as there were before, so that they share it, but only for a part of that time.
        self._expected = 0  # answers that were awaited when the last round ended
        self._gather_end_us = 0
        self._began_us = 0  # the round under way, or the last one
        self._now_us = reactor.clock.monotonic_us
        self._coordination = coordination
        self._worker = worker
        self._reactor = reactor
        self._fail = fail
        self._lane = lane
        self._in_lane: SyncTicket | None = None  # the round under way, if the lane has it
        if coordination.is_short_of_room:
            self._later(self._regain_room)

    def settle(self) -> None:
        """Ends what the lane has done. First in a turn, as more of its work may follow from that."""
        if self._in_lane is not None and self._lane is not None and self._lane.is_done:
            self._written(self._in_lane, self._lane.take())

    def start(self) -> None:
        """Ends what is done and begins what is due; called once in every turn."""
        self.settle()
        waiting = self._coordination.outstanding
        if not self.is_busy and 0 < waiting < self._expected and self._now_us() < self._gather_end_us:
            self._reactor.timers.set(self._reactor.clock.monotonic_ms(), _look_again)
            return
        ticket = self._coordination.begin_sync()
        if ticket is not None:
            self._run(ticket)

    def _run(self, ticket: SyncTicket) -> None:
        self.is_busy = True
        self._began_us = self._now_us()
        if ticket.direct is not None and self._lane is not None:
            self._in_lane = ticket
            self._lane.give(ticket.direct)
        else:
            self._work(ticket)

    def _written(self, ticket: SyncTicket, error_number: int) -> None:
        """The lane has done its round. What the file system refused to write so, the worker writes."""
        self._in_lane = None
        assert ticket.direct is not None
        try:
            is_written = ticket.direct.settle(error_number)
        except OSError as error:
            self._finished(ticket, self._coordination.is_short_of_room, error)
            return
        if is_written:
            ticket.steps.clear()
            self._finished(ticket, self._coordination.is_short_of_room, None)
        else:
            self._work(ticket)

    def _work(self, ticket: SyncTicket) -> None:
        was_short = self._coordination.is_short_of_room
        self._worker(ticket.run, lambda error: self._finished(ticket, was_short, error))

    def _finished(self, ticket: SyncTicket, was_short: bool, error: BaseException | None) -> None:
        self.is_busy = False
        if isinstance(error, NoRoom):
            if not self._coordination.is_blocked:
                log.error("topics and settings cannot be changed: %s", error)
            self._coordination.is_blocked = True
            self._later(lambda: self._work(ticket))
        elif error is not None:
            self._fail(error)
        else:
            self._plan_the_next()
            self._coordination.finish_sync(ticket)
        if self._coordination.is_short_of_room and not was_short:
            self._later(self._regain_room)

    def _plan_the_next(self) -> None:
        now_us = self._now_us()
        took_us = now_us - self._began_us
        self._expected = self._coordination.outstanding
        self._gather_end_us = now_us
        if took_us >= _LONG_US:
            self._gather_end_us += min(took_us // _GATHER_PART, _GATHER_US_MAX)

    def _regain_room(self) -> None:
        if not self._coordination.is_blocked:  # else its round is the first to need the room
            self._coordination.maybe_regain_room()
        if self._coordination.is_short_of_room:
            self._later(self._regain_room)

    def _later(self, action: Callable[[], None]) -> None:
        self._reactor.timers.set(self._reactor.clock.monotonic_ms() + _RETRY_MS, action)


def _look_again() -> None:
    """That the timer is due is all: the next turn does not sleep."""
