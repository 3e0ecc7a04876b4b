"""Sparse indexes: their bytes, and lookups against brute force, wherever the entries are at the moment."""

from __future__ import annotations

import random

import pytest

from faults.power_cut import SimulatedFiles
from ottla.log.offset_index import OffsetIndex
from ottla.log.open_files import OpenFiles
from ottla.log.time_index import TimeIndex
from ottla.log.txn_index import AbortedTransaction, decode_aborted, encode_aborted
from ottla.model.errors import CorruptData


def pool() -> OpenFiles:
    return OpenFiles(SimulatedFiles())


def test_offset_index_has_kafkas_bytes() -> None:
    index = OffsetIndex(pool().create("/i"), 0)
    index.append(10, 0x1234)
    index.append(0x7FFF_FFFF, 0x7FFF_FFFE)
    index.write()
    assert index.file.handle().pread(100, 0) == bytes.fromhex("0000000a 00001234 7fffffff 7ffffffe")


def test_time_index_has_kafkas_bytes() -> None:
    index = TimeIndex(pool().create("/i"), 0)
    index.maybe_append(1_700_000_000_000, 7)
    index.write()
    assert index.file.handle().pread(100, 0) == bytes.fromhex("0000018bcfe56800 00000007")


def test_time_index_takes_only_larger_timestamps() -> None:
    index = TimeIndex(pool().create("/i"), 0)
    for timestamp, offset in ((5, 1), (5, 2), (4, 3), (6, 4), (-1, 5)):
        index.maybe_append(timestamp, offset)
    assert index.entries() == [(5, 1), (6, 4)]


@pytest.mark.parametrize("seed", range(10))
def test_floor_equals_brute_force_with_entries_in_file_and_memory(seed: int) -> None:
    rng = random.Random(seed)
    index = OffsetIndex(pool().create("/i"), 0)
    entries: list[tuple[int, int]] = []
    offset = position = 0
    for _ in range(rng.choice((0, 1, 5, 700, 3_000))):
        offset += rng.randint(1, 20)
        position += rng.randint(1, 5_000)
        entries.append((offset, position))
        index.append(offset, position)
        if rng.random() < 0.002:
            index.write()
    assert len(index) == len(entries)
    assert index.entries() == entries
    assert index.last() == (entries[-1] if entries else None)
    for wanted in [0, offset, offset + 1, *(rng.randint(0, offset + 5) for _ in range(200))]:
        expected = max((entry for entry in entries if entry[0] <= wanted), default=None)
        assert index.floor(wanted) == expected
        assert index.position(wanted) == (expected[1] if expected else 0)


@pytest.mark.parametrize("seed", range(10))
def test_truncated_and_reopened_indexes_go_on_where_they_were(seed: int) -> None:
    rng = random.Random(seed)
    files = pool()
    index = OffsetIndex(files.create("/i"), 0)
    entries: list[tuple[int, int]] = []
    for _ in range(50):
        match rng.randrange(4):
            case 0:
                cut = rng.randint(0, (entries[-1][0] if entries else 0) + 2)
                index.truncate_to(cut)
                entries = [entry for entry in entries if entry[0] < cut]
            case 1:
                index.write()
                index = OffsetIndex(files.existing("/i"), files.files.size("/i"))
            case _:
                for _ in range(rng.randint(1, 200)):
                    offset = (entries[-1][0] if entries else 0) + rng.randint(1, 3)
                    entries.append((offset, offset * 7))
                    index.append(*entries[-1])
        assert index.entries() == entries
        assert index.last() == (entries[-1] if entries else None)


def test_time_index_is_truncated_by_offset() -> None:
    index = TimeIndex(pool().create("/i"), 0)
    for number in range(10):
        index.maybe_append(100 + number, number * 10)
    index.truncate_to(50)
    assert index.last() == (104, 40)


def test_trailing_bytes_that_are_no_entry_do_not_count_and_are_replaced() -> None:
    files = pool()
    handle = files.files.create("/i")
    handle.append([bytes.fromhex("00000001 00000002 00")])
    index = OffsetIndex(files.existing("/i"), 9)
    index.append(5, 6)
    index.write()
    assert files.files.read_all("/i") == bytes.fromhex("00000001 00000002 00000005 00000006")


def test_a_full_disk_leaves_entries_in_memory_until_there_is_space() -> None:
    simulated = SimulatedFiles()
    index = OffsetIndex(OpenFiles(simulated).create("/i"), 0)
    simulated.capacity_bytes = 0
    for number in range(1, 1_000):
        index.append(number, number)
    with pytest.raises(OSError, match="No space"):
        index.write()
    assert index.floor(999) == (999, 999)
    simulated.capacity_bytes = None
    index.write()
    assert simulated.size("/i") == 999 * 8


def test_transaction_index_has_kafkas_bytes() -> None:
    aborted = AbortedTransaction(producer_id=9, first_offset=10, last_offset=20, last_stable_offset=15)
    data = encode_aborted(aborted)
    assert data == bytes.fromhex("0000 0000000000000009 000000000000000a 0000000000000014 000000000000000f")
    assert decode_aborted(data * 2) == [aborted, aborted]
    with pytest.raises(CorruptData, match="34 bytes"):
        decode_aborted(data[:-1])
    with pytest.raises(CorruptData, match="version"):
        decode_aborted(b"\0\1" + data[2:])
