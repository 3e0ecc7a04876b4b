"""Whatever a peer sends, decoding gives a message or `Malformed`, soon, and in memory bound by its bytes."""

from __future__ import annotations

import random
import re
import struct
import tracemalloc

import pytest

from ottla.model.errors import Malformed
from ottla.model.limits import ARRAY_ELEMENTS_MAX, REQUEST_ELEMENTS_MAX, TAGGED_FIELDS_MAX
from ottla.protocol.apis import APIS, FETCH, METADATA
from ottla.protocol.codec import decode, encode_bytes, is_flexible
from ottla.protocol.fields import Message
from ottla.protocol.headers import decode_request_header, decode_response
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from ottla.protocol.messages.fetch import FetchRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse
from ottla.protocol.messages.produce import ProduceRequest
from ottla.protocol.primitives import write_uvarint
from protocol.random_messages import declared_messages, random_message

ALL = list(declared_messages())
IDS = [f"{message_type.__name__}-v{version}" for message_type, version in ALL]

COUNT_MAX = 2**31 - 1
ALLOCATED_BYTES_MAX = 100_000


def decode_or_refuse(message_type: type[Message], version: int, data: bytes) -> None:
    """Anything but `Malformed` fails the test."""
    try:
        _, end = decode(message_type, version, data)
    except Malformed:
        return
    assert end <= len(data)


def mutate(rng: random.Random, data: bytes) -> bytes:
    mutated = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(mutated)) if mutated else 0
        match rng.randrange(5):
            case 0:
                mutated[at : at + 1] = bytes((rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256))),))
            case 1:
                del mutated[at : at + rng.randint(1, 8)]
            case 2:
                mutated[at:at] = rng.randbytes(rng.randint(1, 8))
            case 3:
                mutated[at : at + 4] = struct.pack(">i", rng.choice((-1, -2, COUNT_MAX, -(2**31))))
            case 4:
                del mutated[at:]
    return bytes(mutated)


def check_mutations(message_type: type[Message], version: int, seeds: range) -> None:
    for seed in seeds:
        rng = random.Random(f"{message_type.__name__} {version} {seed}")
        data = encode_bytes(random_message(rng, message_type, version), version)
        decode_or_refuse(message_type, version, mutate(rng, data))
        decode_or_refuse(message_type, version, rng.randbytes(rng.randrange(60)))


@pytest.mark.parametrize(("message_type", "version"), ALL, ids=IDS)
def test_mutated_and_random_bytes_raise_only_malformed(message_type: type[Message], version: int) -> None:
    check_mutations(message_type, version, range(40))


@pytest.mark.slow
@pytest.mark.parametrize(("message_type", "version"), ALL, ids=IDS)
def test_mutations_of_many_seeds_raise_only_malformed(message_type: type[Message], version: int) -> None:
    check_mutations(message_type, version, range(40, 2_000))


@pytest.mark.parametrize(("message_type", "version"), ALL, ids=IDS)
def test_a_message_cut_anywhere_is_malformed(message_type: type[Message], version: int) -> None:
    rng = random.Random(version)
    data = encode_bytes(random_message(rng, message_type, version), version)
    for end in range(len(data)):
        with pytest.raises(Malformed):
            decode(message_type, version, data[:end])


@pytest.mark.parametrize(("message_type", "version"), ALL, ids=IDS)
def test_bytes_behind_the_message_are_left_to_the_caller(message_type: type[Message], version: int) -> None:
    message = random_message(random.Random(version), message_type, version)
    data = encode_bytes(message, version)
    assert decode(message_type, version, b"head" + data + b"tail", 4) == (message, 4 + len(data))


