"""Fetch 4-18: batches as they lie in the files, sent from there.

- Consumers read up to the high watermark, with read_committed up to the last stable offset.
- The first partition with data gives at least one whole batch, however large, so nobody starves; `max_bytes`
  and `partition_max_bytes` bound the rest.
- Below `min_bytes` the request is parked until enough has become visible, something failed, or time is up.
- Sessions (7+), leader epochs (9+), divergence (12+) and topic ids (13+) as in KIP-227, 320, 595 and 516;
  from 16 on whoever believes in an old leader is told the new one (KIP-951).
- Indexes and headers that are not in memory are read in a worker first, and so are (by the reactor) records:
  the turn never waits for a disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.log.files import FileRange, NotResident
from ottla.model.errors import CorruptData, ErrorCode, Refused
from ottla.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from ottla.replica.events import Event
from ottla.replica.partition import Partition
from ottla.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from ottla.security.quotas import Unlimited
from ottla.server.exchange import Exchange
from ottla.server.fetch_sessions import Fetching, Followed, TopicKey
from ottla.server.parking import ParkingKey
from ottla.server.warming import warm

if TYPE_CHECKING:
    from ottla.server.services import Services

_READ_COMMITTED = 1
_CONSUMER = -1
_LEADER_MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
_LEADER_TOLD_SINCE = 16
_COLD_TRIES_MAX = 50  # then the owner waits: memory is so short that the request would never be answered


class _Reading:
    """One attempt to answer: what each partition gives now."""

    __slots__ = ("cold", "failed", "followed", "size", "told")

    def __init__(self) -> None:
        self.cold: list[FileRange] = []  # what must be read from the disk before this can be said
        self.followed: list[Followed] = []
        self.told: list[PartitionData] = []
        self.size = 0
        self.failed = False


def handle(exchange: Exchange[FetchRequest], services: Services) -> FetchResponse | None:
    request = exchange.request
    now_ms = services.clock.monotonic_ms()
    try:
        _check_replica(exchange, services)
        fetching = services.fetch_sessions.open(request, exchange.version, now_ms)
    except Refused as refusal:
        return FetchResponse(error_code=refusal.code)
    _serve(exchange, fetching, now_ms + request.max_wait_ms, services)
    return None


def _serve(
    exchange: Exchange[FetchRequest], fetching: Fetching, deadline_ms: int, services: Services, tries: int = 0
) -> None:
    """Answers, or waits for more to be there, or has something read from the disk first."""
    reading = _read(exchange, fetching, services, tries == _COLD_TRIES_MAX)
    if reading.cold:
        _read_cold(exchange, fetching, deadline_ms, services, reading.cold, tries + 1)
    elif _is_enough(reading, exchange.request) or services.clock.monotonic_ms() >= deadline_ms:
        _answer(exchange, fetching, reading, services)
    else:
        _park(exchange, fetching, deadline_ms, services)


def _check_replica(exchange: Exchange[FetchRequest], services: Services) -> None:
    """A fetch in a replica's name needs the cluster's permission (CVE-2018-1288)."""
    replica_id = max(exchange.request.replica_id, exchange.request.replica_state.replica_id)
    if replica_id == _CONSUMER:
        return
    if not services.may(exchange.connection, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        raise Refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def _is_enough(reading: _Reading, request: FetchRequest) -> bool:
    return reading.failed or reading.size >= request.min_bytes or request.max_wait_ms <= 0 or not reading.told


# -- reading -------------------------------------------------------------------------------------------------


def _read(
    exchange: Exchange[FetchRequest], fetching: Fetching, services: Services, may_wait: bool = False
) -> _Reading:
    request = exchange.request
    reading = _Reading()
    left = min(request.max_bytes, services.fetch_bytes_max)
    for followed in fetching.followed:
        try:
            partition = _find(exchange, followed, services)
            try:
                if may_wait:
                    told = _read_partition(partition, followed.asked, request, left, not reading.size)
                else:
                    with partition.log.without_waiting:
                        told = _read_partition(partition, followed.asked, request, left, not reading.size)
            except NotResident as missing:
                reading.cold.append(missing.file_range)
                continue
            except (OSError, CorruptData) as error:
                raise partition.storage_refusal(error) from error
        except Refused as refusal:
            told = _error(exchange, followed, refusal, services)
            reading.failed = True
        if isinstance(told.records, FileRange):
            reading.size += told.records.size
            left -= told.records.size
        elif told.diverging_epoch.epoch >= 0:
            reading.failed = True  # must be told at once
        reading.followed.append(followed)
        reading.told.append(told)
    return reading


def _find(exchange: Exchange[FetchRequest], followed: Followed, services: Services) -> Partition:
    topic = followed.topic
    if isinstance(topic, str):
        name, partition = topic, services.partitions.named(topic, followed.index)
    else:
        known = services.controller.image.topics_by_id.get(topic)
        if known is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_ID)
        name, partition = known.name, services.partitions.with_id(topic, followed.index)
    if not exchange.may(name):
        raise Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if partition is None:
        raise services.partitions.missing(name, followed.index)
    if max(exchange.request.replica_id, exchange.request.replica_state.replica_id) >= 0:
        raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{partition} has no such follower")
    return partition


def _read_partition(
    partition: Partition, asked: FetchPartition, request: FetchRequest, bytes_left: int, first: bool
) -> PartitionData:
    partition.check_epoch(asked.current_leader_epoch)
    log_start = partition.log_start_offset
    if asked.last_fetched_epoch >= 0:
        diverging = _divergence(partition, asked)
        if diverging is not None:
            return PartitionData(
                asked.partition,
                0,
                partition.high_watermark,
                partition.last_stable_offset,
                log_start,
                diverging,
                records=b"",
            )
    if not log_start <= asked.fetch_offset <= partition.log_end_offset:
        raise Refused(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{partition} holds offsets {log_start} to {partition.log_end_offset}, not {asked.fetch_offset}",
        )
    committed = request.isolation_level == _READ_COMMITTED
    end_offset = partition.last_stable_offset if committed else partition.high_watermark
    records = None
    aborted: list[AbortedTransaction] = []
    if asked.fetch_offset < end_offset and (first or bytes_left > 0):
        limit = min(asked.partition_max_bytes, bytes_left)
        records = partition.log.read(asked.fetch_offset, limit, end_offset, at_least_one=first)
        if committed and records is not None:
            aborted = [
                AbortedTransaction(each.producer_id, each.first_offset)
                for each in partition.log.aborted_transactions(asked.fetch_offset, records)
            ]
    return PartitionData(
        partition_index=asked.partition,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable_offset,
        log_start_offset=log_start,
        aborted_transactions=aborted if committed else None,
        records=records if records is not None else b"",
    )


def _divergence(partition: Partition, asked: FetchPartition) -> EpochEndOffset | None:
    """KIP-595: where the reader's log and ours part, if they do."""
    epoch, end_offset = partition.log.epoch_end_offset(asked.last_fetched_epoch)
    if epoch < 0:
        raise Refused(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"{partition} knows no leader epoch {asked.last_fetched_epoch}"
        )
    if epoch < asked.last_fetched_epoch or end_offset < asked.fetch_offset:
        return EpochEndOffset(epoch, end_offset)
    return None


