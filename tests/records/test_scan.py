"""Passing over batches: both kernels stop at the same place, before anything that is not as it should be."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ottla.records.batch import CheckedBatch, read_header, stamp
from ottla.records.content import Record, build_batch
from records.conftest import Kernels

EVERYTHING = 2**62


def batches(count: int, *, epoch: int = 0, value_bytes: int = 50, **fields: int) -> bytes:
    data = b""
    for offset in range(count):
        body = memoryview(build_batch([Record(0, 1_000 + offset, None, b"x" * value_bytes)], **fields))
        data += b"".join(stamp(CheckedBatch(read_header(body), body), offset, epoch))
    return data


def passed(kernel: Kernels, data: bytes, **changes: int) -> tuple[int, ...]:
    values: dict[str, Any] = {
        "position": 0,
        "last_position": len(data),
        "next_offset": 0,
        "end_offset": EVERYTHING,
        "checked_offset": 0,
        "epoch_max": 0,
    }
    return tuple(kernel.scan.pass_valid(data, *{**values, **changes}.values()))


def test_whole_batches_in_order_are_passed(kernel: Kernels) -> None:
    data = batches(10)
    assert passed(kernel, data) == (len(data), 10, 1_009, 9)
    assert passed(kernel, b"") == (0, 0, -1, -1)


def test_it_stops_before_what_needs_attention(kernel: Kernels) -> None:
    data = batches(10)
    size = len(data) // 10
    assert passed(kernel, data[:-1])[:2] == (9 * size, 9)
    assert passed(kernel, data, last_position=3 * size)[:2] == (4 * size, 4)
    assert passed(kernel, data, end_offset=5)[:2] == (5 * size, 5)
    assert passed(kernel, data, next_offset=1)[:2] == (0, 1)
    assert passed(kernel, batches(2, epoch=1))[:2] == (0, 0)
    assert passed(kernel, batches(2, epoch=1), epoch_max=1)[1] == 2
    assert passed(kernel, data + batches(1))[:2] == (len(data), 10), "offset 0 again"
    old = bytearray(data)
    old[3 * size + 16] = 1
    assert passed(kernel, bytes(old))[:2] == (3 * size, 3), "an older format"
    assert passed(kernel, batches(3, value_bytes=5_000))[:2] == (0, 0), "large ones have a faster way"


def test_a_wrong_checksum_stops_it_only_where_checksums_count(kernel: Kernels) -> None:
    data = bytearray(batches(10))
    size = len(data) // 10
    data[4 * size + 70] ^= 1
    assert passed(kernel, bytes(data))[:2] == (4 * size, 4)
    assert passed(kernel, bytes(data), checked_offset=5)[:2] == (len(data), 10)


def test_batches_without_a_producer_are_passed(kernel: Kernels) -> None:
    unnamed = batches(5)
    named = batches(1, producer_id=7, producer_epoch=0, base_sequence=0)
    assert kernel.scan.pass_unnamed(unnamed, 0) == len(unnamed)
    assert kernel.scan.pass_unnamed(unnamed + named, 0) == len(unnamed)
    assert kernel.scan.pass_unnamed(named, 0) == 0


@pytest.mark.parametrize("seed", range(20))
def test_both_kernels_stop_at_the_same_place_in_anything(
    both_kernels: tuple[Kernels, Kernels], seed: int
) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        data = bytearray(batches(rng.randrange(6), value_bytes=rng.choice((0, 50, 1_900))))
        for _ in range(rng.randrange(4)):
            if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
        data = data[: rng.randrange(len(data) + 1)] if rng.random() < 0.3 else data
        changes = {"checked_offset": rng.randrange(6), "last_position": rng.randrange(-10, 1_000)}
        compiled, source = (passed(kernel, bytes(data), **changes) for kernel in both_kernels)
        assert compiled == source
        assert len({kernel.scan.pass_unnamed(bytes(data), 0) for kernel in both_kernels}) == 1
