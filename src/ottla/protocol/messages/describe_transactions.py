"""DescribeTransactions: how transactional ids stand with their coordinator (KIP-664)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.fields import Int16, Int32, Int64, Message


class DescribeTransactionsRequest(Message, versions=(0, 0), flexible_since=0):
    transactional_ids: Sequence[str] = ()


class TopicData(Message):
    topic: str = ""
    partitions: Sequence[Int32] = ()


class TransactionState(Message):
    error_code: Int16 = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: Int32 = 0
    transaction_start_time_ms: Int64 = 0
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    topics: Sequence[TopicData] = ()


class DescribeTransactionsResponse(Message, versions=(0, 0), flexible_since=0):
    throttle_time_ms: Int32 = 0
    transaction_states: Sequence[TransactionState] = ()
