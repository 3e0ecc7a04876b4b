"""Headers of requests and responses, and whole frames with them."""

from __future__ import annotations

import random
import struct

import pytest
from kio.schema.request_header.v1.header import RequestHeader as KioHeaderV1
from kio.schema.request_header.v2.header import RequestHeader as KioHeaderV2
from kio.serial import entity_reader

from ottla.model.errors import Malformed
from ottla.protocol.apis import API_VERSIONS, APIS, FETCH, METADATA, PRODUCE, Api
from ottla.protocol.codec import decode, encode_bytes
from ottla.protocol.fields import Message
from ottla.protocol.headers import (
    RequestHeader,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from ottla.protocol.messages.api_versions import ApiVersionsResponse
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse
from protocol.random_messages import declared_messages, random_message

ALL = list(declared_messages())
IDS = [f"{message_type.__name__}-v{version}" for message_type, version in ALL]


def joined(chunks: list[object]) -> bytes:
    return b"".join(chunk for chunk in chunks if isinstance(chunk, (bytes, bytearray, memoryview)))


def api_of(message_type: type[Message]) -> Api:
    return next(api for api in APIS.values() if message_type in (api.request, api.response))


@pytest.mark.parametrize(("message_type", "version"), ALL, ids=IDS)
@pytest.mark.parametrize("client_id", ["client-é", "", None])
def test_frames_are_read_back(message_type: type[Message], version: int, client_id: str | None) -> None:
    api = api_of(message_type)
    message = random_message(random.Random(version), message_type, version)
    if message_type is api.response:
        frame = joined(list(encode_response(api, version, 7, message)))
        assert decode_response(api, version, memoryview(frame)[4:]) == (7, message)
    else:
        frame = joined(list(encode_request(api, version, 7, client_id, message)))
        header, position = decode_request_header(memoryview(frame)[4:])
        assert header == RequestHeader(api.key, version, 7, client_id)
        assert decode(message_type, version, memoryview(frame)[4:], position) == (message, len(frame) - 4)
    assert struct.unpack_from(">i", frame) == (len(frame) - 4,)


@pytest.mark.parametrize(("version", "kio_header"), [(8, KioHeaderV1), (9, KioHeaderV2)])
def test_kio_reads_our_request_header(version: int, kio_header: type[object]) -> None:
    frame = joined(list(encode_request(METADATA, version, 12, "me", MetadataRequest())))
    header, size = entity_reader(kio_header)(frame[4:], 0)  # type: ignore[type-var]
    assert (header.request_api_key, header.request_api_version) == (3, version)  # type: ignore[attr-defined]
    assert (header.correlation_id, header.client_id) == (12, "me")  # type: ignore[attr-defined]
    assert frame[4 + size :] == encode_bytes(MetadataRequest(), version)


def test_the_answer_to_api_versions_never_has_a_flexible_header() -> None:
    for version in range(5):
        frame = joined(list(encode_response(API_VERSIONS, version, 1, ApiVersionsResponse())))
        assert frame[8:] == encode_bytes(ApiVersionsResponse(), version)


def test_other_flexible_answers_have_an_empty_tag_section_in_their_header() -> None:
    frame = joined(list(encode_response(METADATA, 9, 1, MetadataResponse())))
    assert frame[8:] == b"\0" + encode_bytes(MetadataResponse(), 9)
    frame = joined(list(encode_response(METADATA, 8, 1, MetadataResponse())))
    assert frame[8:] == encode_bytes(MetadataResponse(), 8)


def test_tagged_fields_of_a_header_are_skipped() -> None:
    start = struct.pack(">hhih", METADATA.key, 9, 5, 1) + b"c"
    tags = b"\x02\x00\x01a\x63\x02bc"
    header, position = decode_request_header(start + tags + b"body")
    assert header == RequestHeader(METADATA.key, 9, 5, "c")
    assert (start + tags + b"body")[position:] == b"body"


@pytest.mark.parametrize(("key", "version"), [(999, 0), (-5, 1), (PRODUCE.key, 99), (API_VERSIONS.key, 77)])
def test_the_header_of_an_unknown_api_or_version_is_read(key: int, version: int) -> None:
    """Enough to answer UNSUPPORTED_VERSION, or to name the peer; the rest may have any form."""
    frame = struct.pack(">hhih", key, version, 5, 2) + b"me" + b"\xff\xff\xff"
    assert decode_request_header(frame)[0] == RequestHeader(key, version, 5, "me")


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        bytes(9),
        struct.pack(">hhih", 3, 1, 5, 3) + b"me",
        struct.pack(">hhih", 3, 1, 5, -2),
        struct.pack(">hhih", 3, 1, 5, 2) + b"\xff\xfe",
        struct.pack(">hhih", 3, 9, 5, 0),
        struct.pack(">hhih", 3, 9, 5, 0) + b"\x01",
        struct.pack(">hhih", 3, 9, 5, 0) + b"\x01\x00\x05ab",
        struct.pack(">hhih", 3, 9, 5, 0) + b"\xff\xff\xff\xff\xff\xff",
        struct.pack(">hhih", 3, 9, 5, 0) + b"\xff\xff\xff\xff\x07",
    ],
)
def test_a_broken_request_header_is_malformed(frame: bytes) -> None:
    for received in (frame, memoryview(frame)):
        with pytest.raises(Malformed, match="request header"):
            decode_request_header(received)


@pytest.mark.parametrize("frame", [b"", bytes(3), bytes(4)])
def test_a_broken_response_header_is_malformed(frame: bytes) -> None:
    with pytest.raises(Malformed):
        decode_response(METADATA, 9, frame)


def test_records_stay_chunks_of_their_own_within_a_frame() -> None:
    large = bytes(1 << 20)
    partition = PartitionData(records=large)
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])
    chunks = encode_response(FETCH, 12, 3, response)
    assert any(chunk is large for chunk in chunks)
    frame = joined(list(chunks))
    assert struct.unpack_from(">i", frame) == (len(frame) - 4,)
