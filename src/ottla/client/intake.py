"""From what a user gives to `send` to a place in a batch: serialized, measured, its partition chosen. Pure.

The shells (`producer`, `aio`) wait for topics and for room around it, each in its own way. `append` is for
whoever holds the producer's lock.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ottla.client import plugins
from ottla.client.accumulator import (
    Accumulator,
    Batch,
    Headers,
    OnDelivery,
    OnDone,
    checked_headers,
    size_of,
)
from ottla.client.cluster_view import Topic
from ottla.client.errors import ClientError, MessageTooLarge, UnknownPartition, UnknownTopic, broker_error
from ottla.client.interceptors import Interceptors
from ottla.client.metadata import Metadata
from ottla.client.partitioners import Choice, KeyElseSticky, Partitioner, built_in
from ottla.client.serializers import SERIALIZERS, Side
from ottla.client.transactions import Transactions
from ottla.model.config_types import TypedValues
from ottla.model.errors import ErrorCode
from ottla.model.spare_rooms import SpareRooms
from ottla.model.topics import TopicPartition, topic_name_problem
from ottla.records.rows import ANY_PARTITION, EncodedRecords, Group, Rows

PLUGGABLE = ("key.serializer", "value.serializer", "partitioner.class", "interceptor.classes")

_UNKNOWN_TOPIC_ANSWERS = 5  # with the pauses between them more than a second
_TIMESTAMP_END_MS = 2**63 - 1
_ROOMS_KEPT = (
    16  # buffers of delivered batches for rows to come: as many as are in flight, and some that wait
)


class Outgoing:
    __slots__ = ("headers", "key", "key_bytes", "size", "timestamp_ms", "value", "value_bytes")

    def __init__(
        self,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        headers: Headers,
        timestamp_ms: int,
        size: int,
    ) -> None:
        self.key = key
        self.key_bytes = key_bytes
        self.value = value
        self.value_bytes = value_bytes
        self.headers = headers
        self.timestamp_ms = timestamp_ms
        self.size = size  # what it takes of the buffer


class Intake:
    def __init__(
        self,
        plugged: Mapping[str, object],
        configs: Mapping[str, object],
        settings: TypedValues,
        batches: Accumulator,
        metadata: Metadata,
        transactions: Transactions | None,
    ) -> None:
        self.interceptors = Interceptors(
            plugins.resolve_all("interceptor.classes", plugged.get("interceptor.classes"), {}), configs
        )
        self.buffer_bytes = settings.integer("buffer.memory")
        self.batch_bytes_max = min(settings.integer("batch.size"), settings.integer("max.request.size"))
        self.spare_rooms = SpareRooms(_ROOMS_KEPT, self.batch_bytes_max)
        self._record_bytes_max = settings.integer("max.request.size")
        self._key = Side("key.serializer", plugged.get("key.serializer"), SERIALIZERS, configs)
        self._value = Side("value.serializer", plugged.get("value.serializer"), SERIALIZERS, configs)
        self._choice: Choice = KeyElseSticky()
        self._partitioner: Partitioner | None = None  # the user's
        hold_ms = settings.integer("metadata.max.age.ms")
        self._plug_partitioner(plugged.get("partitioner.class"), hold_ms, configs)
        self._batches = batches
        self._metadata = metadata
        self._transactions = transactions
        self._keyless: dict[str, Batch] = {}  # the batch that keyless records of a topic fill

    def _plug_partitioner(self, given: object, hold_ms: int, configs: Mapping[str, object]) -> None:
        found = plugins.resolve("partitioner.class", given or "default", built_in(hold_ms))
        if isinstance(found, Choice):
            self._choice = found
        else:
            self._partitioner = found
            plugins.configure(found, configs)
        self._is_sticky = self._choice.is_sticky

    def close(self) -> None:
        for each in (self._key, self._value, self.interceptors):
            each.close()
        plugins.close(self._partitioner)

    # -- topics --------------------------------------------------------------------------------------------

    def topic(self, name: str) -> Topic | ClientError | None:
        """The topic, or why it cannot be had; None: not known yet."""
        known = self._metadata.view.topics.get(name)
        if known is not None and known.partitions:
            return known
        problem = topic_name_problem(name)
        if problem is not None:
            return broker_error(ErrorCode.INVALID_TOPIC_EXCEPTION, "", problem)
        code = self._metadata.problems.get(name, ErrorCode.NONE)
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            # A broker that has just been told of a new topic knows it soon, or it is not there.
            return UnknownTopic(name) if self._metadata.refusals >= _UNKNOWN_TOPIC_ANSWERS else None
        return None if code in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE) else broker_error(code, name)

    # -- records -------------------------------------------------------------------------------------------

    def prepare(
        self, topic: str, value: Any, key: Any, headers: Headers, timestamp_ms: int | None
    ) -> Outgoing:
        value_bytes = (
            value
            if type(value) is bytes and self._value.plugin is None
            else self._value.serialize(topic, value)
        )
        key_bytes = (
            key if type(key) is bytes and self._key.plugin is None else self._key.serialize(topic, key)
        )
        if headers:
            headers = checked_headers(headers)
        size = size_of(key_bytes, value_bytes, headers)
        if size > self._record_bytes_max:
            raise self._too_large(size)
        if timestamp_ms is None:
            timestamp_ms = time.time_ns() // 1_000_000
        elif not 0 <= timestamp_ms < _TIMESTAMP_END_MS:
            raise ValueError(f"{timestamp_ms} is no timestamp in milliseconds since 1970")
        return Outgoing(key, key_bytes, value, value_bytes, headers, timestamp_ms, size)

    def chosen_by_user(self, topic: str, record: Outgoing) -> int | None:
        """By a partitioner of the user's, if there is one; it runs without the lock."""
        if self._partitioner is None:
            return None
        return self._partitioner.partition(
            topic, record.key, record.key_bytes, record.value, record.value_bytes, self._metadata.view
        )

    def has_room(self, size: int) -> bool:
        return self._batches.bytes + size <= self.buffer_bytes

    def append(
        self,
        known: Topic,
        record: Outgoing,
        partition: int | None,
        now_ms: int,
        on_delivery: OnDelivery | None,
    ) -> tuple[Batch, int]:
        """The batch that took the record, and its number there. Raises where it may not be sent."""
        if self._transactions is not None:
            self._transactions.check_open()
        topic, key = known.name, record.key_bytes
        chosen = self._choose(topic, key, known, now_ms) if partition is None else partition
        if not 0 <= chosen < len(known.partitions):
            raise UnknownPartition(topic, chosen, len(known.partitions))
        batch, index = self._batches.append(
            topic,
            chosen,
            record.timestamp_ms,
            key,
            record.value_bytes,
            record.headers,
            record.size,
            now_ms,
        )
        if on_delivery is not None:
            batch.callbacks.append((index, on_delivery))
        if partition is None and key is None:
            self._keyless[topic] = batch
        return batch, index

    # -- rows ----------------------------------------------------------------------------------------------

    def group(self, known: Topic, rows: Rows, now_ms: int) -> list[Group]:
        """Where the rows go. Raises when one of them cannot become a record, or too large a one."""
        chosen: list[int] | None = None
        if self._partitioner is not None:
            view = self._metadata.view
            chosen = [
                self._partitioner.partition(known.name, key, key, value, value, view)
                for key, value in zip(rows.octets("key"), rows.octets("value"), strict=True)
            ]
        elif not self._choice.is_sticky:  # it has a new thought for each
            chosen = [self._choice.choose(key, known, now_ms) for key in rows.octets("key")]
        groups, largest = rows.group(len(known.partitions), chosen, by_key=self._choice.uses_keys)
        if largest > self._record_bytes_max:
            raise self._too_large(largest)
        return groups

    def enqueue(
        self, known: Topic, partition: int, records: EncodedRecords, now_ms: int, on_done: OnDone | None
    ) -> Batch:
        """A whole batch, which waits as others do. Raises where it may not be sent."""
        if self._transactions is not None:
            self._transactions.check_open()
        goes_anywhere = partition == ANY_PARTITION
        if goes_anywhere:
            partition = self._choose(known.name, None, known, now_ms)
        batch = self._batches.enqueue(TopicPartition(known.name, partition), records, now_ms)
        batch.on_done = on_done
        if goes_anywhere:
            self._keyless[known.name] = batch
        return batch

    def _choose(self, topic: str, key: bytes | None, known: Topic, now_ms: int) -> int:
        if key is None:
            batch = self._keyless.get(topic)
            if batch is not None and not batch.is_open:
                self._choice.batch_ended(topic)
                del self._keyless[topic]
            elif batch is not None and self._is_sticky:
                return batch.lane.target.partition
        return self._choice.choose(key, known, now_ms)

    def _too_large(self, size: int) -> MessageTooLarge:
        return MessageTooLarge(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the record may take {size} bytes, max.request.size is {self._record_bytes_max}",
            "raise max.request.size of the producer and max.message.bytes of the topic, or send less",
        )
