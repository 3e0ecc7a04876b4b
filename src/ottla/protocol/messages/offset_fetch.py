"""OffsetFetch: how far groups have read.

2 can ask for all topics; 3 has throttling; 5 has leader epochs (KIP-320); 6 is flexible; 7 can insist on
offsets that no open transaction changes (KIP-447); 8 asks for many groups (KIP-709); 9 is for both group
protocols (KIP-848); 10 has topic ids instead of names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ottla.model.topics import NO_TOPIC_ID, TopicId
from ottla.protocol.fields import Int16, Int32, Int64, Message, ignorable, nullable_since, since, until


class OffsetFetchRequestTopic(Message):
    name: str = ""
    partition_indexes: Sequence[Int32] = ()


class OffsetFetchRequestTopics(Message):
    name: Annotated[str, until(9), ignorable] = ""
    topic_id: Annotated[TopicId, since(10), ignorable] = NO_TOPIC_ID
    partition_indexes: Sequence[Int32] = ()


class OffsetFetchRequestGroup(Message):
    group_id: str = ""
    member_id: Annotated[str | None, since(9), ignorable] = None  # of members of the new protocol only
    member_epoch: Annotated[Int32, since(9), ignorable] = -1
    topics: Sequence[OffsetFetchRequestTopics] | None = None  # null: all


class OffsetFetchRequest(Message, versions=(1, 10), flexible_since=6):
    group_id: Annotated[str, until(7)] = ""
    topics: Annotated[Sequence[OffsetFetchRequestTopic] | None, until(7), nullable_since(2)] = ()  # null: all
    groups: Annotated[Sequence[OffsetFetchRequestGroup], since(8)] = ()
    require_stable: Annotated[bool, since(7)] = False


class OffsetFetchResponsePartition(Message):
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, since(5), ignorable] = -1
    metadata: str | None = None
    error_code: Int16 = 0


class OffsetFetchResponseTopic(Message):
    name: str = ""
    partitions: Sequence[OffsetFetchResponsePartition] = ()


class OffsetFetchResponsePartitions(Message):
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Int32 = -1
    metadata: str | None = None
    error_code: Int16 = 0


class OffsetFetchResponseTopics(Message):
    name: Annotated[str, until(9), ignorable] = ""
    topic_id: Annotated[TopicId, since(10), ignorable] = NO_TOPIC_ID
    partitions: Sequence[OffsetFetchResponsePartitions] = ()


class OffsetFetchResponseGroup(Message):
    group_id: str = ""
    topics: Sequence[OffsetFetchResponseTopics] = ()
    error_code: Int16 = 0


class OffsetFetchResponse(Message, versions=(1, 10), flexible_since=6):
    throttle_time_ms: Annotated[Int32, since(3), ignorable] = 0
    topics: Annotated[Sequence[OffsetFetchResponseTopic], until(7)] = ()
    error_code: Annotated[Int16, since(2), until(7), ignorable] = 0
    groups: Annotated[Sequence[OffsetFetchResponseGroup], since(8)] = ()