@pytest.mark.parametrize(
    ("message_type", "version", "head"),
    [
        (MetadataRequest, 0, b""),
        (MetadataRequest, 9, b""),
        (MetadataResponse, 9, bytes(4)),
        (FetchRequest, 4, bytes(17)),
        (FetchRequest, 12, bytes(25)),
        (ProduceRequest, 3, b"\xff\xff" + bytes(6)),
        (ProduceRequest, 9, bytes(7)),
        (ApiVersionsResponse, 0, bytes(2)),
    ],
)
def test_a_count_alone_allocates_nothing(message_type: type[Message], version: int, head: bytes) -> None:
    """2^31-1 elements announced in a few bytes, and as many as a padded frame of zeros could seem to hold."""
    flexible = is_flexible(message_type, version)
    for count, padding in ((COUNT_MAX, 10), (COUNT_MAX, 50_000), (ARRAY_ELEMENTS_MAX + 1, 50_000)):
        prefix = write_uvarint(count + 1) if flexible else struct.pack(">i", count)
        data = head + prefix + bytes(padding)
        decode_or_refuse(message_type, version, data)  # compiles the reader
        tracemalloc.start()
        with pytest.raises(Malformed, match="elements"):
            decode(message_type, version, data)
        assert tracemalloc.get_traced_memory()[1] < ALLOCATED_BYTES_MAX
        tracemalloc.stop()


def test_elements_of_all_arrays_of_a_message_have_one_limit() -> None:
    """Many nested arrays of the smallest elements would else turn a frame into a hundred times its size."""
    names = 30_000
    topic = b"\x02a" + write_uvarint(names + 1) + struct.pack(">i", 1) * names + b"\0"
    data = struct.pack(">iiib", 0, 0, 0, 0) + bytes(8)  # replica id to session epoch
    forgotten = write_uvarint(5) + topic * 4
    body = bytes(4) + data + b"\x01" + forgotten + b"\x01\0"
    with pytest.raises(Malformed, match=r"forgotten_topics_data\.partitions.*more than one message"):
        decode(FetchRequest, 12, body)


@pytest.mark.parametrize("count", [TAGGED_FIELDS_MAX + 1, COUNT_MAX, 2**32 - 1])
def test_too_many_tagged_fields_are_refused_unread(count: int) -> None:
    with_known_tags = (ApiVersionsResponse, 3, bytes(2) + b"\x01" + bytes(4))
    without = (MetadataRequest, 11, b"\x01" + bytes(2))
    for message_type, version, head in (with_known_tags, without):
        with pytest.raises(Malformed, match="tagged fields are more than"):
            decode(message_type, version, head + write_uvarint(count) + bytes(100_000))


def test_tagged_fields_of_all_structs_of_a_message_have_one_limit() -> None:
    """Skipping one takes no memory, but time."""
    topic = b"\x02t" + write_uvarint(TAGGED_FIELDS_MAX) + bytes(2 * TAGGED_FIELDS_MAX)
    topics = REQUEST_ELEMENTS_MAX // TAGGED_FIELDS_MAX
    with pytest.raises(Malformed, match=r"topics at byte .*tagged fields are more than"):
        decode(MetadataRequest, 9, write_uvarint(topics + 1) + topic * topics + bytes(4))


def test_unknown_tagged_fields_are_skipped() -> None:
    tags = b"\x02" + b"\x05\x03abc" + write_uvarint(4000) + b"\x00"
    name = b"\x02x\x02y"
    assert decode(ApiVersionsRequest, 3, name + tags) == (
        ApiVersionsRequest(client_software_name="x", client_software_version="y"),
        len(name + tags),
    )


def test_unknown_tagged_fields_between_known_ones_are_skipped() -> None:
    known = ApiVersionsResponse(finalized_features_epoch=7, zk_migration_ready=True)
    body = bytes(2) + b"\x01" + bytes(4)
    tags = b"\x03" + b"\x01\x08" + struct.pack(">q", 7) + b"\x09\x02??" + b"\x03\x01\x01"
    assert decode(ApiVersionsResponse, 3, body + tags)[0] == known


