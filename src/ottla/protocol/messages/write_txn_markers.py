"""WriteTxnMarkers: a coordinator has the end of a transaction written where its records are. 2 tells by which
rules the transaction was made (KIP-890).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ottla.protocol.fields import Int8, Int16, Int32, Int64, Message, ignorable, since


class WritableTxnMarkerTopic(Message):
    name: str = ""
    partition_indexes: Sequence[Int32] = ()


class WritableTxnMarker(Message):
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    transaction_result: bool = False  # true: commit
    topics: Sequence[WritableTxnMarkerTopic] = ()
    coordinator_epoch: Int32 = 0
    transaction_version: Annotated[Int8, since(2), ignorable] = 0


class WriteTxnMarkersRequest(Message, versions=(1, 2), flexible_since=1):
    markers: Sequence[WritableTxnMarker] = ()


class WritableTxnMarkerPartitionResult(Message):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class WritableTxnMarkerTopicResult(Message):
    name: str = ""
    partitions: Sequence[WritableTxnMarkerPartitionResult] = ()


class WritableTxnMarkerResult(Message):
    producer_id: Int64 = 0
    topics: Sequence[WritableTxnMarkerTopicResult] = ()


class WriteTxnMarkersResponse(Message, versions=(1, 2), flexible_since=1):
    markers: Sequence[WritableTxnMarkerResult] = ()
