"""ListOffsets: the offset that belongs to a timestamp, or to one of the special ones of `model.offsets`.

2 has isolation levels; 4 checks leader epochs; 6 is flexible; 7 to 9 and 11 bring new special timestamps
(KIP-734, KIP-405, KIP-1005, KIP-1023); 10 has a time limit for answers from tiered storage (KIP-1075).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ottla.protocol.fields import Int8, Int16, Int32, Int64, Message, ignorable, since


class ListOffsetsPartition(Message):
    partition_index: Int32 = 0
    current_leader_epoch: Annotated[Int32, since(4), ignorable] = -1
    timestamp: Int64 = 0


class ListOffsetsTopic(Message):
    name: str = ""
    partitions: Sequence[ListOffsetsPartition] = ()


class ListOffsetsRequest(Message, versions=(1, 11), flexible_since=6):
    replica_id: Int32 = 0  # -1: a consumer
    isolation_level: Annotated[Int8, since(2)] = 0
    topics: Sequence[ListOffsetsTopic] = ()
    timeout_ms: Annotated[Int32, since(10), ignorable] = 0


class ListOffsetsPartitionResponse(Message):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    timestamp: Int64 = -1
    offset: Int64 = -1
    leader_epoch: Annotated[Int32, since(4)] = -1


class ListOffsetsTopicResponse(Message):
    name: str = ""
    partitions: Sequence[ListOffsetsPartitionResponse] = ()


class ListOffsetsResponse(Message, versions=(1, 11), flexible_since=6):
    throttle_time_ms: Annotated[Int32, since(2), ignorable] = 0
    topics: Sequence[ListOffsetsTopicResponse] = ()
