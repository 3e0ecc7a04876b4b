"""DescribeLogDirs: the data directories of a broker, with the sizes of their logs.

2 is flexible; 3 has an error of its own; 4 tells the size of the volume (KIP-827); 5 whether it is cordoned
off (KIP-1066).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ottla.protocol.fields import Int16, Int32, Int64, Message, ignorable, since


class DescribableLogDirTopic(Message):
    topic: str = ""
    partitions: Sequence[Int32] = ()


class DescribeLogDirsRequest(Message, versions=(1, 5), flexible_since=2):
    topics: Sequence[DescribableLogDirTopic] | None = None  # null: all


class DescribeLogDirsPartition(Message):
    partition_index: Int32 = 0
    partition_size: Int64 = 0
    offset_lag: Int64 = 0
    is_future_key: bool = False  # a copy on its way into this directory


class DescribeLogDirsTopic(Message):
    name: str = ""
    partitions: Sequence[DescribeLogDirsPartition] = ()


class DescribeLogDirsResult(Message):
    error_code: Int16 = 0
    log_dir: str = ""
    topics: Sequence[DescribeLogDirsTopic] = ()
    total_bytes: Annotated[Int64, since(4), ignorable] = -1
    usable_bytes: Annotated[Int64, since(4), ignorable] = -1
    is_cordoned: Annotated[bool, since(5), ignorable] = False


class DescribeLogDirsResponse(Message, versions=(1, 5), flexible_since=2):
    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(3), ignorable] = 0
    results: Sequence[DescribeLogDirsResult] = ()
