"""Produce 3-13: append batches. Versions 0 to 2 (older record formats) are refused with an answer.

All Produce requests of a turn are handled together: checked one by one, then appended with one write per
partition. With acks=all the answer is parked until the high watermark has passed the request's records; on a
durable topic that is after the disk has them. With acks=0 there is no answer, and a refused request closes
the connection, which is the only way to tell such a producer.
"""

from __future__ import annotations

import struct
from functools import partial
from typing import TYPE_CHECKING

from ottla.model.errors import CorruptData, ErrorCode, Malformed, Refused
from ottla.model.limits import REQUEST_ELEMENTS_MAX
from ottla.protocol.headers import RequestHeader
from ottla.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from ottla.protocol.primitives import Buffer
from ottla.records.batch import TRANSACTIONAL, BatchHeader, CheckedBatch, check_produced
from ottla.records.content import check_content
from ottla.replica.events import Event
from ottla.replica.partition import Partition
from ottla.security.quotas import Unlimited
from ottla.server.exchange import Exchange
from ottla.server.parking import ParkingKey
from ottla.server.produce_answers import encode_taken
from ottla.server.produce_requests import ProducePart, ProduceTopic, ProduceWork
from ottla.server.transactional_produce import check_transactional, hold_back

if TYPE_CHECKING:
    from ottla.server.services import Services

_ADMIN_CLIENT_ID = "__admin_client"  # of Kafka's tools, which alone may write to internal topics


def handle_turn(exchanges: list[Exchange[ProduceWork]], services: Services) -> None:
    """All Produce requests of a turn. A bug of ours closes their connections; the broker goes on."""
    try:
        for exchange in exchanges:
            if exchange.request.transactional_id is not None:
                exchanges = hold_back(exchanges, services, partial(_go_on, services))
                break
    except Exception as error:
        _fail(exchanges, error)
        return
    _go_on(services, exchanges)


def _go_on(services: Services, exchanges: list[Exchange[ProduceWork]]) -> None:
    """Of requests that nothing holds back any more. No closure may hold them: one that knows itself is
    garbage that only the collector finds, and with it everything that a turn was asked.
    """
    try:
        _handle(exchanges, services)
    except Exception as error:
        _fail(exchanges, error)


def _fail(exchanges: list[Exchange[ProduceWork]], error: Exception) -> None:
    for exchange in exchanges:
        if exchange.chunks is None:
            exchange.fail(error)


def _handle(exchanges: list[Exchange[ProduceWork]], services: Services) -> None:
    now_ms = services.clock.wall_ms()
    by_partition: dict[Partition, list[ProducePart]] = {}
    for exchange in exchanges:
        _check(exchange, services, now_ms, by_partition)
    for partition, parts in by_partition.items():
        _append(partition, parts, now_ms)
    now_us = services.clock.monotonic_us()
    waiting: dict[tuple[Partition, int], SharedWait] = {}
    for exchange in exchanges:
        _finish(exchange, services, now_us, waiting)
    if waiting:
        _park(waiting, services)


# -- checking ------------------------------------------------------------------------------------------------


def _check(
    exchange: Exchange[ProduceWork],
    services: Services,
    now_ms: int,
    by_partition: dict[Partition, list[ProducePart]],
) -> None:
    work = exchange.request
    for topic in work.topics:
        for part in topic.parts:
            try:
                part.partition = partition = _find(exchange, services, topic, part.index)
                part.batch = batch = _check_batch(exchange, partition, part.records, now_ms)
                work.size += batch.size
                same = by_partition.get(partition)
                if same is None:
                    by_partition[partition] = [part]
                else:
                    same.append(part)
            except Refused as refusal:
                part.error = refusal.with_traceback(None)  # which would keep the frame alive
            part.records = None


def _find(exchange: Exchange[ProduceWork], services: Services, topic: ProduceTopic, index: int) -> Partition:
    partitions = services.partitions
    if exchange.version >= 13:
        known = services.controller.image.topics_by_id.get(topic.topic_id)
        if known is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_ID)
        name, partition = known.name, partitions.with_id(topic.topic_id, index)
    else:
        name, partition = topic.name, partitions.named(topic.name, index)
    if not exchange.may(name):
        raise Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if partition is None:
        raise partitions.missing(name, index)
    if partition.is_internal and exchange.client_id != _ADMIN_CLIENT_ID:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{partition.topic} is written by the broker only")
    return partition


