"""XXH3 with 64 bits, seed 0 and its own secret, for inputs of four bytes or more.

By the specification of xxHash (doc/xxhash_spec.md, "XXH3 Algorithm Overview"). Kafka hashes topics with it.
"""

from __future__ import annotations

import struct

_MASK = 2**64 - 1
_PRIME32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
_PRIME64 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_PRIME_MX1 = 0x165667919E3779F9
_PRIME_MX2 = 0x9FB21C651E98DF25
_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_SECRET_BYTES_MIN = 136  # the part of it that inputs of up to 240 bytes are mixed with
_STRIPE_BYTES = 64
_STRIPES_PER_BLOCK = (len(_SECRET) - _STRIPE_BYTES) // 8
_LANES = struct.Struct("<8Q")


def xxh3_64(data: bytes) -> int:
    length = len(data)
    if length > 240:
        return _hash_long(data)
    if length > 128:
        return _hash_129_to_240(data)
    if length > 16:
        return _hash_17_to_128(data)
    if length > 8:
        return _hash_9_to_16(data)
    assert length >= 4, "shorter inputs are hashed in another way, which nobody needs here"
    return _hash_4_to_8(data)


def _word(data: bytes, position: int) -> int:
    return int.from_bytes(data[position : position + 8], "little")


def _fold(left: int, right: int) -> int:
    """The halves of their product of 128 bits, over each other."""
    product = left * right
    return (product ^ product >> 64) & _MASK


def _avalanche(hashed: int) -> int:
    hashed ^= hashed >> 37
    hashed = hashed * _PRIME_MX1 & _MASK
    return hashed ^ hashed >> 32


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _MASK


def _hash_4_to_8(data: bytes) -> int:
    length = len(data)
    first, last = int.from_bytes(data[:4], "little"), int.from_bytes(data[-4:], "little")
    hashed = (last | first << 32) ^ _word(_SECRET, 8) ^ _word(_SECRET, 16)
    hashed ^= _rotate(hashed, 49) ^ _rotate(hashed, 24)
    hashed = hashed * _PRIME_MX2 & _MASK
    hashed ^= (hashed >> 35) + length
    hashed = hashed * _PRIME_MX2 & _MASK
    return hashed ^ hashed >> 28


def _hash_9_to_16(data: bytes) -> int:
    length = len(data)
    low = _word(data, 0) ^ _word(_SECRET, 24) ^ _word(_SECRET, 32)
    high = _word(data, length - 8) ^ _word(_SECRET, 40) ^ _word(_SECRET, 48)
    swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
    return _avalanche(length + swapped + high + _fold(low, high) & _MASK)


def _mix(data: bytes, position: int, secret_position: int) -> int:
    return _fold(
        _word(data, position) ^ _word(_SECRET, secret_position),
        _word(data, position + 8) ^ _word(_SECRET, secret_position + 8),
    )


def _hash_17_to_128(data: bytes) -> int:
    length = len(data)
    total = length * _PRIME64[0]
    for pair in range((length - 1) // 32 + 1):  # from both ends towards the middle
        total += _mix(data, 16 * pair, 32 * pair)
        total += _mix(data, length - 16 * (pair + 1), 32 * pair + 16)
    return _avalanche(total & _MASK)


def _hash_129_to_240(data: bytes) -> int:
    length = len(data)
    total = length * _PRIME64[0]
    for index in range(8):
        total += _mix(data, 16 * index, 16 * index)
    total = _avalanche(total & _MASK)
    for index in range(8, length // 16):
        total += _mix(data, 16 * index, 16 * (index - 8) + 3)
    total += _mix(data, length - 16, _SECRET_BYTES_MIN - 17)
    return _avalanche(total & _MASK)


def _hash_long(data: bytes) -> int:
    """Eight lanes take in stripes of 64 bytes, and are scrambled after each block of stripes."""
    length = len(data)
    lanes = [
        *(_PRIME32[2], _PRIME64[0], _PRIME64[1], _PRIME64[2]),
        *(_PRIME64[3], _PRIME32[1], _PRIME64[4], _PRIME32[0]),
    ]
    for stripe in range((length - 1) // _STRIPE_BYTES):
        in_block = stripe % _STRIPES_PER_BLOCK
        _accumulate(lanes, data, stripe * _STRIPE_BYTES, 8 * in_block)
        if in_block == _STRIPES_PER_BLOCK - 1:
            _scramble(lanes)
    _accumulate(lanes, data, length - _STRIPE_BYTES, len(_SECRET) - _STRIPE_BYTES - 7)
    total = length * _PRIME64[0]
    for index in range(4):
        position = 11 + 16 * index
        total += _fold(
            lanes[2 * index] ^ _word(_SECRET, position), lanes[2 * index + 1] ^ _word(_SECRET, position + 8)
        )
    return _avalanche(total & _MASK)


def _accumulate(lanes: list[int], data: bytes, position: int, secret_position: int) -> None:
    words = _LANES.unpack_from(data, position)
    secrets = _LANES.unpack_from(_SECRET, secret_position)
    for index, (word, secret) in enumerate(zip(words, secrets, strict=True)):
        keyed = word ^ secret
        lanes[index ^ 1] = lanes[index ^ 1] + word & _MASK
        lanes[index] = lanes[index] + (keyed & 0xFFFFFFFF) * (keyed >> 32) & _MASK


def _scramble(lanes: list[int]) -> None:
    secrets = _LANES.unpack_from(_SECRET, len(_SECRET) - _STRIPE_BYTES)
    for index, (lane, secret) in enumerate(zip(lanes, secrets, strict=True)):
        lanes[index] = (lane ^ lane >> 47 ^ secret) * _PRIME32[0] & _MASK
