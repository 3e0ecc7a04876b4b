"""Every kind of field the vocabulary has, also those that no API of today's table uses."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Annotated

import pytest

from ottla.model.errors import Malformed
from ottla.model.topics import NO_TOPIC_ID, TopicId
from ottla.protocol.codec import decode, encode, encode_bytes
from ottla.protocol.fields import (
    NO_UUID,
    Float64,
    Int8,
    Int16,
    Int64,
    Message,
    Records,
    Uint16,
    Uint32,
    Uuid,
    ignorable,
    nullable_since,
    since,
    tagged,
    until,
)
from protocol.naive_codec import naive_encode
from protocol.random_messages import declared_messages, random_message


class Inner(Message):
    number: Int16 = 5
    label: Annotated[str | None, since(1)] = None
    tagged_label: Annotated[str, tagged(3, since=2)] = "x"


class Everything(Message, versions=(0, 3), flexible_since=2):
    flag: bool = False
    int8: Int8 = 0
    uint16: Uint16 = 0
    uint32: Uint32 = 0
    int64: Annotated[Int64, since(1), ignorable] = -1
    float64: Float64 = 1.5
    id: Uuid = NO_UUID
    topic_id: Annotated[TopicId, until(2), ignorable] = NO_TOPIC_ID
    blob: bytes = b""
    nullable_blob: bytes | None = None
    records: Records = None
    inner: Inner = Inner()
    nullable_inner: Annotated[Inner | None, nullable_since(2)] = Inner(number=6)
    ids: Sequence[Uuid] = ()
    flags: Sequence[bool] = ()
    numbers: Annotated[Sequence[Int64] | None, nullable_since(1)] = ()
    strings: Sequence[str] = ()
    blobs: Sequence[bytes] = ()
    inners: Annotated[Sequence[Inner] | None, since(1)] = None
    tagged_blob: Annotated[bytes | None, tagged(0, since=2)] = None
    tagged_ids: Annotated[Sequence[Uuid], tagged(200, since=2)] = ()
    tagged_inner: Annotated[Inner | None, tagged(2, since=3)] = None
    tagged_float: Annotated[Float64, tagged(4, since=2)] = 2.5


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_every_kind_of_field_is_encoded_as_the_guide_says(version: int) -> None:
    for seed in range(300):
        message = random_message(random.Random(seed), Everything, version)
        data = encode_bytes(message, version)
        assert data == naive_encode(message, version)
        decoded, end = decode(Everything, version, data)
        assert end == len(data)
        assert encode_bytes(decoded, version) == data
        if message.float64 == message.float64 and message.tagged_float == message.tagged_float:  # not NaN
            assert decoded == message


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_every_kind_of_field_cut_short_is_malformed(version: int) -> None:
    for seed in range(5):
        data = encode_bytes(random_message(random.Random(seed), Everything, version), version)
        for end in range(len(data)):
            with pytest.raises(Malformed):
                decode(Everything, version, data[:end])


def test_every_declared_message_is_encoded_as_the_guide_says() -> None:
    for message_type, version in declared_messages():
        message = random_message(random.Random(version), message_type, version)
        assert encode_bytes(message, version) == naive_encode(message, version)


def test_ids_in_arrays_must_have_sixteen_bytes() -> None:
    with pytest.raises(ValueError, match="Everything v0, ids: an id has 16 bytes, not 3"):
        encode(Everything(ids=[b"abc"]), 0)


def test_a_struct_may_be_null_only_where_it_is_nullable() -> None:
    assert decode(Everything, 2, encode_bytes(Everything(nullable_inner=None), 2))[0].nullable_inner is None
    with pytest.raises(ValueError, match="Everything v1, nullable_inner"):
        encode(Everything(nullable_inner=None), 1)


def test_a_field_without_a_default_is_refused_at_its_declaration() -> None:
    with pytest.raises(TypeError, match=r"Broken\.number needs a default"):

        class Broken(Message):
            number: Int8  # type: ignore[misc]
