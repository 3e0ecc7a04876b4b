"""`.txnindex`: the aborted transactions that ended in a segment, so that read_committed can leave them out.

Entry, 34 bytes: int16 version (0), int64 producer id, int64 first offset, int64 last offset (the marker's),
int64 last stable offset when it was written. A segment without aborted transactions has no such file.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from ottla.model.errors import CorruptData

_ENTRY = Struct(">hqqqq")
_VERSION = 0


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def encode_aborted(transaction: AbortedTransaction) -> bytes:
    return _ENTRY.pack(_VERSION, *transaction)


def decode_aborted(data: bytes) -> list[AbortedTransaction]:
    if len(data) % _ENTRY.size:
        raise CorruptData(
            f"a transaction index has entries of {_ENTRY.size} bytes, this one {len(data)} bytes"
        )
    transactions = []
    for version, *fields in _ENTRY.iter_unpack(data):
        if version != _VERSION:
            raise CorruptData(f"transaction index entries have version {_VERSION}, this one {version}")
        transactions.append(AbortedTransaction(*fields))
    return transactions
