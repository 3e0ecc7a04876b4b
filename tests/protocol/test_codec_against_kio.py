"""Every API at every version writes the bytes that kio writes, and each reads what the other wrote."""

from __future__ import annotations

import random

import pytest

from ottla.protocol.codec import decode, encode_bytes
from ottla.protocol.fields import Message
from protocol.kio_oracle import kio_bytes, kio_message
from protocol.random_messages import declared_messages, random_message

ALL = list(declared_messages())
IDS = [f"{message_type.__name__}-v{version}" for message_type, version in ALL]


def check(message_type: type[Message], version: int, seeds: range) -> None:
    for seed in seeds:
        rng = random.Random(f"{message_type.__name__} {version} {seed}")
        message = random_message(rng, message_type, version)
        data = encode_bytes(message, version)
        assert data == kio_bytes(message, version)
        assert kio_message(message_type, version, data) == message
        for received in (data, memoryview(data)):
            decoded, end = decode(message_type, version, received)
            assert decoded == message
            assert end == len(data)


@pytest.mark.parametrize(("message_type", "version"), ALL, ids=IDS)
def test_bytes_are_those_of_kio(message_type: type[Message], version: int) -> None:
    check(message_type, version, range(15))


@pytest.mark.slow
@pytest.mark.parametrize(("message_type", "version"), ALL, ids=IDS)
def test_bytes_are_those_of_kio_for_many_seeds(message_type: type[Message], version: int) -> None:
    check(message_type, version, range(15, 400))


@pytest.mark.parametrize(("message_type", "version"), ALL, ids=IDS)
def test_defaults_survive_the_wire(message_type: type[Message], version: int) -> None:
    data = encode_bytes(message_type(), version)
    assert decode(message_type, version, data) == (message_type(), len(data))
