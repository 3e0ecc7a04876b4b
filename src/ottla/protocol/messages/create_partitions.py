"""CreatePartitions: more partitions for topics that exist.

2 is flexible; 3 may answer THROTTLING_QUOTA_EXCEEDED (KIP-599).
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.fields import Int16, Int32, Message


class CreatePartitionsAssignment(Message):
    broker_ids: Sequence[Int32] = ()


class CreatePartitionsTopic(Message):
    name: str = ""
    count: Int32 = 0  # the new total
    assignments: Sequence[CreatePartitionsAssignment] | None = None  # of the new partitions, in order


class CreatePartitionsRequest(Message, versions=(0, 3), flexible_since=2):
    topics: Sequence[CreatePartitionsTopic] = ()
    timeout_ms: Int32 = 0
    validate_only: bool = False


class CreatePartitionsTopicResult(Message):
    name: str = ""
    error_code: Int16 = 0
    error_message: str | None = None


class CreatePartitionsResponse(Message, versions=(0, 3), flexible_since=2):
    throttle_time_ms: Int32 = 0
    results: Sequence[CreatePartitionsTopicResult] = ()
