"""Waiting for what was written before a question to become visible, so that an answer never lags behind it.

With acks=1 a producer hears from us before the disk does, and on a durable topic the high watermark follows
a sync round later. Whoever then asks where the partition ends would be told a number from before the write.
Such questions wait for the round under way, about a millisecond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ottla.protocol.fields import Message
from ottla.replica.events import Event
from ottla.replica.partition import Partition
from ottla.server.exchange import Exchange
from ottla.server.parking import ParkingKey

if TYPE_CHECKING:
    from ottla.server.services import Services

_WAIT_MS_MAX = 5_000  # far beyond any sync; then the answer is what is visible


def answer_when_visible(
    exchange: Exchange[Any],
    services: Services,
    partitions: Iterable[Partition],
    respond: Callable[[], Message | None],
) -> Message | None:
    """`respond()` now when all that was written is visible; else None, and the answer follows by itself.

    `respond` itself may give None, and answer later.
    """
    wanted = {each: each.log_end_offset for each in partitions if each.high_watermark < each.log_end_offset}
    if not wanted:
        return respond()

    def attempt() -> bool:
        if any(each.high_watermark < end and each.unavailable is None for each, end in wanted.items()):
            return False
        finish()
        return True

    def finish() -> None:
        exchange.waiter = None
        response = respond()
        if response is not None:
            exchange.answer(response)

    keys = [ParkingKey(each.topic_id, each.index, Event.HIGH_WATERMARK) for each in wanted]
    deadline_ms = services.clock.monotonic_ms() + _WAIT_MS_MAX
    exchange.waiter = services.parking.park(keys, deadline_ms, attempt, finish, exchange.fail)
    return None
