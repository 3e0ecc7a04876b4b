"""Requests and responses with their headers: what stands between a frame's length and a message's body.

The header of a request keeps the old string form for the client id even where it is flexible, so that a
broker can read it for versions it does not know.
"""

from __future__ import annotations

import struct

from ottla.model.errors import Malformed
from ottla.model.limits import TAGGED_FIELDS_MAX
from ottla.protocol.apis import APIS, Api
from ottla.protocol.codec import decode, encode
from ottla.protocol.fields import Message
from ottla.protocol.frame_reader import FrameReader
from ottla.protocol.primitives import Buffer, Chunk, chunk_size, skip_tags

try:
    import cython
except ModuleNotFoundError:  # uncompiled, and Cython is not there: its names are only decoration then
    from ottla.model import cython_shim as cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize

_REQUEST_START = struct.Struct(">hhih")  # key, version, correlation id, length of the client id
_REQUEST_PREFIX = struct.Struct(">ihhih")  # the same behind the size
_RESPONSE_PREFIX = struct.Struct(">ii")
_RESPONSE_PREFIX_FLEXIBLE = struct.Struct(">iix")
_CORRELATION_ID = struct.Struct(">i")
_flexible_versions: dict[int, tuple[int, int]] = {}  # by key: the first and the last, once they were needed


class RequestHeader:
    """Compiled its numbers are no objects: one of these is made for every request."""

    __slots__ = ("api_key", "api_version", "client_id", "correlation_id")

    def __init__(self, api_key: int, api_version: int, correlation_id: int, client_id: str | None) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id

    def _fields(self) -> tuple[int, int, int, str | None]:
        return self.api_key, self.api_version, self.correlation_id, self.client_id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RequestHeader) and self._fields() == other._fields()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"RequestHeader{self._fields()}"


def decode_request_header(frame: Buffer) -> tuple[RequestHeader, int]:
    """The header, and where the body starts. Raises `Malformed`.

    For an API or version that is not declared the header is read as if not flexible: enough to answer, or to
    say whom we hang up on, and the body is not looked at anyway.
    """
    reader = FrameReader(frame, 0)
    header = RequestHeader.__new__(RequestHeader)  # field by field: a call would make objects of the numbers
    header.api_key = api_key = reader.int16()
    header.api_version = api_version = reader.int16()
    header.correlation_id = reader.int32()
    header.client_id = reader.nullable_string(False)
    known = _flexible_versions.get(api_key)
    if known is None:
        known = _note_flexible_versions(api_key)
    since, last = known
    reader.no_tags(since <= api_version <= last)
    if reader.is_broken:
        return _decode_unusual_header(frame)
    return header, reader.position


def _note_flexible_versions(api_key: int) -> tuple[int, int]:
    api = APIS.get(api_key)
    if api is None or api.flexible_since is None:
        return 1, 0  # none, and unknown keys are too many to keep
    _flexible_versions[api_key] = (api.flexible_since, api.versions[1])
    return _flexible_versions[api_key]


def _decode_unusual_header(frame: Buffer) -> tuple[RequestHeader, int]:
    """One with tagged fields, or with something wrong, which it says."""
    try:
        api_key, api_version, correlation_id, length = _REQUEST_START.unpack_from(frame)
        position = _REQUEST_START.size
        client_id = None
        if length >= 0:
            end = position + length
            if end > len(frame):
                raise Malformed(f"request header, client_id: {length} bytes do not fit the frame")
            client_id = str(frame[position:end], "utf-8")
            position = end
        elif length != -1:
            raise Malformed(f"request header, client_id: a length of {length} is not valid")
        api = APIS.get(api_key)
        if api is not None and api_version <= api.versions[1] and api.is_flexible(api_version):
            tags = frame[position]
            position += 1
            if tags:
                position, _ = skip_tags(frame, position, tags, TAGGED_FIELDS_MAX)
    except (struct.error, IndexError):
        raise Malformed(f"request header: the frame of {len(frame)} bytes ends within it") from None
    except UnicodeDecodeError:
        raise Malformed("request header, client_id: not UTF-8") from None
    except Malformed:
        raise
    except ValueError as error:
        raise Malformed(f"request header, tagged fields: {error}") from None
    return RequestHeader(api_key, api_version, correlation_id, client_id), position


def encode_request(
    api: Api, version: int, correlation_id: int, client_id: str | None, message: Message
) -> list[Chunk]:
    """The whole frame of a request, its size first."""
    chunks = encode(message, version)
    encoded_id = b"" if client_id is None else client_id.encode()
    tail = encoded_id + b"\0" if api.is_flexible(version) else encoded_id
    size = _REQUEST_START.size + len(tail) + _size_of(chunks)
    id_length = -1 if client_id is None else len(encoded_id)
    prefix = _REQUEST_PREFIX.pack(size, api.key, version, correlation_id, id_length) + tail
    return _behind(prefix, chunks)


def encode_response(api: Api, version: int, correlation_id: int, message: Message) -> list[Chunk]:
    """The whole frame of a response, its size first."""
    return response_around(api, version, correlation_id, encode(message, version))


def response_around(api: Api, version: int, correlation_id: int, chunks: list[Chunk]) -> list[Chunk]:
    """The same for a message that is encoded already. Takes `chunks` over."""
    size = len(chunks[0]) if len(chunks) == 1 and type(chunks[0]) is bytes else _size_of(chunks)
    if api.response_header_version(version):
        return _behind(_RESPONSE_PREFIX_FLEXIBLE.pack(size + 5, correlation_id), chunks)
    return _behind(_RESPONSE_PREFIX.pack(size + 4, correlation_id), chunks)


def with_correlation_id(frame: bytes, correlation_id: int) -> bytes:
    """A copy of a response's frame, for another request."""
    if cython.compiled:
        copy = PyBytes_FromStringAndSize(PyBytes_AS_STRING(frame), len(frame))
        room = cython.cast("unsigned char *", PyBytes_AS_STRING(copy))
        room[4] = correlation_id >> 24 & 0xFF
        room[5] = correlation_id >> 16 & 0xFF
        room[6] = correlation_id >> 8 & 0xFF
        room[7] = correlation_id & 0xFF
        return copy  # type: ignore[no-any-return]
    return frame[:4] + _CORRELATION_ID.pack(correlation_id) + frame[8:]


def decode_response(api: Api, version: int, frame: Buffer) -> tuple[int, Message]:
    """Correlation id and message of a response frame. Raises `Malformed`."""
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        position = _CORRELATION_ID.size
        if api.response_header_version(version):
            position, _ = skip_tags(frame, position + 1, frame[position], TAGGED_FIELDS_MAX)
    except (struct.error, IndexError, ValueError) as error:
        raise Malformed(f"response header of {api.name} v{version}: {error}") from None
    message, _ = decode(api.response, version, frame, position)
    return correlation_id, message


def _size_of(chunks: list[Chunk]) -> int:
    return sum(map(chunk_size, chunks))


def _behind(prefix: bytes, chunks: list[Chunk]) -> list[Chunk]:
    """The chunks with `prefix` before them, as part of the first one where that is no copy of records."""
    if chunks and isinstance(chunks[0], bytes):
        chunks[0] = prefix + chunks[0]  # the list is fresh from the encoder
    else:
        chunks.insert(0, prefix)
    return chunks
