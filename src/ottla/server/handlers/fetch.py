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

from ottla.log.file_range import FileRange
from ottla.log.files import NotResident
from ottla.model.clock import monotonic_ms_of
from ottla.model.errors import CorruptData, ErrorCode, Refused
from ottla.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
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
from ottla.server.fetch_answers import Told, encode_told
from ottla.server.fetch_requests import FetchWork, Followed, TopicKey
from ottla.server.fetch_sessions import Fetching
from ottla.server.parking import ParkingKey
from ottla.server.warming import warm

if TYPE_CHECKING:
    from ottla.server.services import Services

_LEADER_MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
_LEADER_TOLD_SINCE = 16
_COLD_TRIES_MAX = 50  # then the owner waits: memory is so short that the request would never be answered


class _Reading:
    """One attempt to answer: what each partition gives now."""

    __slots__ = ("cold", "failed", "size", "told")

    def __init__(self) -> None:
        self.cold: list[FileRange] = []  # what must be read from the disk before this can be said
        self.told: list[Told] = []
        self.size = 0
        self.failed = False  # there is an error or a divergence, which must be told at once


def handle(exchange: Exchange[FetchWork], services: Services) -> FetchResponse | None:
    work = exchange.request
    now_ms = monotonic_ms_of(services.clock)
    try:
        _check_replica(exchange, services)
        fetching = services.fetch_sessions.open(work, exchange.version, now_ms)
    except Refused as refusal:
        return FetchResponse(error_code=refusal.code)
    _serve(exchange, fetching, now_ms + work.wait_ms_max, services)
    return None


def _serve(
    exchange: Exchange[FetchWork], fetching: Fetching, deadline_ms: int, services: Services, tries: int = 0
) -> None:
    """Answers, or waits for more to be there, or has something read from the disk first."""
    reading = _read(exchange, fetching, services, tries == _COLD_TRIES_MAX)
    if reading.cold:
        _read_cold(exchange, fetching, deadline_ms, services, reading.cold, tries + 1)
    elif _is_enough(reading, exchange.request) or monotonic_ms_of(services.clock) >= deadline_ms:
        _answer(exchange, fetching, reading, services)
    else:
        _park(exchange, fetching, deadline_ms, services)


def _check_replica(exchange: Exchange[FetchWork], services: Services) -> None:
    """A fetch in a replica's name needs the cluster's permission (CVE-2018-1288)."""
    work = exchange.request
    if work.replica_id == -1:  # a consumer
        return
    if not services.may(exchange.connection, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        raise Refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def _is_enough(reading: _Reading, work: FetchWork) -> bool:
    return reading.failed or reading.size >= work.bytes_min or work.wait_ms_max <= 0 or not reading.told


# -- reading -------------------------------------------------------------------------------------------------


def _read(
    exchange: Exchange[FetchWork], fetching: Fetching, services: Services, may_wait: bool = False
) -> _Reading:
    work = exchange.request
    reading = _Reading()
    left = min(work.bytes_max, services.fetch_bytes_max)
    for followed in fetching.followed:
        try:
            partition = _find(exchange, followed, services)
            try:
                if may_wait:
                    told = _read_partition(partition, followed, work, left, not reading.size)
                else:
                    with partition.log.without_waiting:
                        told = _read_partition(partition, followed, work, left, not reading.size)
            except NotResident as missing:
                reading.cold.append(missing.file_range)
                continue
            except (OSError, CorruptData) as error:
                raise partition.storage_refusal(error) from error
        except Refused as refusal:
            told = Told(followed, None)
            told.error = refusal
            reading.failed = True
        if told.records is not None:
            reading.size += told.records.size
            left -= told.records.size
        elif told.diverging is not None:
            reading.failed = True
        reading.told.append(told)
    return reading


def _find(exchange: Exchange[FetchWork], followed: Followed, services: Services) -> Partition:
    topic = followed.topic
    partitions = services.partitions
    if isinstance(topic, str):
        name, partition = topic, partitions.named(topic, followed.index)
    else:
        known = services.controller.image.topics_by_id.get(topic)
        if known is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_ID)
        name, partition = known.name, partitions.with_id(topic, followed.index)
    if not exchange.may(name):
        raise Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if partition is None:
        raise partitions.missing(name, followed.index)
    if exchange.request.replica_id >= 0:
        raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{partition} has no such follower")
    return partition


def _read_partition(
    partition: Partition, followed: Followed, work: FetchWork, bytes_left: int, first: bool
) -> Told:
    partition.check_epoch(followed.current_leader_epoch)
    told = Told(followed, partition)
    told.high_watermark = partition.high_watermark
    told.last_stable_offset = partition.last_stable_offset
    told.log_start_offset = partition.log_start_offset
    if followed.last_fetched_epoch >= 0:
        told.diverging = _divergence(partition, followed)
        if told.diverging is not None:
            return told
    offset = followed.fetch_offset
    if not told.log_start_offset <= offset <= partition.log_end_offset:
        raise Refused(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{partition} holds offsets {told.log_start_offset} to {partition.log_end_offset}, not {offset}",
        )
    end_offset = told.last_stable_offset if work.is_committed else told.high_watermark
    if offset < end_offset and (first or bytes_left > 0):
        limit = min(followed.bytes_max, bytes_left)
        told.records = partition.log.read(offset, limit, end_offset, at_least_one=first)
    if work.is_committed:
        told.aborted = ()
        if told.records is not None:
            told.aborted = partition.log.aborted_transactions(offset, told.records)
    return told


