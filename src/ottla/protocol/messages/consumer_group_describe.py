"""ConsumerGroupDescribe: state and members of groups of the new protocol (KIP-848).

1 tells which members speak the classic protocol in a group on its way from one to the other (KIP-1099).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ottla.model.topics import NO_TOPIC_ID, TopicId
from ottla.protocol.fields import Int8, Int16, Int32, Message, ignorable, since


class ConsumerGroupDescribeRequest(Message, versions=(0, 1), flexible_since=0):
    group_ids: Sequence[str] = ()
    include_authorized_operations: bool = False


class TopicPartitions(Message):
    topic_id: TopicId = NO_TOPIC_ID
    topic_name: str = ""
    partitions: Sequence[Int32] = ()


class Assignment(Message):
    topic_partitions: Sequence[TopicPartitions] = ()


class Member(Message):
    member_id: str = ""
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: Int32 = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: Sequence[str] = ()
    subscribed_topic_regex: str | None = None
    assignment: Assignment = Assignment()
    target_assignment: Assignment = Assignment()
    member_type: Annotated[Int8, since(1), ignorable] = -1  # 0: classic, 1: consumer


class DescribedGroup(Message):
    error_code: Int16 = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor_name: str = ""
    members: Sequence[Member] = ()
    # bits of the operations allowed; least integer: not asked for
    authorized_operations: Int32 = -(2**31)


class ConsumerGroupDescribeResponse(Message, versions=(0, 1), flexible_since=0):
    throttle_time_ms: Int32 = 0
    groups: Sequence[DescribedGroup] = ()
