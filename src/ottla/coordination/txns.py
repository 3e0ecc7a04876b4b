# mypy: disable-error-code="attr-defined,no-any-return"
"""Transactions: what an accepted operation changes, resolved to plain records, and their bytes in the log.

A transaction holds no condition any more (versions were checked, sequence numbers given): applying it to the
state before it always gives the same state, now and at every recovery.
"""

from __future__ import annotations

import struct

from ottla.coordination.acls import OPEN_ACL, AccessList, decode_acl, encode_acl
from ottla.model.values import NamedTuple

try:
    import cython
except ModuleNotFoundError:  # uncompiled, and Cython is not there: its names are only decoration then
    from ottla.model import cython_shim as cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
    from cython.cimports.libc.string import memcpy
    from cython.cimports.ottla.model._big_endian import put_int, put_long


class Created:
    __slots__ = ("acl", "data", "ephemeral_owner", "path")

    def __init__(
        self, path: str, data: bytes | None, ephemeral_owner: int, acl: AccessList = OPEN_ACL
    ) -> None:
        self.path = path
        self.data = data
        self.ephemeral_owner = ephemeral_owner
        self.acl = acl

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Created)
            and (self.path, self.data, self.acl) == (other.path, other.data, other.acl)
            and self.ephemeral_owner == other.ephemeral_owner
        )


class DataSet:
    __slots__ = ("data", "path")

    def __init__(self, path: str, data: bytes | None) -> None:
        self.path = path
        self.data = data

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DataSet) and (self.path, self.data) == (other.path, other.data)


class Deleted(NamedTuple):
    path: str


class AclSet(NamedTuple):
    path: str
    acl: AccessList


class SessionOpened(NamedTuple):
    session_id: int
    timeout_ms: int
    password: bytes


class SessionClosed(NamedTuple):
    """The ephemeral nodes it owned are deleted by changes of their own."""

    session_id: int


Change = Created | Deleted | DataSet | AclSet | SessionOpened | SessionClosed


class Txn:
    __slots__ = ("changes", "time_ms", "zxid")

    def __init__(self, zxid: int, time_ms: int, changes: tuple[Change, ...]) -> None:
        self.zxid = zxid
        self.time_ms = time_ms
        self.changes = changes

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Txn)
            and (self.zxid, self.time_ms) == (other.zxid, other.time_ms)
            and self.changes == other.changes
        )


def data_set_of(path: str, data: bytes | None) -> DataSet:
    # Field by field, as what every request makes: compiled, a call would make objects of its arguments.
    change = DataSet.__new__(DataSet)
    change.path = path
    change.data = data
    return change


def txn_of(zxid: int, time_ms: int, changes: tuple[Change, ...]) -> Txn:
    txn = Txn.__new__(Txn)
    txn.zxid = zxid
    txn.time_ms = time_ms
    txn.changes = changes
    return txn


_CREATED, _DELETED, _DATA_SET, _ACL_SET, _SESSION_OPENED, _SESSION_CLOSED = range(1, 7)
_NO_DATA = 0xFFFF_FFFF

DURABLE_ZXID = struct.Struct(">Q")
"""In front of a transaction's bytes in the log: the newest zxid known to be durable when it was written."""

_HEAD = struct.Struct(">QqI")  # zxid, time, number of changes
_CHANGE = struct.Struct(
    ">BIIqI"
)  # kind, bytes of path, bytes of data, owner or session, bytes of access list
_TIMEOUT = struct.Struct(">I")


_DATA_SET_HEAD = struct.Struct(">QQqIBIIqI")  # the three above in one, for one change
_DATA_SET_HEAD_BYTES = _DATA_SET_HEAD.size


def encode_record(txn: Txn, durable_zxid: int) -> bytes:
    """As it stands in the log."""
    if len(txn.changes) == 1 and isinstance(txn.changes[0], DataSet):  # nearly always
        return _encode_data_set(txn, txn.changes[0], durable_zxid)
    return DURABLE_ZXID.pack(durable_zxid) + encode_txn(txn)


