"""The cleaner's loops: the same from both kernels, whatever they are given, and as a plain reading has it."""

from __future__ import annotations

import random
from typing import Any, Protocol

import pytest

from ottla.records.content import Record

NOW = 1_700_000_000_000
SECRET = 0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908


class Kernels(Protocol):
    records: Any
    compaction: Any


def records_of_seed(seed: int) -> list[Record]:
    rng = random.Random(seed)
    offset = 0
    records = []
    for _ in range(rng.randrange(1, 40)):
        key = (
            None if rng.random() < 0.1 else b"k" * rng.choice((0, 1, 7, 8, 9, 30)) + b"%d" % rng.randrange(9)
        )
        value = None if rng.random() < 0.2 else b"v" * rng.randrange(30)
        headers = (("h", b"1"), ("n", None)) if rng.random() < 0.2 else ()
        timestamp = NOW + rng.randrange(-500, 500)
        records.append(Record(offset, timestamp, None if rng.random() < 0.1 else key, value, headers))
        offset += rng.choice((1, 1, 1, 5))
    return records


def new_table(slots: int = 64) -> memoryview:
    return memoryview(bytearray(slots * 24)).cast("Q")


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, "a3817f04ba25a8e66df67214c7550293"),
        (1, "da87c1d86b99af44347659119b22fc45"),
        (7, "a1f1ebbed8dbc153c0b84aa61ff08239"),
        (8, "3b62a9ba6258f5610f83e264f31497b4"),
        (15, "5493e99933b0a8117e08ec0f97cfc3d9"),
        (63, "5150d1772f50834a503e069a973fbd7c"),
    ],
)
def test_the_hash_is_siphash_by_its_reference_vectors(kernel: Kernels, size: int, expected: str) -> None:
    words = kernel.compaction.key_hash(bytes(range(size)), *SECRET)
    assert b"".join(word.to_bytes(8, "little") for word in words).hex() == expected


@pytest.mark.parametrize("seed", range(20))
def test_the_last_record_of_each_key_is_kept(kernel: Kernels, seed: int) -> None:
    records = records_of_seed(seed)
    plain, last_delta, base_timestamp, _ = kernel.records.encode_records(records, 0)
    table = new_table()
    count = len(records)
    done = kernel.compaction.map_keys(plain, count, 100, last_delta, 0, table, 60, *SECRET)
    keys = {record.key for record in records if record.key is not None}
    assert done == (count, 100 + last_delta, len(keys), -1)

    last = {record.key: record.offset for record in records}
    expected = [record for record in records if record.key is not None and last[record.key] == record.offset]
    keep = bytearray(count)
    chosen = kernel.compaction.choose_records(
        plain, count, 100, last_delta, table, 100 + last_delta, True, *SECRET, keep
    )
    tombstones = sum(record.value is None for record in expected)
    keyless = sum(record.key is None for record in records)
    assert chosen == (len(expected), tombstones, keyless, -1)
    assert [record for record, stays in zip(records, keep, strict=True) if stays] == expected

    for new_base in (None, NOW + 10**12):
        copied, base, largest, fault = kernel.compaction.copy_records(
            plain, count, keep, len(expected), base_timestamp, new_base
        )
        assert fault == -1
        if expected:
            assert base == (expected[0].timestamp if new_base is None else new_base)
            assert largest == max(record.timestamp for record in expected)
        decoded, position, fault = kernel.records.decode_records(
            copied, 0, len(expected), 0, base, None, Record
        )
        assert (decoded, position) == (expected, len(copied))


def test_a_full_table_says_how_far_it_got(kernel: Kernels) -> None:
    records = [Record(offset, NOW, b"%d" % (offset // 2), b"v") for offset in range(10)]
    plain, last_delta, _, _ = kernel.records.encode_records(records, 0)
    table = new_table(4)
    assert kernel.compaction.map_keys(plain, 10, 0, last_delta, 0, table, 3, *SECRET) == (6, 5, 3, -1)
    assert kernel.compaction.map_keys(plain, 10, 0, last_delta, 8, new_table(4), 3, *SECRET)[:3] == (10, 9, 1)


def test_records_with_offsets_of_other_batches_are_a_fault(kernel: Kernels) -> None:
    plain, _, _, _ = kernel.records.encode_records([Record(7, NOW, b"k", b"v")], 0)
    assert kernel.compaction.map_keys(plain, 1, 0, 6, 0, new_table(), 9, *SECRET)[3] == 0
    assert (
        kernel.compaction.choose_records(plain, 1, 0, 6, new_table(), 9, True, *SECRET, bytearray(1))[3] == 0
    )


@pytest.mark.parametrize("seed", range(300))
def test_both_say_the_same_of_damaged_records(both_kernels: tuple[Kernels, Kernels], seed: int) -> None:
    rng = random.Random(seed)
    plain, last_delta, base_timestamp, _ = both_kernels[0].records.encode_records(records_of_seed(seed), 0)
    damaged = bytearray(plain)
    for _ in range(rng.randrange(1, 4)):
        damaged[rng.randrange(len(damaged))] = rng.randrange(256)
    del damaged[rng.choice((len(damaged), rng.randrange(len(damaged) + 1))) :]
    count = rng.randrange(1, 45)
    new_base = rng.choice((None, NOW, 2**63 - 1))
    found = []
    for kernels in both_kernels:
        table, keep = new_table(), bytearray(count)
        kernel = kernels.compaction
        found.append(
            (
                kernel.map_keys(damaged, count, 50, last_delta, 60, table, 60, *SECRET),
                table.tolist(),
                kernel.choose_records(damaged, count, 50, last_delta, table, 70, False, *SECRET, keep),
                keep,
                kernel.copy_records(damaged, count, keep, sum(keep), base_timestamp, new_base)[1:],
            )
        )
    assert found[0] == found[1]
