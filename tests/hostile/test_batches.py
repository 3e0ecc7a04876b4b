"""Produce with batches that lie: refused, the log unchanged, memory within the decompression bound."""

from __future__ import annotations

import random
import struct
import time

import pytest

from hostile.ground import Ground
from hostile.peer import batch_of, batch_with_content, produce_request, request_bytes
from hostile.volley import Fate, Shot, fire
from ottla.model.errors import ErrorCode
from ottla.model.limits import DECOMPRESSED_BYTES_MAX, MIB
from ottla.protocol import apis
from ottla.protocol.headers import decode_response
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.records.compression import Codec, compress

COMPRESSED = pytest.mark.parametrize(
    "codec", [codec for codec in Codec if codec is not Codec.NONE], ids=lambda codec: codec.name.lower()
)
PLAIN, COMPACTED, RECOMPRESSED = "plain", "compacted", "recompressed"
LOOKS_INSIDE = pytest.mark.parametrize("topic", [COMPACTED, RECOMPRESSED])
MEMORY_ABOVE_BOUND_MIB_MAX = 64


@pytest.fixture(scope="module", autouse=True)
def topics(ground_of_each_kernel: Ground) -> None:
    with ground_of_each_kernel.peer() as peer:
        peer.create_topic(PLAIN)
        peer.create_topic(COMPACTED, cleanup_policy="compact")
        peer.create_topic(RECOMPRESSED, compression_type="uncompressed", max_message_bytes=str(2 * MIB))


def _refused(ground: Ground, topic: str, batches: list[bytes]) -> list[int]:
    """Produces each batch on its own; all are answered with an error, and the log stays as it was."""
    with ground.peer() as peer:
        before = peer.end_offset(topic)
        requests = [request_bytes(apis.PRODUCE, 7, produce_request(topic, batch)) for batch in batches]
        fates = fire(ground.address, [Shot(f"batch {at}", each) for at, each in enumerate(requests)])
        assert [shot.label for shot in fates if shot.fate is not Fate.ANSWERED] == []
        codes = []
        for shot in fates:
            _, response = decode_response(apis.PRODUCE, 7, shot.answers[0])
            told = response.responses[0].partition_responses[0]  # type: ignore[attr-defined]
            assert told.error_code != 0, shot.label
            assert told.base_offset == -1
            codes.append(told.error_code)
        assert peer.end_offset(topic) == before
    ground.check_closed([])
    ground.check_log(topic)
    return codes


@pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name.lower())
def test_truncated_batches_are_refused(ground_of_each_kernel: Ground, codec: Codec) -> None:
    batch = batch_of([b"first", b"x" * 60], codec=codec)
    _refused(ground_of_each_kernel, PLAIN, [batch[:size] for size in range(len(batch))])


def test_batches_with_damaged_bits_are_refused(ground_of_each_kernel: Ground) -> None:
    rng = random.Random(5)
    batch = batch_of([b"first", b"x" * 60])
    damaged = []
    for _ in range(300):
        each = bytearray(batch)
        bit = rng.choice([bit for bit in range(len(batch) * 8) if not 12 * 8 <= bit < 16 * 8])  # leader epoch
        each[bit // 8] ^= 1 << bit % 8
        damaged.append(bytes(each))
    _refused(ground_of_each_kernel, PLAIN, damaged)


def _varint(number: int) -> bytes:
    """Zigzag, however large."""
    number = number << 1 if number >= 0 else ((-number) << 1) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _absurd_records() -> list[bytes]:
    """Contents of one record each, none of which can be read."""
    numbers = [-1, -2, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63), 2**63, 2**70]
    contents = []
    for number in numbers:
        absurd = _varint(number)
        contents += [
            absurd,  # length of the record
            _record(b"\0" + absurd),  # timestamp delta, and nothing behind it
            _record(b"\0\0\0" + absurd + b"k"),  # key length
            _record(b"\0\0\0" + _varint(1) + b"k" + absurd),  # value length
            _record(b"\0\0\0" + _varint(1) + b"k" + _varint(1) + b"v" + absurd),  # count of headers
            _record(b"\0\0\0" + _varint(1) + b"k" + _varint(1) + b"v" + _varint(1) + absurd),  # header name
        ]
    contents += [b"\xff" * size for size in (1, 5, 10, 11, 100)]
    contents += [b"\x80" * 10, b"", _record(b""), _record(b"\0" * 5) + b"more"]
    return contents