def encode_txn(txn: Txn) -> bytes:
    parts = [_HEAD.pack(txn.zxid, txn.time_ms, len(txn.changes))]
    for change in txn.changes:
        if isinstance(change, Created):
            acl = encode_acl(change.acl)
            parts += _parts(_CREATED, change.path, change.data, change.ephemeral_owner, acl)
        elif isinstance(change, DataSet):
            parts += _parts(_DATA_SET, change.path, change.data)
        elif isinstance(change, Deleted):
            parts += _parts(_DELETED, change.path)
        elif isinstance(change, AclSet):
            parts += _parts(_ACL_SET, change.path, None, 0, encode_acl(change.acl))
        elif isinstance(change, SessionOpened):
            data = _TIMEOUT.pack(change.timeout_ms) + change.password
            parts += _parts(_SESSION_OPENED, "", data, change.session_id)
        else:
            parts += _parts(_SESSION_CLOSED, "", None, change.session_id)
    return b"".join(parts)


def _encode_data_set(txn: Txn, change: DataSet, durable_zxid: int) -> bytes:
    path, data = change.path.encode(), change.data
    size = _NO_DATA if data is None else len(data)
    if cython.compiled:
        path_bytes, data_bytes = len(path), 0 if data is None else len(data)
        record = PyBytes_FromStringAndSize(cython.NULL, _DATA_SET_HEAD_BYTES + path_bytes + data_bytes)
        p = cython.cast(cython.p_uchar, PyBytes_AS_STRING(record))
        put_long(p, durable_zxid)
        put_long(p + 8, txn.zxid)
        put_long(p + 16, txn.time_ms)
        put_int(p + 24, 1)
        p[28] = _DATA_SET
        put_int(p + 29, path_bytes)
        put_int(p + 33, size)
        put_long(p + 37, 0)
        put_int(p + 45, 0)
        memcpy(p + _DATA_SET_HEAD_BYTES, PyBytes_AS_STRING(path), path_bytes)
        if data is not None:
            memcpy(p + _DATA_SET_HEAD_BYTES + path_bytes, PyBytes_AS_STRING(data), data_bytes)
        return record
    head = _DATA_SET_HEAD.pack(durable_zxid, txn.zxid, txn.time_ms, 1, _DATA_SET, len(path), size, 0, 0)
    return head + path + (data or b"")


def _parts(
    kind: int, path: str, data: bytes | None = None, owner: int = 0, acl: bytes = b""
) -> tuple[bytes, ...]:
    path_bytes = path.encode()
    size = _NO_DATA if data is None else len(data)
    return _CHANGE.pack(kind, len(path_bytes), size, owner, len(acl)), path_bytes, data or b"", acl


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
    kind, path_bytes, data_bytes, owner, acl_bytes = _CHANGE.unpack_from(payload, position)
    path_position = position + _CHANGE.size
    data_position = path_position + path_bytes
    acl_position = data_position + (0 if data_bytes == _NO_DATA else data_bytes)
    end = acl_position + acl_bytes
    if end > len(payload):
        raise ValueError("a transaction ends inside of a change")
    path = payload[path_position:data_position].decode()
    data = None if data_bytes == _NO_DATA else payload[data_position:acl_position]
    if kind == _CREATED:
        return Created(path, data, owner, decode_acl(payload[acl_position:end])), end
    if kind == _DATA_SET:
        return DataSet(path, data), end
    if kind == _DELETED:
        return Deleted(path), end
    if kind == _ACL_SET:
        return AclSet(path, decode_acl(payload[acl_position:end])), end
    if kind == _SESSION_OPENED:
        (timeout_ms,) = _TIMEOUT.unpack_from(data or b"")
        return SessionOpened(owner, timeout_ms, (data or b"")[_TIMEOUT.size :]), end
    if kind == _SESSION_CLOSED:
        return SessionClosed(owner), end
    raise ValueError(f"a transaction holds a change of unknown kind {kind}")