@pytest.mark.parametrize("length", [7, 9])
def test_a_known_tagged_field_must_have_its_declared_length(length: int) -> None:
    body = bytes(2) + b"\x01" + bytes(4)
    tags = b"\x01" + b"\x01" + bytes((length,)) + bytes(10)
    with pytest.raises(Malformed, match="declared length"):
        decode(ApiVersionsResponse, 3, body + tags)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x80\x80\x80\x80\x80\x01", "longer than 32 bits"),
        (b"\xff\xff\xff\xff\x7f", "longer than 32 bits"),
        (b"\xff\xff\xff\xff\x0f", "longer than 32767"),
        (b"\x00", "a length of -1 is not valid"),
        (b"\x05ab", "a length of 4 is more than the 2 bytes that remain"),
        (b"\x03\xc3\x28", "not UTF-8"),
        (b"\x03\xed\xa0", "not UTF-8"),
        (b"", "the bytes end before the value does"),
    ],
)
def test_the_reason_field_and_place_are_named(data: bytes, reason: str) -> None:
    prefix = b"\x02x"
    expected = f"ApiVersionsRequest v3, client_software_version at byte .*{re.escape(reason)}"
    for received in (prefix + data, memoryview(prefix + data)):
        with pytest.raises(Malformed, match=expected):
            decode(ApiVersionsRequest, 3, received)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (struct.pack(">h", -1), "client_id|a length of -1"),
        (struct.pack(">h", -2), "a length of -2"),
        (struct.pack(">h", 5) + b"abc", "a length of 5 is more than the 3 bytes"),
        (struct.pack(">h", 2) + b"\xff\xfe", "not UTF-8"),
    ],
)
def test_strings_of_the_old_form_are_checked_too(data: bytes, reason: str) -> None:
    with pytest.raises(Malformed, match=f"topics.name at byte 6: .*({reason})"):
        decode(MetadataRequest, 1, struct.pack(">i", 1) + data)


def test_only_minus_one_is_null() -> None:
    assert decode(MetadataRequest, 1, struct.pack(">i", -1))[0].topics is None
    with pytest.raises(Malformed, match="-2 elements"):
        decode(MetadataRequest, 1, struct.pack(">i", -2))
    with pytest.raises(Malformed, match="-1 elements"):
        decode(MetadataRequest, 0, struct.pack(">i", -1))


def test_records_longer_than_the_frame_are_refused() -> None:
    head = struct.pack(">hhii", -1, 1, 1000, 1) + b"\x00\x01t" + struct.pack(">ii", 1, 0)
    for length in (5, COUNT_MAX, -2):
        with pytest.raises(Malformed, match=r"topic_data\.partition_data\.records"):
            decode(ProduceRequest, 3, head + struct.pack(">i", length) + b"four")


def test_a_nullable_struct_is_null_or_there() -> None:
    body = b"\x01" + struct.pack(">i", 10)
    assert decode(DescribeTopicPartitionsRequest, 0, body + b"\xff\0")[0].cursor is None
    cursor = decode(DescribeTopicPartitionsRequest, 0, body + b"\x01\x02t" + bytes(4) + b"\0\0")[0].cursor
    assert cursor is not None
    assert cursor.topic_name == "t"


def check_headers(seeds: range) -> None:
    for seed in seeds:
        rng = random.Random(seed)
        start = struct.pack(">hhi", rng.choice([*APIS, 999, -1]), rng.randint(-2, 20), rng.randrange(2**31))
        for data in (start + rng.randbytes(rng.randrange(30)), rng.randbytes(rng.randrange(30))):
            try:
                header, end = decode_request_header(memoryview(data))
            except Malformed:
                continue
            assert end <= len(data)
            assert header.correlation_id == struct.unpack_from(">i", data, 4)[0]


def test_random_request_headers_raise_only_malformed() -> None:
    check_headers(range(3_000))


@pytest.mark.slow
def test_random_request_headers_of_many_seeds_raise_only_malformed() -> None:
    check_headers(range(3_000, 300_000))


def test_random_responses_raise_only_malformed() -> None:
    for seed in range(1_000):
        data = random.Random(seed).randbytes(seed % 40)
        for api, version in ((METADATA, 9), (FETCH, 4)):
            try:
                decode_response(api, version, data)
            except Malformed:
                continue
