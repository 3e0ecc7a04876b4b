"""ListTransactions: the transactional ids of a coordinator (KIP-664). 1 filters by duration (KIP-994), 2 by a
pattern (KIP-1152).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ottla.protocol.fields import Int16, Int32, Int64, Message, since


class ListTransactionsRequest(Message, versions=(0, 2), flexible_since=0):
    state_filters: Sequence[str] = ()
    producer_id_filters: Sequence[Int64] = ()
    duration_filter: Annotated[Int64, since(1)] = -1  # ms; negative: all
    transactional_id_pattern: Annotated[str | None, since(2)] = None


class TransactionState(Message):
    transactional_id: str = ""
    producer_id: Int64 = 0
    transaction_state: str = ""


class ListTransactionsResponse(Message, versions=(0, 2), flexible_since=0):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    unknown_state_filters: Sequence[str] = ()
    transaction_states: Sequence[TransactionState] = ()
