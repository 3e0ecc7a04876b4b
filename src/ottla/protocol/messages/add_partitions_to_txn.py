"""AddPartitionsToTxn: partitions become part of a transaction, before they are written to.

3 is flexible. Up to 3 clients send it, for one transaction. From 4 on brokers do, for many at once; with
`verify_only` they ask whether a partition is part of the transaction already (KIP-890). 5 may answer
TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ottla.protocol.fields import Int16, Int32, Int64, Message, ignorable, since, until


class AddPartitionsToTxnTopic(Message):
    name: str = ""
    partitions: Sequence[Int32] = ()


class AddPartitionsToTxnTransaction(Message):
    transactional_id: str = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    verify_only: bool = False
    topics: Sequence[AddPartitionsToTxnTopic] = ()


class AddPartitionsToTxnRequest(Message, versions=(0, 5), flexible_since=3):
    transactions: Annotated[Sequence[AddPartitionsToTxnTransaction], since(4)] = ()
    v3_and_below_transactional_id: Annotated[str, until(3)] = ""
    v3_and_below_producer_id: Annotated[Int64, until(3)] = 0
    v3_and_below_producer_epoch: Annotated[Int16, until(3)] = 0
    v3_and_below_topics: Annotated[Sequence[AddPartitionsToTxnTopic], until(3)] = ()


class AddPartitionsToTxnPartitionResult(Message):
    partition_index: Int32 = 0
    partition_error_code: Int16 = 0


class AddPartitionsToTxnTopicResult(Message):
    name: str = ""
    results_by_partition: Sequence[AddPartitionsToTxnPartitionResult] = ()


class AddPartitionsToTxnResult(Message):
    transactional_id: str = ""
    topic_results: Sequence[AddPartitionsToTxnTopicResult] = ()


class AddPartitionsToTxnResponse(Message, versions=(0, 5), flexible_since=3):
    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(4), ignorable] = 0
    results_by_transaction: Annotated[Sequence[AddPartitionsToTxnResult], since(4)] = ()
    results_by_topic_v3_and_below: Annotated[Sequence[AddPartitionsToTxnTopicResult], until(3)] = ()
