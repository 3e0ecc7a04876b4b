"""Transactions: what an accepted operation changes, resolved to plain records, and their bytes in the log.

A transaction holds no condition any more (versions were checked, sequence numbers given): applying it to the
state before it always gives the same state, now and at every recovery.
"""

from __future__ import annotations

import struct
from typing import NamedTuple


class Created(NamedTuple):
    path: str
    data: bytes | None
    ephemeral_owner: int


class Deleted(NamedTuple):
    path: str


class DataSet(NamedTuple):
    path: str
    data: bytes | None


Change = Created | Deleted | DataSet


class Txn(NamedTuple):
    zxid: int
    time_ms: int
    changes: tuple[Change, ...]


_CREATED, _DELETED, _DATA_SET = 1, 2, 3
_NO_DATA = 0xFFFF_FFFF

_HEAD = struct.Struct(">QqI")  # zxid, time, number of changes
_CHANGE = struct.Struct(">BHIQ")  # kind, bytes of path, bytes of data, ephemeral owner


def encode_txn(txn: Txn) -> bytes:
    parts = [_HEAD.pack(txn.zxid, txn.time_ms, len(txn.changes))]
    pack = _CHANGE.pack
    for change in txn.changes:
        path = change.path.encode()
        if isinstance(change, Created):
            data = change.data
            size = _NO_DATA if data is None else len(data)
            parts += (pack(_CREATED, len(path), size, change.ephemeral_owner), path, data or b"")
        elif isinstance(change, DataSet):
            data = change.data
            size = _NO_DATA if data is None else len(data)
            parts += (pack(_DATA_SET, len(path), size, 0), path, data or b"")
        else:
            parts += (pack(_DELETED, len(path), _NO_DATA, 0), path)
    return b"".join(parts)


def decode_txn(payload: bytes) -> Txn:
    """ValueError when the bytes are not what `encode_txn` writes."""
    try:
        zxid, time_ms, count = _HEAD.unpack_from(payload)
        position = _HEAD.size
        changes: list[Change] = []
        for _ in range(count):
            change, position = _decode_change(payload, position)
            changes.append(change)
    except struct.error as error:
        raise ValueError(f"a transaction ends too early: {error}") from None
    if position != len(payload):
        raise ValueError(f"{len(payload) - position} bytes follow a transaction")
    return Txn(zxid, time_ms, tuple(changes))


def _decode_change(payload: bytes, position: int) -> tuple[Change, int]:
    kind, path_bytes, data_bytes, owner = _CHANGE.unpack_from(payload, position)
    path_position = position + _CHANGE.size
    data_position = path_position + path_bytes
    end = data_position + (0 if data_bytes == _NO_DATA else data_bytes)
    if end > len(payload):
        raise ValueError("a transaction ends inside of a change")
    path = payload[path_position:data_position].decode()
    data = None if data_bytes == _NO_DATA else payload[data_position:end]
    if kind == _CREATED:
        return Created(path, data, owner), end
    if kind == _DATA_SET:
        return DataSet(path, data), end
    if kind == _DELETED:
        return Deleted(path), end
    raise ValueError(f"a transaction holds a change of unknown kind {kind}")