def _check_batch(
    exchange: Exchange[ProduceWork], partition: Partition, records: Buffer | None, now_ms: int
) -> CheckedBatch:
    acks = exchange.request.acks
    if not -1 <= acks <= 1:
        raise Refused(ErrorCode.INVALID_REQUIRED_ACKS, f"acks must be 0, 1 or -1 (all), not {acks}")
    if acks == -1:
        partition.check_in_sync()
    batch = check_produced(records, exchange.version, partition.rules, now_ms)
    if batch.attributes & TRANSACTIONAL:
        check_transactional(exchange, exchange.services, partition, batch.header)
    if batch.size > partition.segment_bytes:
        raise Refused(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"the batch has {batch.size} bytes, segment.bytes is {partition.segment_bytes}",
        )
    if partition.look_inside:
        batch = check_content(batch, partition.rules, now_ms)
    return batch


# -- appending -----------------------------------------------------------------------------------------------


def _append(partition: Partition, parts: list[ProducePart], now_ms: int) -> None:
    """In order of arrival, with one write as far as the producers' sequences allow."""
    run: list[ProducePart] = []
    passed: dict[int, BatchHeader] = {}  # each producer's last batch in the run
    for part in parts:
        assert part.batch is not None
        if part.batch.producer_id >= 0:
            header = part.batch.header
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


def _append_run(partition: Partition, run: list[ProducePart], now_ms: int) -> None:
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
        offset += part.batch.record_count
        part.end_offset = offset
        part.batch = None  # the frame's memory is not needed while the answer waits
        if partition.rules.log_append_time:
            part.time_ms = now_ms


def _refuse(run: list[ProducePart], refusal: Refused) -> None:
    for part in run:
        part.error = refusal
        part.batch = None


# -- answering -----------------------------------------------------------------------------------------------


def _finish(
    exchange: Exchange[ProduceWork],
    services: Services,
    now_us: int,
    waiting: dict[tuple[Partition, int], SharedWait],
) -> None:
    work = exchange.request
    acks = work.acks
    unsafe: list[ProducePart] = []
    for topic in work.topics:
        for part in topic.parts:
            if part.error is not None:
                work.is_refused = True
            elif acks == -1 and not _is_safe(part):
                unsafe.append(part)
    if work.is_refused:
        exchange.metrics.errors.value += 1
    if acks == 0:
        _finish_unanswered(exchange, services)
    elif exchange.connection.closed:
        return
    elif not unsafe:
        _answer(exchange, services, now_us)
    elif len(unsafe) == 1:
        part = unsafe[0]
        assert part.partition is not None
        key = (part.partition, work.timeout_ms)
        shared = waiting.get(key)
        if shared is None:
            waiting[key] = shared = SharedWait(services)
        shared.waiting.append((exchange, part))
    else:
        _park_alone(exchange, unsafe, services)


class SharedWait:
    """Requests of one turn that wait for the same partition and equally long: what frees one frees all, so
    that they take one place where requests are parked, and one timer.
    """

    __slots__ = ("services", "waiting")

    def __init__(self, services: Services) -> None:
        self.services = services
        self.waiting: list[tuple[Exchange[ProduceWork], ProducePart]] = []

    def attempt(self) -> bool:
        now_us = self.services.clock.monotonic_us()
        left = []
        for exchange, part in self.waiting:
            if exchange.connection.closed:
                continue
            if _is_safe(part):
                self._answer(exchange, now_us)
            else:
                left.append((exchange, part))
        self.waiting = left
        return not left

    def expire(self) -> None:
        now_us = self.services.clock.monotonic_us()
        for exchange, part in self.waiting:
            if not exchange.connection.closed:
                _note_late(part)
                self._answer(exchange, now_us)

    def _answer(self, exchange: Exchange[ProduceWork], now_us: int) -> None:
        try:
            _answer(exchange, self.services, now_us)
        except Exception as error:  # a bug of ours: the others are answered all the same
            exchange.fail(error)

    def fail(self, error: Exception) -> None:
        _fail([exchange for exchange, _ in self.waiting], error)


