"""OffsetCommit: stores how far a group has read.

3 has throttling; 5 leaves retention to the broker; 6 has leader epochs (KIP-320); 7 knows static members
(KIP-345); 8 is flexible; 9 is for both group protocols (KIP-848); 10 has topic ids instead of names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ottla.model.topics import NO_TOPIC_ID, TopicId
from ottla.protocol.fields import Int16, Int32, Int64, Message, ignorable, since, until


class OffsetCommitRequestPartition(Message):
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, since(6), ignorable] = -1
    committed_metadata: str | None = None


class OffsetCommitRequestTopic(Message):
    name: Annotated[str, until(9), ignorable] = ""
    topic_id: Annotated[TopicId, since(10), ignorable] = NO_TOPIC_ID
    partitions: Sequence[OffsetCommitRequestPartition] = ()


class OffsetCommitRequest(Message, versions=(2, 10), flexible_since=8):
    group_id: str = ""
    generation_id_or_member_epoch: Int32 = -1  # -1 with an empty member id: not a member
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(7)] = None
    retention_time_ms: Annotated[Int64, since(2), until(4), ignorable] = -1  # -1: the broker's
    topics: Sequence[OffsetCommitRequestTopic] = ()


class OffsetCommitResponsePartition(Message):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class OffsetCommitResponseTopic(Message):
    name: Annotated[str, until(9), ignorable] = ""
    topic_id: Annotated[TopicId, since(10), ignorable] = NO_TOPIC_ID
    partitions: Sequence[OffsetCommitResponsePartition] = ()


class OffsetCommitResponse(Message, versions=(2, 10), flexible_since=8):
    throttle_time_ms: Annotated[Int32, since(3), ignorable] = 0
    topics: Sequence[OffsetCommitResponseTopic] = ()
