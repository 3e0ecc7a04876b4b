"""Control batches that end a transaction: one record, key (int16 version, int16 type), value (int16 version,
int32 coordinator epoch).
"""

from __future__ import annotations

import struct

from ottla.model.values import NamedTuple
from ottla.records.batch import CONTROL, TRANSACTIONAL, CheckedBatch, read_header
from ottla.records.content import Record, build_batch, records_of
from ottla.records.findings import CorruptRecords

_VERSION = 0
_ABORT = 0
_COMMIT = 1


class Marker(NamedTuple):
    is_abort: bool
    coordinator_epoch: int


def read_marker(batch: bytes | memoryview) -> Marker | None:
    """The marker in a control batch; None for other kinds of control records, and for none at all."""
    try:
        record = next(records_of(batch), None)
        if record is None or record.key is None or record.value is None:
            return None
        _, kind = struct.unpack_from(">hh", record.key)
        _, coordinator_epoch = struct.unpack_from(">hi", record.value)
    except (CorruptRecords, struct.error):
        return None
    return Marker(kind == _ABORT, coordinator_epoch) if kind in (_ABORT, _COMMIT) else None


def build_marker(
    producer_id: int, producer_epoch: int, is_commit: bool, coordinator_epoch: int, now_ms: int
) -> CheckedBatch:
    """A control batch that ends the producer's transaction."""
    key = struct.pack(">hh", _VERSION, _COMMIT if is_commit else _ABORT)
    value = struct.pack(">hi", _VERSION, coordinator_epoch)
    batch = build_batch(
        [Record(0, now_ms, key, value)],
        flags=TRANSACTIONAL | CONTROL,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
    return CheckedBatch(read_header(batch), memoryview(batch))
