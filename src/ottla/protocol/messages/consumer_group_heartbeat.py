"""ConsumerGroupHeartbeat: all that a member of the new group protocol and its coordinator say (KIP-848).

A request tells what has changed since the last one; null means unchanged. 1 subscribes by regular expression,
and member ids are made by the client.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ottla.model.topics import NO_TOPIC_ID, TopicId
from ottla.protocol.fields import Int16, Int32, Message, since


class TopicPartitions(Message):
    topic_id: TopicId = NO_TOPIC_ID
    partitions: Sequence[Int32] = ()


class ConsumerGroupHeartbeatRequest(Message, versions=(0, 1), flexible_since=0):
    group_id: str = ""
    member_id: str = ""
    member_epoch: Int32 = 0  # 0: joins, -1: leaves, -2: a static member leaves for a while
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: Sequence[str] | None = None
    subscribed_topic_regex: Annotated[str | None, since(1)] = None
    server_assignor: str | None = None
    topic_partitions: Sequence[TopicPartitions] | None = None  # what the member owns


class Assignment(Message):
    topic_partitions: Sequence[TopicPartitions] = ()


class ConsumerGroupHeartbeatResponse(Message, versions=(0, 1), flexible_since=0):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: Assignment | None = None  # null: unchanged
