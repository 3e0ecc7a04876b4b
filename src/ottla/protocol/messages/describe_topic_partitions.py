"""DescribeTopicPartitions: the partitions of topics page by page (KIP-966)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.model.topics import NO_TOPIC_ID, TopicId
from ottla.protocol.fields import Int16, Int32, Message


class TopicRequest(Message):
    name: str = ""


class Cursor(Message):
    """Where the next page starts."""

    topic_name: str = ""
    partition_index: Int32 = 0


class DescribeTopicPartitionsRequest(Message, versions=(0, 0), flexible_since=0):
    topics: Sequence[TopicRequest] = ()
    response_partition_limit: Int32 = 2000
    cursor: Cursor | None = None


class DescribeTopicPartitionsResponsePartition(Message):
    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = -1
    replica_nodes: Sequence[Int32] = ()
    isr_nodes: Sequence[Int32] = ()
    eligible_leader_replicas: Sequence[Int32] | None = None
    last_known_elr: Sequence[Int32] | None = None
    offline_replicas: Sequence[Int32] = ()


class DescribeTopicPartitionsResponseTopic(Message):
    error_code: Int16 = 0
    name: str | None = None
    topic_id: TopicId = NO_TOPIC_ID
    is_internal: bool = False
    partitions: Sequence[DescribeTopicPartitionsResponsePartition] = ()
    # bits of the operations allowed; least integer: not asked for
    topic_authorized_operations: Int32 = -(2**31)


class DescribeTopicPartitionsResponse(Message, versions=(0, 0), flexible_since=0):
    throttle_time_ms: Int32 = 0
    topics: Sequence[DescribeTopicPartitionsResponseTopic] = ()
    next_cursor: Cursor | None = None
