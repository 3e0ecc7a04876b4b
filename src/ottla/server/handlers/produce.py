"""Produce 3-13: append batches. Versions 0 to 2 (older record formats) are refused with an answer.

All Produce requests of a turn are handled together: checked one by one, then appended with one write per
partition. With acks=all the answer is parked until the high watermark has passed the request's records; on a
durable topic that is after the disk has them. With acks=0 there is no answer, and a refused request closes
the connection, which is the only way to tell such a producer.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.model.errors import CorruptData, ErrorCode, Malformed, Refused
from ottla.model.limits import REQUEST_ELEMENTS_MAX
from ottla.model.topics import INTERNAL_TOPICS, TopicId
from ottla.protocol.headers import RequestHeader
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ottla.records.batch import BatchHeader, CheckedBatch, check_produced
from ottla.records.content import check_content
from ottla.replica.events import Event
from ottla.replica.partition import Partition
from ottla.security.quotas import Unlimited
from ottla.server.exchange import Exchange
from ottla.server.parking import ParkingKey
from ottla.server.produce_answers import TakenPart, encode_taken
from ottla.server.transactional_produce import check_transactional, hold_back

if TYPE_CHECKING:
    from ottla.server.services import Services

_ACKS = (-1, 0, 1)
_ADMIN_CLIENT_ID = "__admin_client"  # of Kafka's tools, which alone may write to internal topics


class _Part:
    """One partition's share of one request."""

    __slots__ = ("base_offset", "batch", "end_offset", "error", "index", "partition", "time_ms")

    def __init__(self, index: int) -> None:
        self.index = index
        self.partition: Partition | None = None
        self.batch: CheckedBatch | None = None
        self.error: Refused | None = None
        self.base_offset = -1
        self.end_offset = -1  # the high watermark that acks=all waits for
        self.time_ms = -1  # log append time, where the topic has that

    def taken(self) -> TakenPart:
        assert self.partition is not None
        return self.index, self.base_offset, self.time_ms, self.partition.log_start_offset

    def response(self) -> PartitionProduceResponse:
        start = self.partition.log_start_offset if self.partition is not None else -1
        if self.error is not None:
            return PartitionProduceResponse(self.index, self.error.code, -1, -1, start, (), self.error.text)
        return PartitionProduceResponse(self.index, ErrorCode.NONE, self.base_offset, self.time_ms, start)


class _Request:
    __slots__ = ("exchange", "is_refused", "size", "topics")

    def __init__(self, exchange: Exchange[ProduceRequest]) -> None:
        self.exchange = exchange
        self.size = 0  # bytes of batches that were taken
        self.is_refused = False  # a part of it was, at least
        self.topics: list[tuple[str, TopicId, list[_Part]]] = []  # no part of the frame: it may wait for long


def handle_turn(exchanges: list[Exchange[ProduceRequest]], services: Services) -> None:
    """All Produce requests of a turn. A bug of ours closes their connections; the broker goes on."""

    def go_on(ready: list[Exchange[ProduceRequest]]) -> None:
        _guarded(ready, lambda: _handle(ready, services))

    if any(exchange.request.transactional_id is not None for exchange in exchanges):
        _guarded(exchanges, lambda: _handle(hold_back(exchanges, services, go_on), services))
    else:
        go_on(exchanges)


def _guarded(exchanges: list[Exchange[ProduceRequest]], work: Callable[[], None]) -> None:
    try:
        work()
    except Exception as error:
        for exchange in exchanges:
            if exchange.chunks is None:
                exchange.fail(error)


def _handle(exchanges: list[Exchange[ProduceRequest]], services: Services) -> None:
    now_ms = services.clock.wall_ms()
    by_partition: dict[Partition, list[_Part]] = {}
    requests = [_check(exchange, services, now_ms, by_partition) for exchange in exchanges]
    for partition, parts in by_partition.items():
        _append(partition, parts, now_ms)
    now_us = services.clock.monotonic_us()
    for request in requests:
        _finish(request, services, now_us)


# -- checking ------------------------------------------------------------------------------------------------


def _check(
    exchange: Exchange[ProduceRequest],
    services: Services,
    now_ms: int,
    by_partition: dict[Partition, list[_Part]],
) -> _Request:
    request = _Request(exchange)
    for topic in exchange.request.topic_data:
        parts = []
        for data in topic.partition_data:
            part = _Part(data.index)
            parts.append(part)
            try:
                part.partition = partition = _find(exchange, services, topic, data.index)
                part.batch = batch = _check_batch(exchange, partition, data, now_ms)
                request.size += len(batch.body)
                same = by_partition.get(partition)
                if same is None:
                    by_partition[partition] = [part]
                else:
                    same.append(part)
            except Refused as refusal:
                part.error = refusal.with_traceback(None)  # which would keep the frame alive
        request.topics.append((topic.name, topic.topic_id, parts))
    return request