def _error(
    exchange: Exchange[FetchRequest], followed: Followed, refusal: Refused, services: Services
) -> PartitionData:
    leader = LeaderIdAndEpoch()
    topic = services.controller.image.topics_by_id.get(followed.topic)  # type: ignore[arg-type]  # id since 13
    if exchange.version >= _LEADER_TOLD_SINCE and refusal.code in _LEADER_MOVED and topic is not None:
        partition = topic.partitions[followed.index]
        leader = LeaderIdAndEpoch(partition.leader, partition.leader_epoch)
    return PartitionData(
        partition_index=followed.index,
        error_code=refusal.code,
        high_watermark=-1,
        last_stable_offset=-1,
        current_leader=leader,
        records=b"",
    )


# -- waiting -------------------------------------------------------------------------------------------------


def _park(exchange: Exchange[FetchRequest], fetching: Fetching, deadline_ms: int, services: Services) -> None:
    request = exchange.request
    event = Event.LAST_STABLE if request.isolation_level == _READ_COMMITTED else Event.HIGH_WATERMARK
    keys = []
    for followed in fetching.followed:
        topic = followed.topic
        if isinstance(topic, str):
            topic = services.controller.image.topics[topic].id  # known: reading it has just worked
        keys.append(ParkingKey(topic, followed.index, event))

    def attempt() -> bool:
        reading = _read(exchange, fetching, services)
        if reading.cold:
            exchange.waiter = None
            _read_cold(exchange, fetching, deadline_ms, services, reading.cold)
        elif _is_enough(reading, request):
            exchange.waiter = None
            _answer(exchange, fetching, reading, services)
        else:
            return False
        return True

    def expire() -> None:
        exchange.waiter = None
        _serve(exchange, fetching, 0, services)  # now, with whatever is there

    exchange.waiter = services.parking.park(keys, deadline_ms, attempt, expire, exchange.fail)


