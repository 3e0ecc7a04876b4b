"""Damaged and invented batches: only Refused and CorruptRecords come out, the same from both kernels."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any, Protocol

import pytest

from ottla.model.errors import Refused
from ottla.records.batch import (
    HEADER_BYTES,
    ProduceRules,
    check_produced,
    header_bytes,
    read_header,
)
from ottla.records.compression import Codec, compress
from ottla.records.content import Record, build_batch, check_content, recompress, records_of
from ottla.records.findings import CorruptRecords, Fault, Finding
from ottla.records.formats import scan

NOW = 1_700_000_000_000
RULES = ProduceRules(1 << 20, (1 << 63) - 1, 3_600_000, log_append_time=False, keys_needed=True)
CODECS = pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name.lower())
RECORDS = [
    Record(0, NOW, b"key", b"value"),
    Record(1, NOW + 300, b"k", None, (("a", b"1"), ("b", None))),
    Record(2, NOW - 70_000, b"", b"x" * 70),
]
LEADER_EPOCH_BITS = range(12 * 8, 16 * 8)


def read_all(batch: bytes) -> None:
    """Everything that can be done with bytes that claim to be a batch."""
    list(scan(batch))
    with suppress(CorruptRecords):
        list(records_of(batch, decompressed_bytes_max=100_000))
    with suppress(CorruptRecords):
        recompress(batch, Codec.NONE, decompressed_bytes_max=100_000)


@CODECS
def test_every_truncated_batch_is_refused(kernel: object, codec: Codec) -> None:
    batch = build_batch(RECORDS, codec=codec)
    for size in range(len(batch)):
        with pytest.raises(Refused):
            check_produced(memoryview(batch)[:size], 9, RULES, NOW)
        with pytest.raises(CorruptRecords):
            list(records_of(batch[:size]))
        read_all(batch[:size])


@CODECS
def test_every_flipped_bit_is_refused(kernel: object, codec: Codec) -> None:
    batch = build_batch(RECORDS, codec=codec)
    for bit in range(len(batch) * 8):
        damaged = bytearray(batch)
        damaged[bit // 8] ^= 1 << bit % 8
        read_all(bytes(damaged))
        if bit in LEADER_EPOCH_BITS:  # the leader overwrites it; the checksum leaves it out for that
            check_produced(memoryview(damaged), 9, RULES, NOW)
            continue
        with pytest.raises(Refused):
            check_produced(memoryview(damaged), 9, RULES, NOW)


class Kernels(Protocol):
    records: Any
    header: Any


def outcome(kernel: Any, content: bytes, count: int, base_timestamp: int, position: int) -> Any:
    return (
        kernel.check_records(content, count, base_timestamp, False),
        kernel.check_records(content, count, base_timestamp, True),
        kernel.decode_records(content, position, count, 5, base_timestamp, None, Record),
        kernel.decode_records(content, 0, count, (1 << 63) - 3, base_timestamp, 7, Record),
    )


def mutations(rng: random.Random, count: int) -> list[bytes]:
    """Sound records with a few bytes changed, cut, doubled or invented."""
    sound = build_batch(RECORDS)[HEADER_BYTES:]
    hostile = [b"\xff", b"\x00", b"\x01", b"\x7f", b"\x80", b"\xff\xff\xff\xff\x0f", b"\xff" * 9 + b"\x01"]
    made = []
    for _ in range(count):
        content = bytearray(sound)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(content) + 1)
            match rng.randrange(4):
                case 0:
                    content[at : at + 1] = rng.randbytes(1)
                case 1:
                    content[at : at + rng.randint(0, 5)] = rng.choice(hostile)
                case 2:
                    del content[at : at + rng.randint(1, 8)]
                case _:
                    content[at:at] = content[: rng.randint(0, 20)]
        made.append(bytes(content))
    return made


def compare_kernels(kernels: tuple[Kernels, Kernels], seed: int, count: int) -> set[int]:
    """Every mutation through both kernels; the findings that came up."""
    compiled, source = (kernel.records for kernel in kernels)
    rng = random.Random(seed)
    findings = set()
    for content in [*mutations(rng, count), *(rng.randbytes(rng.randint(0, 60)) for _ in range(count // 4))]:
        records = rng.choice([0, 1, 2, 3, 3, 3, 4, 2**31 - 1])
        base_timestamp = rng.choice([NOW, -1, 0, (1 << 63) - 1, -(1 << 63)])
        position = rng.choice([0, 0, 1, len(content), len(content) + 1])
        expected = outcome(source, content, records, base_timestamp, position)
        assert outcome(compiled, content, records, base_timestamp, position) == expected, content.hex()
        findings.add(expected[1][0])
    return findings


def test_both_kernels_find_the_same(both_kernels: tuple[Kernels, Kernels]) -> None:
    assert compare_kernels(both_kernels, seed=1, count=4_000) == set(Finding), (
        "the fuzz must reach every finding"
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_both_kernels_find_the_same_in_many_more(both_kernels: tuple[Kernels, Kernels], seed: int) -> None:
    compare_kernels(both_kernels, seed, count=20_000)


def test_both_kernels_write_the_same(both_kernels: tuple[Kernels, Kernels]) -> None:
    compiled, source = (kernel.records for kernel in both_kernels)
    rng = random.Random(3)
    for _ in range(300):
        records = [
            Record(
                offset * rng.choice([1, 1, 1000]) + offset,
                rng.choice([-1, 0, NOW, NOW - rng.randrange(1 << 40), (1 << 63) - 2]),
                rng.choice([None, b"", rng.randbytes(rng.choice([1, 63, 64, 8191, 8192]))]),
                rng.choice([None, b"", rng.randbytes(rng.choice([1, 63, 64, 300]))]),
                tuple(
                    ("h" * rng.randint(0, 70), rng.choice([None, b"x"])) for _ in range(rng.choice([0, 0, 3]))
                ),
            )
            for offset in range(rng.randint(1, 10))
        ]
        records = sorted({record.offset: record for record in records}.values())
        assert compiled.encode_records(records, 0) == source.encode_records(records, 0)


def test_both_kernels_find_the_same_fault(both_kernels: tuple[Kernels, Kernels]) -> None:
    compiled, source = (kernel.header.check_header for kernel in both_kernels)
    rng = random.Random(4)
    extremes = [-(1 << 63), -1, 0, 1, NOW - 501, NOW - 500, NOW, NOW + 500, NOW + 501, (1 << 63) - 1]
    small = [-(1 << 31), -2, -1, 0, 1, 2, 3, (1 << 31) - 1]
    bodies = [
        build_batch(RECORDS)[HEADER_BYTES:],
        b"\x04\x22\x4d\x18\x40\x40\0",
        b"\x04\x22\x4d\x18\x60\x40\0",
    ]
    seen = set()
    for _ in range(20_000):
        changes = {
            "base_offset": rng.choice(extremes) if rng.random() < 0.1 else 0,
            "attributes": rng.choice([0, 0, 0, 1, 3, 4, 5, 8, 16, 32, 40, 64, 0x7FFF, -1]),
            "last_offset_delta": rng.choice([2, 2, 2, *small]),
            "record_count": rng.choice([3, 3, 3, *small]),
            "base_timestamp": rng.choice([NOW, *extremes]),
            "max_timestamp": rng.choice([NOW, *extremes]),
            "producer_id": rng.choice(extremes),
            "base_sequence": rng.choice(small),
        }
        header = read_header(build_batch(RECORDS))._replace(**changes)
        body = rng.choice(bodies)
        batch = bytearray(header_bytes(header, body) + body)
        if rng.random() < 0.2:
            batch[rng.randrange(len(batch))] ^= 1 << rng.randrange(8)
        cut = memoryview(batch)[: rng.choice([len(batch)] * 20 + [0, 60, 61, 100])]
        bytes_max = rng.choice([len(batch)] * 9 + [len(batch) - 1])
        bounds = rng.choice([(500, 500), ((1 << 63) - 1, (1 << 63) - 1), (0, 0)])
        given = (cut, rng.choice([3, 6, 7, 13]), bytes_max, rng.random() < 0.3, NOW, *bounds)
        expected = source(*given)
        assert compiled(*given) == expected
        seen.add(expected[0])
    assert seen == set(Fault), "the fuzz must reach every fault"


@CODECS
def test_checked_batches_with_any_content_are_refused_or_sound(kernel: object, codec: Codec) -> None:
    """Mutated content under a right checksum, as a buggy producer would send it."""
    rng = random.Random(codec)
    header = read_header(build_batch(RECORDS, codec=codec))
    for content in mutations(rng, 300):
        body = bytes(compress(codec, content))
        if rng.random() < 0.5:
            body = body[: rng.randrange(len(body) + 1)] + rng.randbytes(rng.randrange(3))
        batch = header_bytes(header, body) + body
        checked = check_produced(memoryview(batch), 9, RULES, NOW)
        read_all(batch)
        try:
            accepted = check_content(checked, RULES, NOW, decompressed_bytes_max=100_000)
        except Refused:
            continue
        assert len(list(records_of(accepted.body))) == len(RECORDS)