def _divergence(partition: Partition, followed: Followed) -> EpochEndOffset | None:
    """KIP-595: where the reader's log and ours part, if they do."""
    epoch, end_offset = partition.log.epoch_end_offset(followed.last_fetched_epoch)
    if epoch < 0:
        raise Refused(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"{partition} knows no leader epoch {followed.last_fetched_epoch}"
        )
    if epoch < followed.last_fetched_epoch or end_offset < followed.fetch_offset:
        return EpochEndOffset(epoch, end_offset)
    return None


# -- waiting -------------------------------------------------------------------------------------------------


def _park(exchange: Exchange[FetchWork], fetching: Fetching, deadline_ms: int, services: Services) -> None:
    work = exchange.request
    event = Event.LAST_STABLE if work.is_committed else Event.HIGH_WATERMARK
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
        elif _is_enough(reading, work):
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
    exchange: Exchange[FetchWork],
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


def _answer(exchange: Exchange[FetchWork], fetching: Fetching, reading: _Reading, services: Services) -> None:
    throttle_ms = 0
    if type(services.quotas) is not Unlimited:
        throttle_ms = services.quotas.fetched(
            exchange.connection.principal, exchange.client_id, reading.size, services.clock.monotonic_ms()
        )
    by_topic: dict[TopicKey, list[Told]] = {}
    for told in reading.told:
        followed = told.followed
        is_news = followed.note(told.error is not None, told.high_watermark, told.log_start_offset)
        if not is_news and told.records is None and told.diverging is None and fetching.incremental:
            continue
        same = by_topic.get(followed.topic)
        if same is None:
            by_topic[followed.topic] = [told]
        else:
            same.append(told)
        if told.records is not None:
            fetching.told_with_data(followed)
            assert told.partition is not None
            told.partition.bytes_out += told.records.size
    if reading.failed:
        exchange.answer(_response(exchange, fetching, by_topic, throttle_ms, services), throttle_ms)
        return
    exchange.answer_chunks(
        encode_told(exchange.version, exchange.correlation_id, throttle_ms, fetching.session_id, by_topic)
    )
    if throttle_ms:
        services.reactor.mute(exchange.connection, throttle_ms)


# -- errors --------------------------------------------------------------------------------------------------


def _response(
    exchange: Exchange[FetchWork],
    fetching: Fetching,
    by_topic: dict[TopicKey, list[Told]],
    throttle_ms: int,
    services: Services,
) -> FetchResponse:
    """With everything that an answer may tell."""
    topics = []
    leaders: set[int] = set()
    for topic, all_told in by_topic.items():
        partitions = [_partition_data(exchange, told, services) for told in all_told]
        leaders.update(each.current_leader.leader_id for each in partitions)
        if isinstance(topic, str):
            topics.append(FetchableTopicResponse(topic=topic, partitions=partitions))
        else:
            topics.append(FetchableTopicResponse(topic_id=topic, partitions=partitions))
    brokers = services.brokers(exchange.connection.listener)
    return FetchResponse(
        throttle_ms,
        ErrorCode.NONE,
        fetching.session_id,
        topics,
        [NodeEndpoint(*broker) for broker in brokers if broker[0] in leaders],
    )


def _partition_data(exchange: Exchange[FetchWork], told: Told, services: Services) -> PartitionData:
    followed = told.followed
    if told.error is not None:
        return PartitionData(
            partition_index=followed.index,
            error_code=told.error.code,
            high_watermark=-1,
            last_stable_offset=-1,
            current_leader=_new_leader(exchange, followed, told.error, services),
            records=b"",
        )
    aborted = None
    if told.aborted is not None:
        aborted = [AbortedTransaction(each.producer_id, each.first_offset) for each in told.aborted]
    return PartitionData(
        partition_index=followed.index,
        high_watermark=told.high_watermark,
        last_stable_offset=told.last_stable_offset,
        log_start_offset=told.log_start_offset,
        diverging_epoch=told.diverging if told.diverging is not None else EpochEndOffset(),
        aborted_transactions=aborted,
        records=told.records if told.records is not None else b"",
    )


def _new_leader(
    exchange: Exchange[FetchWork], followed: Followed, refusal: Refused, services: Services
) -> LeaderIdAndEpoch:
    topic = services.controller.image.topics_by_id.get(followed.topic)  # type: ignore[arg-type]  # id since 13
    if exchange.version < _LEADER_TOLD_SINCE or refusal.code not in _LEADER_MOVED or topic is None:
        return LeaderIdAndEpoch()
    partition = topic.partitions[followed.index]
    return LeaderIdAndEpoch(partition.leader, partition.leader_epoch)