def _find(
    exchange: Exchange[ProduceRequest], services: Services, topic: TopicProduceData, index: int
) -> Partition:
    if exchange.version >= 13:
        known = services.controller.image.topics_by_id.get(topic.topic_id)
        if known is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_ID)
        name, partition = known.name, services.partitions.with_id(topic.topic_id, index)
    else:
        name, partition = topic.name, services.partitions.named(topic.name, index)
    if not exchange.may(name):
        raise Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if partition is None:
        raise services.partitions.missing(name, index)
    if partition.topic in INTERNAL_TOPICS and exchange.client_id != _ADMIN_CLIENT_ID:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{partition.topic} is written by the broker only")
    return partition


def _check_batch(
    exchange: Exchange[ProduceRequest], partition: Partition, data: PartitionProduceData, now_ms: int
) -> CheckedBatch:
    acks = exchange.request.acks
    if acks not in _ACKS:
        raise Refused(ErrorCode.INVALID_REQUIRED_ACKS, f"acks must be 0, 1 or -1 (all), not {acks}")
    if acks == -1:
        partition.check_in_sync()
    records = data.records
    assert records is None or isinstance(records, memoryview)
    batch = check_produced(records, exchange.version, partition.rules, now_ms)
    if batch.header.is_transactional:
        check_transactional(exchange, exchange.services, partition, batch.header)
    if len(batch.body) > partition.config.segment_bytes:
        raise Refused(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"the batch has {len(batch.body)} bytes, segment.bytes is {partition.config.segment_bytes}",
        )
    if partition.rules.look_inside:
        batch = check_content(batch, partition.rules, now_ms)
    return batch


# -- appending -----------------------------------------------------------------------------------------------


def _append(partition: Partition, parts: list[_Part], now_ms: int) -> None:
    """In order of arrival, with one write as far as the producers' sequences allow."""
    run: list[_Part] = []
    passed: dict[int, BatchHeader] = {}  # each producer's last batch in the run
    for part in parts:
        assert part.batch is not None
        header = part.batch.header
        if header.producer_id >= 0:
            try:
                duplicate = partition.log.producers.check(header, passed.get(header.producer_id))
            except Refused:
                # It may repeat a batch of this very turn: that can only be seen once the run is in.
                _append_run(partition, run, now_ms)
                run, passed = [], {}
                try:
                    duplicate = partition.log.producers.check(header)
                except Refused as refusal:
                    part.error = Refused(refusal.code, refusal.text)  # without the frames of a traceback
                    part.batch = None
                    continue
            if duplicate is not None:
                part.batch = None
                part.base_offset = duplicate.base_offset
                part.end_offset = duplicate.last_offset + 1
                part.time_ms = duplicate.timestamp if partition.rules.log_append_time else -1
                continue
            passed[header.producer_id] = header
        run.append(part)
    _append_run(partition, run, now_ms)


def _append_run(partition: Partition, run: list[_Part], now_ms: int) -> None:
    if not run:
        return
    if partition.unavailable is not None:  # since an earlier run of this turn
        _refuse(run, partition.unavailable)
        return
    try:
        result = partition.append([part.batch for part in run if part.batch is not None], now_ms)
    except (OSError, CorruptData) as error:
        _refuse(run, partition.storage_refusal(error))
        return
    offset = result.first_offset
    for part in run:
        assert part.batch is not None
        part.base_offset = offset
        offset += part.batch.header.record_count
        part.end_offset = offset
        part.batch = None  # the frame's memory is not needed while the answer waits
        if partition.rules.log_append_time:
            part.time_ms = now_ms


def _refuse(run: list[_Part], refusal: Refused) -> None:
    for part in run:
        part.error = refusal
        part.batch = None


# -- answering -----------------------------------------------------------------------------------------------


def _finish(request: _Request, services: Services, now_us: int) -> None:
    exchange = request.exchange
    acks = exchange.request.acks
    waiting = []
    for _, _, parts in request.topics:
        for part in parts:
            if part.error is not None:
                request.is_refused = True
            elif acks == -1 and not _is_safe(part):
                waiting.append(part)
    if request.is_refused:
        exchange.route.metrics.errors.value += 1
    timeout_ms = exchange.request.timeout_ms
    exchange.request = _APPENDED  # the frame must not be kept
    if acks == 0:
        _finish_unanswered(request, services)
    elif exchange.connection.closed:
        return
    elif waiting:
        _park(request, waiting, services.clock.monotonic_ms() + max(0, timeout_ms), services)
    else:
        _answer(request, services, now_us)