def _record(body: bytes) -> bytes:
    return _varint(len(body)) + body


@pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name.lower())
@LOOKS_INSIDE
def test_records_with_absurd_numbers_are_refused_where_the_broker_looks_inside(
    ground_of_each_kernel: Ground, topic: str, codec: Codec
) -> None:
    if topic == RECOMPRESSED and codec is Codec.NONE:
        pytest.skip("such a batch is stored as it came, unread")
    contents = [bytes(compress(codec, content)) for content in _absurd_records()]
    batches = [batch_with_content(content, 1, codec=codec) for content in contents]
    codes = _refused(ground_of_each_kernel, topic, batches)
    assert set(codes) == {ErrorCode.INVALID_RECORD}


@pytest.mark.parametrize("count", [2, 1000, 2**31 - 1])
def test_more_records_announced_than_there_are_is_refused(ground_of_each_kernel: Ground, count: int) -> None:
    whole = batch_of([b"only"])[61:]
    _refused(ground_of_each_kernel, COMPACTED, [batch_with_content(whole, count)])


@COMPRESSED
@LOOKS_INSIDE
def test_decompression_bombs_are_refused_within_the_bound(
    ground_of_each_kernel: Ground, topic: str, codec: Codec
) -> None:
    """Half again as large as what we decompress, and in less than a megabyte if the codec can do that."""
    ground = ground_of_each_kernel
    size = DECOMPRESSED_BYTES_MAX * 3 // 2 if codec is not Codec.SNAPPY else 18 * MIB
    bomb = bytes(compress(codec, bytes(size)))
    assert len(bomb) < MIB or codec is Codec.LZ4
    ground.forget_memory_peak()
    before = ground.memory_peak_mib()
    _refused(ground, topic, [batch_with_content(bomb, 1, codec=codec)])
    assert ground.memory_peak_mib() - before < DECOMPRESSED_BYTES_MAX / MIB + MEMORY_ABOVE_BOUND_MIB_MAX
    ground.check_serves(PLAIN)


@COMPRESSED
def test_declared_sizes_are_not_believed(ground_of_each_kernel: Ground, codec: Codec) -> None:
    """A few bytes that say they are terabytes."""
    ground = ground_of_each_kernel
    claims = {
        Codec.GZIP: bytes(compress(Codec.GZIP, b"x" * 100))[:-4] + struct.pack("<I", 2**32 - 1),
        Codec.SNAPPY: b"\xff\xff\xff\xff\x0f" + b"x" * 50,
        Codec.LZ4: b"\x04\x22\x4d\x18\x68\x40" + struct.pack("<Q", 2**40) + b"\0" + b"x" * 50,
        Codec.ZSTD: b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 2**40) + b"x" * 50,
    }
    ground.forget_memory_peak()
    before = ground.memory_peak_mib()
    _refused(ground, COMPACTED, [batch_with_content(bytes(claims[codec]), 1, codec=codec)])
    assert ground.memory_peak_mib() - before < 10


def test_a_bomb_that_was_stored_unread_does_not_go_off_when_times_are_looked_up(
    ground_of_each_kernel: Ground,
) -> None:
    """A plain topic takes it as it came; only a lookup by timestamp would have to look inside."""
    ground = ground_of_each_kernel
    bomb = batch_with_content(
        bytes(compress(Codec.ZSTD, bytes(DECOMPRESSED_BYTES_MAX * 2))), 1, codec=Codec.ZSTD
    )
    now_ms = time.time_ns() // 1_000_000
    asked = ListOffsetsTopic(PLAIN, (ListOffsetsPartition(0, timestamp=now_ms - 60_000),))
    with ground.peer() as peer:
        end = peer.end_offset(PLAIN)
        assert peer.produce(PLAIN, bomb, acks=-1) == (0, end)
        ground.forget_memory_peak()
        before = ground.memory_peak_mib()
        for _ in range(3):
            response = peer.ask(apis.LIST_OFFSETS, 7, ListOffsetsRequest(topics=(asked,)))
            assert response.topics[0].partitions[0].error_code == 0
    assert ground.memory_peak_mib() - before < DECOMPRESSED_BYTES_MAX / MIB + MEMORY_ABOVE_BOUND_MIB_MAX
    ground.check_serves(PLAIN)
