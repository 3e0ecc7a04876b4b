"""AddOffsetsToTxn: the offsets of a group become part of a transaction. 3 is flexible, 4 may answer
TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from ottla.protocol.fields import Int16, Int32, Int64, Message


class AddOffsetsToTxnRequest(Message, versions=(0, 4), flexible_since=3):
    transactional_id: str = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    group_id: str = ""


class AddOffsetsToTxnResponse(Message, versions=(0, 4), flexible_since=3):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
