"""DescribeProducers: what partitions remember of idempotent and transactional producers (KIP-664)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.fields import Int16, Int32, Int64, Message


class TopicRequest(Message):
    name: str = ""
    partition_indexes: Sequence[Int32] = ()


class DescribeProducersRequest(Message, versions=(0, 0), flexible_since=0):
    topics: Sequence[TopicRequest] = ()


class ProducerState(Message):
    producer_id: Int64 = 0
    producer_epoch: Int32 = 0
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32 = 0
    current_txn_start_offset: Int64 = -1


class PartitionResponse(Message):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = None
    active_producers: Sequence[ProducerState] = ()


class TopicResponse(Message):
    name: str = ""
    partitions: Sequence[PartitionResponse] = ()


class DescribeProducersResponse(Message, versions=(0, 0), flexible_since=0):
    throttle_time_ms: Int32 = 0
    topics: Sequence[TopicResponse] = ()
