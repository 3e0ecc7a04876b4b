"""What stands in front: lengths of frames, headers of requests and replies, and a connection's first frames.

A connection opens with a ConnectRequest, which has no header; clients before 3.4 leave its last byte out, and
so must the answer to them.
"""

from __future__ import annotations

import struct

from ottla.model.problems import Malformed
from ottla.model.values import NamedTuple
from ottla.protocol.primitives import Buffer
from ottla.protocol.zookeeper.jute import Blob, Int, Long, decode, encode, reader

NOTIFICATION_XID = -1
PING_XID = -2
AUTH_XID = -4
SET_WATCHES_XID = -8
"""Xids that say what a frame is, whatever its operation; those of other requests go up from 1."""

_HEADER = struct.Struct(">ii")
REQUEST_HEADER_BYTES = _HEADER.size
_REPLY = struct.Struct(">iiqi")  # length, xid, zxid, error
_REPLY_BYTES_WITHOUT_LENGTH = _REPLY.size - 4
_LENGTH = struct.Struct(">i")


class ReplyHeader(NamedTuple):
    xid: Int
    zxid: Long  # the newest transaction that the server had applied
    error: Int


class ConnectRequest(NamedTuple):
    protocol_version: Int
    last_zxid_seen: Long
    timeout_ms: Int
    session_id: Long  # 0: a new session
    password: Blob


class ConnectResponse(NamedTuple):
    protocol_version: Int
    timeout_ms: Int  # zero or less: the session has expired
    session_id: Long
    password: Blob


class Opening(NamedTuple):
    request: ConnectRequest
    read_only: bool | None  # may be served by a read-only server; None: the client is too old to say


def decode_connect_request(frame: Buffer) -> Opening:
    request, position = reader(ConnectRequest)(frame, 0)
    if position == len(frame):
        return Opening(request, None)
    return Opening(request, bool(frame[position]))


def encode_connect_request(request: ConnectRequest, read_only: bool = False) -> bytes:
    return frame(encode(request) + bytes((read_only,)))


def decode_connect_response(frame: Buffer) -> ConnectResponse:
    return decode(ConnectResponse, frame)


def encode_connect_response(response: ConnectResponse, with_read_only: bool) -> bytes:
    """In a frame. We are never read-only, so the last byte is 0 for those who expect it."""
    return frame(encode(response) + (b"\0" if with_read_only else b""))


def decode_request_header(frame: Buffer) -> tuple[int, int]:
    """Xid and operation."""
    try:
        return _HEADER.unpack_from(frame)
    except struct.error:
        raise Malformed(f"a request of {len(frame)} bytes has no header") from None


def encode_request(xid: int, operation: int, body: bytes = b"") -> bytes:
    return frame(_HEADER.pack(xid, operation) + body)


def encode_reply(xid: int, zxid: int, error: int, body: bytes = b"") -> bytes:
    """In a frame."""
    return _REPLY.pack(_REPLY_BYTES_WITHOUT_LENGTH + len(body), xid, zxid, error) + body


def frame(content: bytes) -> bytes:
    return _LENGTH.pack(len(content)) + content
