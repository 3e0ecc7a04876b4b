"""TxnOffsetCommit: offsets of a group that count when the transaction commits.

2 has leader epochs; 3 is flexible and tells who in the group commits (KIP-447); 4 may answer
TRANSACTION_ABORTABLE; 5 (KIP-890) needs no AddOffsetsToTxn before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ottla.protocol.fields import Int16, Int32, Int64, Message, ignorable, since


class TxnOffsetCommitRequestPartition(Message):
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, since(2), ignorable] = -1
    committed_metadata: str | None = None


class TxnOffsetCommitRequestTopic(Message):
    name: str = ""
    partitions: Sequence[TxnOffsetCommitRequestPartition] = ()


class TxnOffsetCommitRequest(Message, versions=(0, 5), flexible_since=3):
    transactional_id: str = ""
    group_id: str = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    generation_id: Annotated[Int32, since(3)] = -1
    member_id: Annotated[str, since(3)] = ""
    group_instance_id: Annotated[str | None, since(3)] = None
    topics: Sequence[TxnOffsetCommitRequestTopic] = ()


class TxnOffsetCommitResponsePartition(Message):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class TxnOffsetCommitResponseTopic(Message):
    name: str = ""
    partitions: Sequence[TxnOffsetCommitResponsePartition] = ()


class TxnOffsetCommitResponse(Message, versions=(0, 5), flexible_since=3):
    throttle_time_ms: Int32 = 0
    topics: Sequence[TxnOffsetCommitResponseTopic] = ()
