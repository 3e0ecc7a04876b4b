"""InitProducerId: a producer id and epoch, for idempotence and transactions.

2 is flexible; 3 raises the epoch of a known id (KIP-360); 4 may answer PRODUCER_FENCED; 5
TRANSACTION_ABORTABLE (KIP-890); 6 has two-phase commit (KIP-939).
"""

from __future__ import annotations

from typing import Annotated

from ottla.protocol.fields import Int16, Int32, Int64, Message, since


class InitProducerIdRequest(Message, versions=(0, 6), flexible_since=2):
    transactional_id: str | None = None  # null: idempotence only
    transaction_timeout_ms: Int32 = 0
    producer_id: Annotated[Int64, since(3)] = -1
    producer_epoch: Annotated[Int16, since(3)] = -1
    enable_2pc: Annotated[bool, since(6)] = False
    keep_prepared_txn: Annotated[bool, since(6)] = False


class InitProducerIdResponse(Message, versions=(0, 6), flexible_since=2):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = -1
    producer_epoch: Int16 = 0
    ongoing_txn_producer_id: Annotated[Int64, since(6)] = -1
    ongoing_txn_producer_epoch: Annotated[Int16, since(6)] = -1
