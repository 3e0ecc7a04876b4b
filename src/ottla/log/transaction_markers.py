"""Control batches that end a transaction: one record, key (int16 version, int16 type), value (int16 version,
int32 coordinator epoch).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from ottla.records.content import records_of
from ottla.records.findings import CorruptRecords

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
