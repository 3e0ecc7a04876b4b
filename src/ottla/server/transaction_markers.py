"""Writing the end of a transaction where its records are: a marker per partition, one sync round for all.

Only for more than a thousand partitions there is more than one, so that others have their turns in between.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ottla.model.errors import CorruptData, ErrorCode, Refused
from ottla.model.topics import OFFSETS_TOPIC, TopicPartition
from ottla.model.values import NamedTuple
from ottla.replica.events import Event
from ottla.replica.partition import Partition
from ottla.server.long_requests import Chore, Work
from ottla.server.parking import ParkingKey

if TYPE_CHECKING:
    from ottla.server.services import Services

log = logging.getLogger(__name__)

_WAIT_MS_MAX = 30_000  # for the disk; then the markers are written again
_AT_ONCE = 1_000  # markers in one turn, so in one sync round; others wait some 20 ms for so many


class Ending(NamedTuple):
    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int


Results = dict[TopicPartition, ErrorCode]


def write_markers(
    services: Services, ending: Ending, places: Iterable[TopicPartition], done: Callable[[Results], None]
) -> None:
    """`done` hears, once those that could be written are durable, how it went for each partition."""
    services.long_requests.begin(
        Chore("ending a transaction"), _write_markers(services, ending, places, done)
    )


def _write_markers(
    services: Services, ending: Ending, places: Iterable[TopicPartition], done: Callable[[Results], None]
) -> Work:
    results: Results = {}
    written: dict[Partition, int] = {}  # and the high watermark at which it is safe
    for number, place in enumerate(places, 1):
        try:
            partition = _find(services, place)
            written[partition] = _append(partition, ending, services.clock.wall_ms())
            results[place] = ErrorCode.NONE
        except Refused as refusal:
            results[place] = refusal.code
        if number % _AT_ONCE == 0:
            yield None
    _await(services, ending, written, results, done)


def _await(
    services: Services,
    ending: Ending,
    written: dict[Partition, int],
    results: Results,
    done: Callable[[Results], None],
) -> None:
    def attempt() -> bool:
        if any(each.unavailable is None and each.high_watermark < end for each, end in written.items()):
            return False
        finish()
        return True

    def finish() -> None:
        for partition, end_offset in written.items():
            if partition.unavailable is not None:
                results[partition.log.topic_partition] = partition.unavailable.code
            elif partition.high_watermark < end_offset:
                results[partition.log.topic_partition] = ErrorCode.REQUEST_TIMED_OUT
            elif partition.topic == OFFSETS_TOPIC:
                _settle_offsets(services, partition.index, ending)
        done(results)

    def fail(error: Exception) -> None:
        log.error("the end of a transaction of producer %d failed", ending.producer_id, exc_info=error)

    if not attempt():
        keys = [ParkingKey(each.topic_id, each.index, Event.HIGH_WATERMARK) for each in written]
        deadline_ms = services.clock.monotonic_ms() + _WAIT_MS_MAX
        services.parking.park(keys, deadline_ms, attempt, finish, fail)


def _find(services: Services, place: TopicPartition) -> Partition:
    partition = services.partitions.named(place.topic, place.partition)
    if partition is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if partition.unavailable is not None:
        raise partition.unavailable
    if place.topic == OFFSETS_TOPIC:
        services.groups.topic.flush()  # offsets of this transaction come before its end
        state = services.groups.topic.partitions.get(place.partition)
        if state is not None and not state.is_loaded:
            raise Refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)  # it might miss the marker
    return partition


def _append(partition: Partition, ending: Ending, now_ms: int) -> int:
    try:
        return partition.end_transaction(
            ending.producer_id, ending.producer_epoch, ending.is_commit, ending.coordinator_epoch, now_ms
        )
    except (OSError, CorruptData) as error:
        raise partition.storage_refusal(error) from error


def _settle_offsets(services: Services, index: int, ending: Ending) -> None:
    state = services.groups.topic.partitions.get(index)
    if state is not None and state.is_loaded:
        state.machine.apply_marker(ending.producer_id, ending.is_commit)
