"""EndTxn: commit or abort. 3 is flexible, 4 may answer TRANSACTION_ABORTABLE, 5 (KIP-890) gives the producer
the epoch of its next transaction.
"""

from __future__ import annotations

from typing import Annotated

from ottla.protocol.fields import Int16, Int32, Int64, Message, ignorable, since


class EndTxnRequest(Message, versions=(0, 5), flexible_since=3):
    transactional_id: str = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    committed: bool = False


class EndTxnResponse(Message, versions=(0, 5), flexible_since=3):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Annotated[Int64, since(5), ignorable] = -1
    producer_epoch: Annotated[Int16, since(5), ignorable] = -1