def _park(waiting: dict[tuple[Partition, int], SharedWait], services: Services) -> None:
    now_ms = services.clock.monotonic_ms()
    for (partition, timeout_ms), shared in waiting.items():
        key = ParkingKey(partition.topic_id, partition.index, Event.HIGH_WATERMARK)
        deadline_ms = now_ms + max(0, timeout_ms)
        services.parking.park((key,), deadline_ms, shared.attempt, shared.expire, shared.fail)


def _park_alone(exchange: Exchange[ProduceWork], unsafe: list[ProducePart], services: Services) -> None:
    """One that waits for several partitions."""
    keys = []
    for part in unsafe:
        assert part.partition is not None
        keys.append(ParkingKey(part.partition.topic_id, part.partition.index, Event.HIGH_WATERMARK))

    def attempt() -> bool:
        for part in unsafe:
            if not _is_safe(part):
                return False
        _answer(exchange, services, services.clock.monotonic_us())
        return True

    def expire() -> None:
        for part in unsafe:
            _note_late(part)
        _answer(exchange, services, services.clock.monotonic_us())

    deadline_ms = services.clock.monotonic_ms() + max(0, exchange.request.timeout_ms)
    exchange.waiter = services.parking.park(keys, deadline_ms, attempt, expire, exchange.fail)


def _note_late(part: ProducePart) -> None:
    if not _is_safe(part):
        part.error = Refused(ErrorCode.REQUEST_TIMED_OUT, "written, but not known to be safe in time")


def _is_safe(part: ProducePart) -> bool:
    partition = part.partition
    assert partition is not None
    if partition.high_watermark >= part.end_offset:
        return True
    if partition.unavailable is None:
        return False
    part.error = part.error or partition.unavailable
    return True


def _finish_unanswered(exchange: Exchange[ProduceWork], services: Services) -> None:
    for topic in exchange.request.topics:
        for part in topic.parts:
            if part.error is not None:
                services.reactor.drop(exchange.connection, f"Produce with acks=0 was refused, {part.error}")
                return
    if not exchange.abandoned:
        exchange.answer_nothing()
        services.reactor.mute(exchange.connection, _throttle_ms(exchange, services))


def _answer(exchange: Exchange[ProduceWork], services: Services, now_us: int) -> None:
    work = exchange.request
    throttle_ms = _throttle_ms(exchange, services)
    if not _are_taken(work):
        responses = [
            TopicProduceResponse(topic.name, topic.topic_id, [_response(part) for part in topic.parts])
            for topic in work.topics
        ]
        exchange.answer(ProduceResponse(responses, throttle_ms), throttle_ms)
        return
    frame = encode_taken(exchange.version, exchange.correlation_id, work.topics, throttle_ms)
    exchange.answer_with(frame, now_us)
    if throttle_ms:
        services.reactor.mute(exchange.connection, throttle_ms)


def _are_taken(work: ProduceWork) -> bool:
    """Whether no part was refused; then each knows where its partition begins now."""
    for topic in work.topics:
        for part in topic.parts:
            if part.error is not None:
                return False
            assert part.partition is not None
            part.log_start_offset = part.partition.log.log_start_offset
    return True


def _response(part: ProducePart) -> PartitionProduceResponse:
    start = part.partition.log_start_offset if part.partition is not None else -1
    if part.error is not None:
        return PartitionProduceResponse(part.index, part.error.code, -1, -1, start, (), part.error.text)
    return PartitionProduceResponse(part.index, ErrorCode.NONE, part.base_offset, part.time_ms, start)


def _throttle_ms(exchange: Exchange[ProduceWork], services: Services) -> int:
    if type(services.quotas) is Unlimited:
        return 0
    return services.quotas.produced(
        exchange.connection.principal,
        exchange.client_id,
        exchange.request.size,
        services.clock.monotonic_ms(),
    )


# -- versions 0 to 2 -----------------------------------------------------------------------------------------


def refuse_old_version(header: RequestHeader, body: Buffer) -> bytes | None:
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


def _old_request(body: Buffer) -> tuple[int, list[tuple[bytes, list[int]]]]:
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