def _park(request: _Request, waiting: list[_Part], deadline_ms: int, services: Services) -> None:
    keys = []
    for part in waiting:
        assert part.partition is not None
        keys.append(ParkingKey(part.partition.topic_id, part.partition.index, Event.HIGH_WATERMARK))

    def attempt() -> bool:
        for part in waiting:
            if not _is_safe(part):
                return False
        _answer(request, services, services.clock.monotonic_us())
        return True

    def expire() -> None:
        for part in waiting:
            if not _is_safe(part):
                part.error = Refused(ErrorCode.REQUEST_TIMED_OUT, "written, but not known to be safe in time")
        _answer(request, services, services.clock.monotonic_us())

    exchange = request.exchange
    exchange.waiter = services.parking.park(keys, deadline_ms, attempt, expire, exchange.fail)


def _is_safe(part: _Part) -> bool:
    partition = part.partition
    assert partition is not None
    if partition.high_watermark >= part.end_offset:
        return True
    if partition.unavailable is None:
        return False
    part.error = part.error or partition.unavailable
    return True


def _finish_unanswered(request: _Request, services: Services) -> None:
    exchange = request.exchange
    for _, _, parts in request.topics:
        for part in parts:
            if part.error is not None:
                services.reactor.drop(exchange.connection, f"Produce with acks=0 was refused, {part.error}")
                return
    if not exchange.abandoned:
        exchange.answer_nothing()
        services.reactor.mute(exchange.connection, _throttle_ms(request, services))


def _answer(request: _Request, services: Services, now_us: int) -> None:
    exchange = request.exchange
    throttle_ms = _throttle_ms(request, services)
    if any(part.error is not None for _, _, parts in request.topics for part in parts):
        responses = [
            TopicProduceResponse(name, topic_id, [part.response() for part in parts])
            for name, topic_id, parts in request.topics
        ]
        exchange.answer(ProduceResponse(responses, throttle_ms), throttle_ms)
        return
    taken = [(name, topic_id, [part.taken() for part in parts]) for name, topic_id, parts in request.topics]
    exchange.answer_with(encode_taken(exchange.version, exchange.correlation_id, taken, throttle_ms), now_us)
    if throttle_ms:
        services.reactor.mute(exchange.connection, throttle_ms)


def _throttle_ms(request: _Request, services: Services) -> int:
    if type(services.quotas) is Unlimited:
        return 0
    exchange = request.exchange
    return services.quotas.produced(
        exchange.connection.principal, exchange.client_id, request.size, services.clock.monotonic_ms()
    )


_APPENDED = ProduceRequest()  # stands in for a request whose frame must not be kept


# -- versions 0 to 2 -----------------------------------------------------------------------------------------


def refuse_old_version(header: RequestHeader, body: memoryview) -> bytes | None:
    """UNSUPPORTED_VERSION for each partition, in the response format of that version; None for acks=0.

    0 to 2 are the same up to throttle_time_ms (1) and the append time (2).
    """
    try:
        acks, partitions = _old_request(body)
    except (struct.error, UnicodeDecodeError):
        raise Malformed(f"Produce v{header.api_version} ends early") from None
    if acks == 0:
        return None
    out = [struct.pack(">ii", header.correlation_id, len(partitions))]
    for name, indexes in partitions:
        out.append(struct.pack(">h", len(name)) + name + struct.pack(">i", len(indexes)))
        for index in indexes:
            out.append(struct.pack(">ihq", index, ErrorCode.UNSUPPORTED_VERSION, -1))
            if header.api_version >= 2:
                out.append(struct.pack(">q", -1))
    if header.api_version >= 1:
        out.append(struct.pack(">i", 0))
    answer = b"".join(out)
    return struct.pack(">i", len(answer)) + answer


def _old_request(body: memoryview) -> tuple[int, list[tuple[bytes, list[int]]]]:
    acks, _timeout_ms, topic_count = struct.unpack_from(">hii", body)
    position = 10
    left = REQUEST_ELEMENTS_MAX
    topics = []
    for _ in range(topic_count):  # each round reads bytes or raises, so the count alone costs nothing
        (length,) = struct.unpack_from(">h", body, position)
        position += 2
        name = bytes(body[position : position + max(0, length)])
        position += len(name)
        (partition_count,) = struct.unpack_from(">i", body, position)
        position += 4
        left -= 1 + max(0, partition_count)
        if left < 0:
            raise Malformed(f"Produce names more than {REQUEST_ELEMENTS_MAX} topics and partitions")
        indexes = []
        for _ in range(partition_count):
            index, size = struct.unpack_from(">ii", body, position)
            position += 8 + max(0, size)
            indexes.append(index)
        topics.append((name, indexes))
    return acks, topics
