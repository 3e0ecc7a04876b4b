"""ListOffsets 1-11: the offset for a timestamp, or for one of the special ones.

- latest: the high watermark, with read_committed (2+) the last stable offset; earliest: the log start.
- max timestamp (7+, KIP-734): the record with the largest timestamp.
- earliest local (8+) is the log start, latest tiered (9+) and earliest pending upload (11+) are unknown (-1):
  there is no tiered storage here.
- A timestamp finds the first record at or after it that readers may see, else -1.
- Leader epochs are checked from 4 on. A partition that is asked for twice is refused, as in Kafka.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from typing import TYPE_CHECKING

from ottla.log.file_range import FileRange
from ottla.log.files import NotResident
from ottla.model.errors import CorruptData, ErrorCode, Refused
from ottla.model.offsets import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    NO_LEADER_EPOCH,
    NO_TIMESTAMP,
)
from ottla.protocol.fields import Message
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.replica.partition import Partition
from ottla.server.exchange import Exchange
from ottla.server.long_requests import Steps
from ottla.server.visibility import answer_when_visible

if TYPE_CHECKING:
    from ottla.server.services import Services

_READ_COMMITTED = 1
_DEBUGGER = -2  # may see past the high watermark
_COLD_PIECES_MAX = 10_000  # some for each segment; more would mean that memory is too short to ever answer

# Since which version each special timestamp may be asked for.
_SPECIAL_SINCE = {
    LATEST_TIMESTAMP: 0,
    EARLIEST_TIMESTAMP: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP: 11,
}


def handle(exchange: Exchange[ListOffsetsRequest], services: Services) -> Message | None:
    asked = [
        services.partitions.named(topic.name, partition.partition_index)
        for topic in exchange.request.topics
        for partition in topic.partitions
        if partition.timestamp not in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP)
    ]
    found = [partition for partition in asked if partition is not None]
    return answer_when_visible(
        exchange, services, found, lambda: services.long_requests.begin(exchange, _answer(exchange, services))
    )


def _answer(exchange: Exchange[ListOffsetsRequest], services: Services) -> Steps:
    topics = []
    counts = Counter(
        (topic.name, asked.partition_index) for topic in exchange.request.topics for asked in topic.partitions
    )
    for topic in exchange.request.topics:
        answers = []
        for asked in topic.partitions:
            yield None
            try:
                if not exchange.may(topic.name):
                    raise Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                if counts[topic.name, asked.partition_index] > 1:
                    raise Refused(ErrorCode.INVALID_REQUEST, "the request asks for the partition twice")
                answers.append((yield from _find_without_waiting(exchange, services, topic.name, asked)))
            except Refused as refusal:
                answers.append(ListOffsetsPartitionResponse(asked.partition_index, refusal.code))
        topics.append(ListOffsetsTopicResponse(topic.name, answers))
    return ListOffsetsResponse(topics=topics)


def _find_without_waiting(
    exchange: Exchange[ListOffsetsRequest], services: Services, topic: str, asked: ListOffsetsPartition
) -> Generator[FileRange, None, ListOffsetsPartitionResponse]:
    """The partition's answer; what it needs of the disk is read by a worker, piece by piece."""
    for _ in range(_COLD_PIECES_MAX):
        partition = services.partitions.named(topic, asked.partition_index)
        if partition is None:
            raise services.partitions.missing(topic, asked.partition_index)
        try:
            with partition.log.without_waiting:
                return _find(exchange, partition, asked)
        except NotResident as missing:
            cold = missing.file_range
        except (OSError, CorruptData) as error:
            raise partition.storage_refusal(error) from error
        try:
            yield cold
        except OSError as error:
            raise partition.storage_refusal(error) from error
    raise Refused(ErrorCode.KAFKA_STORAGE_ERROR, "the disk forgets faster than it reads")


def _find(
    exchange: Exchange[ListOffsetsRequest], partition: Partition, asked: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    partition.check_epoch(asked.current_leader_epoch)
    if asked.timestamp < 0 and exchange.version < _SPECIAL_SINCE.get(asked.timestamp, 1 << 15):
        raise Refused(
            ErrorCode.UNSUPPORTED_VERSION, f"timestamp {asked.timestamp} has no meaning in this version"
        )
    timestamp, offset, epoch = _lookup(partition, asked.timestamp, _visible_end(exchange.request, partition))
    if exchange.version < 4:
        epoch = NO_LEADER_EPOCH  # has no place there
    return ListOffsetsPartitionResponse(asked.partition_index, ErrorCode.NONE, timestamp, offset, epoch)


def _visible_end(request: ListOffsetsRequest, partition: Partition) -> int:
    if request.replica_id == _DEBUGGER:
        return partition.log_end_offset
    if request.isolation_level == _READ_COMMITTED:
        return partition.last_stable_offset
    return partition.high_watermark


def _lookup(partition: Partition, timestamp: int, end_offset: int) -> tuple[int, int, int]:
    """(timestamp, offset, leader epoch), with -1 for what is unknown."""
    log = partition.log
    if timestamp == LATEST_TIMESTAMP:
        return NO_TIMESTAMP, end_offset, partition.leader_epoch
    if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        start = partition.log_start_offset
        return NO_TIMESTAMP, start, log.epochs.epoch_at(start)
    if timestamp in (LATEST_TIERED_TIMESTAMP, EARLIEST_PENDING_UPLOAD_TIMESTAMP):
        return NO_TIMESTAMP, -1, -1
    found = (
        log.offset_for_max_timestamp() if timestamp == MAX_TIMESTAMP else log.offset_for_timestamp(timestamp)
    )
    if found is None or found.offset >= end_offset:
        return NO_TIMESTAMP, -1, -1
    return found.timestamp, found.offset, found.leader_epoch
