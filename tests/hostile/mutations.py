"""Seeded damage to sound requests, and requests nobody sends."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from pathlib import Path

from hostile.peer import batch_of, framed, produce_request, request_bytes
from ottla.protocol import apis
from ottla.protocol.apis import APIS, Api
from ottla.protocol.headers import decode_request_header
from protocol.random_messages import random_message

GOLDEN = Path(__file__).parent.parent / "golden"

_NUMBERS = [
    *(struct.pack(">b", number) for number in (-128, -1, 0, 1, 127)),
    *(struct.pack(">h", number) for number in (-(2**15), -2, -1, 0, 1, 2**15 - 1)),
    *(struct.pack(">i", number) for number in (-(2**31), -2, -1, 0, 1, 100_000, 10**6 + 1, 2**30, 2**31 - 1)),
    *(struct.pack(">q", number) for number in (-(2**63), -1, 0, 2**63 - 1)),
    b"\xff\xff\xff\xff\x0f",  # the largest unsigned varint
    b"\x80\x80\x80\x80\x10",  # one that is too large
    b"\xff" * 10,  # one that does not end
    b"\x80\x00",  # zero, in two bytes
]
_TEXTS = [
    b"\xff\xfe",
    b"\x00",
    b"\n2000-01-01 00:00:00,000 ERROR   forged: line",
    b"a" * 300,
    b"../../etc",
    b".",
]


def sound_requests(rng: random.Random, topic: str) -> list[tuple[Api, int, bytes]]:
    """Frames (without length) of every API and version: random ones, those of real clients, and Produce."""
    found = [
        (api, version, request_bytes(api, version, random_message(rng, api.request, version))[4:])
        for api in APIS.values()
        for version in range(api.versions[0], api.versions[1] + 1)
    ]
    for path in sorted(GOLDEN.glob("*/*.hex")):
        frame = bytes.fromhex(path.read_text())
        header, _ = decode_request_header(frame)
        found.append((APIS[header.api_key], header.api_version, frame))
    for version in range(3, 13):
        message = produce_request(topic, batch_of([b"value", b"x" * 40]), acks=1)
        found.append((apis.PRODUCE, version, request_bytes(apis.PRODUCE, version, message)[4:]))
    return found


def mutated(rng: random.Random, frame: bytes) -> bytes:
    """`frame` with a few bytes changed, cut out, put in or doubled."""
    damaged = bytearray(frame)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(damaged) + 1)
        match rng.randrange(6):
            case 0:
                damaged[at : at + 1] = bytes((rng.randrange(256),))
            case 1:
                number = rng.choice(_NUMBERS)
                damaged[at : at + len(number)] = number
            case 2:
                damaged[at:at] = rng.choice((*_NUMBERS, *_TEXTS))
            case 3:
                del damaged[at : at + rng.randint(1, 8)]
            case 4:
                damaged[at:at] = damaged[at : at + rng.randint(1, 64)]
            case 5:
                del damaged[at:]
    return bytes(damaged)


def unknown_requests(rng: random.Random) -> Iterator[tuple[str, bytes]]:
    """Keys and versions that are not served, behind a sound header."""
    for key in [-(2**15), -1, 4, 5, 6, 7, 76, 77, 1000, 2**15 - 1]:
        yield f"API key {key}", _header(key, rng.randint(-1, 20)) + rng.randbytes(20)
    for api in APIS.values():
        for version in (-(2**15), -1, api.versions[1] + 1, 2**15 - 1):
            yield f"{api.name} v{version}", _header(api.key, version) + rng.randbytes(20)
        for version in range(api.versions[0]):
            yield f"{api.name} v{version}", _header(api.key, version) + rng.randbytes(20)


def _header(key: int, version: int) -> bytes:
    return struct.pack(">hhih", key, version, 7, 1) + b"x"


def broken_lengths(rng: random.Random) -> Iterator[tuple[str, bytes]]:
    """Openings that are no frame of ours."""
    for length in (-1, -2, -(2**31), 100 * 1024 * 1024 + 1, 2**31 - 1):
        yield f"length {length}", struct.pack(">i", length) + rng.randbytes(20)
    for opening in (
        b"GET / HTTP/1.1\r\nHost: example\r\n\r\n",
        b"POST /topics HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"*1\r\n$4\r\nPING\r\n",
        b"\xff\xf4\xff\xfd\x06",
    ):
        yield f"opening {opening[:4]!r}", opening


def short_frames() -> Iterator[tuple[str, bytes]]:
    """Frames that end within their header."""
    whole = _header(apis.API_VERSIONS.key, 0)
    for size in range(len(whole) - 1):
        yield f"frame of {size} bytes", framed(whole[:size])
