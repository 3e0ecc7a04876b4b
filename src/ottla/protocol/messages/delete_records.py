"""DeleteRecords: raises the log start of partitions (KIP-107). 2 is flexible."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.fields import Int16, Int32, Int64, Message


class DeleteRecordsPartition(Message):
    partition_index: Int32 = 0
    offset: Int64 = 0  # -1: the high watermark


class DeleteRecordsTopic(Message):
    name: str = ""
    partitions: Sequence[DeleteRecordsPartition] = ()


class DeleteRecordsRequest(Message, versions=(0, 2), flexible_since=2):
    topics: Sequence[DeleteRecordsTopic] = ()
    timeout_ms: Int32 = 0


class DeleteRecordsPartitionResult(Message):
    partition_index: Int32 = 0
    low_watermark: Int64 = 0
    error_code: Int16 = 0


class DeleteRecordsTopicResult(Message):
    name: str = ""
    partitions: Sequence[DeleteRecordsPartitionResult] = ()


class DeleteRecordsResponse(Message, versions=(0, 2), flexible_since=2):
    throttle_time_ms: Int32 = 0
    topics: Sequence[DeleteRecordsTopicResult] = ()
