"""The records every client writes and every client must read back byte for byte.

A lane is one partition of the writer's topic with its own producer settings; the codings have one lane each.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from compat.record import Record

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LARGE_BYTES = 10_000_000

# Room for the largest record and its headers; old timestamps are on purpose, so nothing may expire.
TOPIC_CONFIGS = {"max.message.bytes": str(12 * 1024 * 1024), "retention.ms": "-1"}

_EVERY_BYTE = bytes(range(256))
# Long before any retention limit and not a round number of seconds.
_PAST_MS = 1_600_000_000_123


def _noise(size: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(size)


def _shapes() -> list[Record]:
    return [
        Record("one byte", value=b"x"),
        Record("null key", value=b"v"),
        Record("null value", key=b"tombstone", value=None),
        Record("null key and value", value=None),
        Record("empty key", key=b"", value=b"v"),
        Record("empty value", key=b"k", value=b""),
        Record("empty key and value", key=b"", value=b""),
        Record("empty key, null value", key=b"", value=None),
        Record("every byte", key=_EVERY_BYTE, value=_EVERY_BYTE[::-1]),
        Record("text", key="Kraków".encode(), value="Žluťoučký kůň 馬 🐎".encode()),
        Record("zeros", key=bytes(3), value=bytes(1000)),
    ]


def _headers() -> list[Record]:
    return [
        Record("one header", headers=(("trace", b"1234"),)),
        Record("null header", headers=(("nothing", None),)),
        Record("empty header", headers=(("empty", b""),)),
        Record("duplicate headers keep their order", headers=(("k", b"2"), ("other", b"x"), ("k", b"1"))),
        Record("header name outside ASCII", headers=(("ключ-鍵", "значение".encode()),)),
        Record("binary header", headers=(("bytes", bytes(range(1, 256))),)),
        Record("fifty headers", headers=tuple((f"h{i}", b"v" * i) for i in range(50))),
        Record("large header", headers=(("large", b"h" * 70_000),)),
        Record("headers on a tombstone", key=b"k", value=None, headers=(("why", b"gone"),)),
    ]


def _timestamps() -> list[Record]:
    return [
        Record("past", timestamp_ms=_PAST_MS),
        Record("later", timestamp_ms=_PAST_MS + 86_400_000),
        Record("earlier than the one before", timestamp_ms=_PAST_MS - 86_400_000),
        Record("first millisecond", timestamp_ms=1),
    ]


def _sizes() -> list[Record]:
    """Around the steps of the varint lengths and of the usual batch sizes, noise and compressible in turn."""
    noise = [Record(f"{n} noisy bytes", value=_noise(n, n)) for n in (2, 63, 64, 8191, 8192, 65_537)]
    plain = [Record(f"{n} plain bytes", value=(b"ottla " * (n // 6 + 1))[:n]) for n in (16_384, 1_048_576)]
    return noise + plain


def every_case() -> list[Record]:
    """All shapes, then one record of ten megabytes: half of it noise, so that no coding makes it small."""
    large = _noise(LARGE_BYTES // 2, 7) + b"a" * (LARGE_BYTES // 2)
    return [
        *_shapes(),
        *_headers(),
        *_timestamps(),
        *_sizes(),
        Record("ten megabytes", key=b"L", value=large),
    ]


def few_cases() -> list[Record]:
    return [
        Record("first", key=b"a", value=b"1", timestamp_ms=_PAST_MS),
        Record("second", key=b"b", value=_noise(2000, 1), headers=(("h", b"v"),), timestamp_ms=_PAST_MS + 1),
        Record("third", key=None, value=b"3"),
    ]


def numbered_cases() -> list[Record]:
    return [Record(f"number {i}", key=b"k", value=b"%d" % i) for i in range(1500)]


@dataclass(frozen=True, slots=True)
class Lane:
    """One partition and how it is written."""

    name: str
    records: Callable[[], list[Record]]
    codec: str = "none"
    acks: int = -1
    # Each request carries a record or two, so that as many as the client allows are in flight.
    many_requests: bool = False
    idempotent: bool = True


LANES = (
    *(Lane(codec, every_case, codec=codec) for codec in CODECS),
    Lane("acks=1", few_cases, acks=1, idempotent=False),
    Lane("acks=0", few_cases, acks=0, idempotent=False),
    Lane("many in flight", numbered_cases, many_requests=True),
)

STAMPED_LANES = tuple(Lane(codec, few_cases, codec=codec) for codec in CODECS)

# For tests about something else. Not idempotent: librdkafka takes half a second to begin with that.
QUICK = Lane("quick", few_cases, idempotent=False)
