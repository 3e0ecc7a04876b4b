"""OffsetForLeaderEpoch: where a leader epoch ends, for followers and consumers that must truncate (KIP-101).

2 checks the current leader epoch (KIP-320); 3 tells followers from consumers; 4 is flexible.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ottla.protocol.fields import Int16, Int32, Int64, Message, ignorable, since


class OffsetForLeaderPartition(Message):
    partition: Int32 = 0
    current_leader_epoch: Int32 = -1
    leader_epoch: Int32 = 0


class OffsetForLeaderTopic(Message):
    topic: str = ""
    partitions: Sequence[OffsetForLeaderPartition] = ()


class OffsetForLeaderEpochRequest(Message, versions=(2, 4), flexible_since=4):
    # -1: a consumer; -2: a debugger, who may see past the high watermark
    replica_id: Annotated[Int32, since(3), ignorable] = -2
    topics: Sequence[OffsetForLeaderTopic] = ()


class EpochEndOffset(Message):
    error_code: Int16 = 0
    partition: Int32 = 0
    leader_epoch: Int32 = -1
    end_offset: Int64 = -1


class OffsetForLeaderTopicResult(Message):
    topic: str = ""
    partitions: Sequence[EpochEndOffset] = ()


class OffsetForLeaderEpochResponse(Message, versions=(2, 4), flexible_since=4):
    throttle_time_ms: Int32 = 0
    topics: Sequence[OffsetForLeaderTopicResult] = ()
