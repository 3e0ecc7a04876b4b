"""Whatever a peer sends, jute gives a record or `Malformed`, and no count makes it work or allocate."""

from __future__ import annotations

import random
import struct

import pytest

from ottla.model.errors import Malformed
from ottla.protocol.zookeeper import headers, multi, records
from ottla.protocol.zookeeper.jute import decode, encode
from ottla.protocol.zookeeper.operations import REQUESTS

LENGTH = struct.Struct(">i")
SAMPLES = [
    records.CreateRequest("/a/b", b"data", [records.Acl(31, "world", "anyone")] * 3, 1),
    records.CreateTtlRequest("/a/b", None, [], 5, 1000),
    records.SetWatches2Request(9, ["/a"], [], ["/b", "/c"], ["/d"], ["/e"]),
    records.SetDataRequest("/a", b"1234", -1),
    records.AuthRequest(0, "digest", b"a:b"),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: type(sample).__name__)
def test_a_record_that_is_cut_short_is_malformed(sample: tuple[object, ...]) -> None:
    data = encode(sample)
    assert decode(type(sample), data) == sample
    for end in range(len(data)):
        with pytest.raises(Malformed, match=type(sample).__name__):
            decode(type(sample), data[:end])


@pytest.mark.parametrize("length", [-2, -(2**31), 2**31 - 1, 100])
def test_lengths_that_cannot_be_are_malformed(length: int) -> None:
    with pytest.raises(Malformed, match=rf"path at byte 4: a length of {length}"):
        decode(records.PathRequest, LENGTH.pack(length) + b"/a")
    with pytest.raises(Malformed, match=f"{length} elements"):
        decode(records.SetAclRequest, encode(records.PathRequest("/a")) + LENGTH.pack(length) + bytes(50))


def test_texts_that_are_not_utf_8_are_malformed() -> None:
    with pytest.raises(Malformed, match="utf-8"):
        decode(records.PathRequest, LENGTH.pack(2) + b"/\xff")


def test_null_texts_and_vectors_are_empty() -> None:
    null = LENGTH.pack(-1)
    assert decode(records.PathRequest, null) == records.PathRequest("")
    assert decode(records.CreateRequest, null * 4) == records.CreateRequest("", None, [], -1)


@pytest.mark.parametrize("seed", range(200))
def test_random_bytes_give_a_record_or_malformed(seed: int) -> None:
    chance = random.Random(seed)
    sample = bytearray(encode(chance.choice(SAMPLES)))
    for _ in range(chance.randrange(1, 6)):
        sample[chance.randrange(len(sample))] = chance.choice([0, 1, 0x7F, 0x80, 0xFF])
    data = bytes(sample) if chance.random() < 0.7 else chance.randbytes(chance.randrange(200))
    for record in {*REQUESTS.values(), headers.ConnectRequest}:
        try:
            decode(record, memoryview(data))
        except Malformed:
            continue
    try:
        multi.decode_multi_request(data, 0, multi.WRITES)
    except Malformed:
        return


def test_a_multi_does_not_nest() -> None:
    nested = encode(multi.MultiHeader(14, False, -1))
    with pytest.raises(Malformed, match="operation 14 in a multi"):
        multi.decode_multi_request(nested, 0, multi.WRITES)