def _read_cold(
    exchange: Exchange[FetchRequest],
    fetching: Fetching,
    deadline_ms: int,
    services: Services,
    cold: list[FileRange],
    tries: int = 1,
) -> None:
    """A worker brings what is missing into memory; then the request is tried again."""

    def read(error: BaseException | None) -> None:
        if exchange.abandoned:
            return
        try:  # a failed read fails again, and is told for its partition
            _serve(exchange, fetching, deadline_ms, services, tries if error is None else _COLD_TRIES_MAX)
        except Exception as bug:
            exchange.fail(bug)

    services.offload_read(lambda: warm(cold), read)


# -- answering -----------------------------------------------------------------------------------------------


def _answer(
    exchange: Exchange[FetchRequest], fetching: Fetching, reading: _Reading, services: Services
) -> None:
    throttle_ms = 0
    if type(services.quotas) is not Unlimited:
        throttle_ms = services.quotas.fetched(
            exchange.connection.principal, exchange.client_id, reading.size, services.clock.monotonic_ms()
        )
    topics: dict[TopicKey, FetchableTopicResponse] = {}
    for followed, told in zip(reading.followed, reading.told, strict=True):
        if not followed.note(told) and fetching.incremental:
            continue
        topic = topics.get(followed.topic)
        if topic is None:
            topic = topics[followed.topic] = _topic_response(followed.topic)
        partitions = topic.partitions
        assert isinstance(partitions, list)
        partitions.append(told)
        if isinstance(told.records, FileRange):
            fetching.told_with_data(followed)
            _count(followed, told.records.size, services)
    leaders = {told.current_leader.leader_id for told in reading.told} if reading.failed else ()
    brokers = services.brokers(exchange.connection.listener) if leaders else ()
    response = FetchResponse(
        throttle_ms,
        ErrorCode.NONE,
        fetching.session_id,
        list(topics.values()),
        [NodeEndpoint(*broker) for broker in brokers if broker[0] in leaders],
    )
    exchange.answer(response, throttle_ms)


def _count(followed: Followed, size: int, services: Services) -> None:
    topic = followed.topic
    find = services.partitions.named if isinstance(topic, str) else services.partitions.with_id
    partition = find(topic, followed.index)  # type: ignore[arg-type]  # the one for its kind of key
    if partition is not None:
        partition.bytes_out += size


def _topic_response(topic: TopicKey) -> FetchableTopicResponse:
    if isinstance(topic, str):
        return FetchableTopicResponse(topic=topic, partitions=[])
    return FetchableTopicResponse(topic_id=topic, partitions=[])
