"""Rows of Arrow columns become the records that the same values as objects would, in both kernels."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ottla.records.compression import Codec
from ottla.records.content import Record, build_batch, records_of
from ottla.records.findings import RowFault
from ottla.records.kernel import murmur2
from ottla.records.rows import ANY_PARTITION, EncodedRecords, Group, InvalidRows, Rows
from records.conftest import Kernels

NOW = 1_700_000_000_000
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
IDENTITY = {"flags": 0, "producer_id": 7, "producer_epoch": 2, "base_sequence": 5}

octets = st.none() | st.binary(max_size=80)
drafts = st.tuples(
    st.integers(0, 1 << 48),
    octets,
    octets,
    st.lists(st.tuples(st.text(max_size=5), octets), max_size=3).map(tuple),
)


def table_of(records: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    """The records' timestamps, keys, values and headers as columns."""
    headers = [[{"key": key, "value": value} for key, value in record[3]] or None for record in records]
    return pa.record_batch(
        {
            "timestamp": pa.array([record[0] for record in records], pa.timestamp("ms")),
            "key": pa.array([record[1] for record in records], pa.binary()),
            "value": pa.array([record[2] for record in records], pa.binary()),
            "headers": pa.array(headers, HEADERS),
        }
    )


def encoded(rows: Rows, partitions: int = 1, bytes_max: int = 1 << 20) -> list[tuple[int, EncodedRecords]]:
    """Partitions and batches."""
    made = []
    groups, _ = rows.group(partitions, None, by_key=True)
    for group in groups:
        first = group.first
        while first < group.end:
            records, first = rows.encode(first, group.end, bytes_max)
            made.append((group.partition, records))
    return made


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(made=st.lists(drafts, min_size=1, max_size=20), cut=st.integers(0, 5))
def test_rows_become_the_batch_that_objects_become(kernel: Kernels, made: list[Any], cut: int) -> None:
    """Also those of a slice, whose buffers begin before its first row."""
    batch = table_of(made).slice(min(cut, len(made) - 1))
    kept = made[min(cut, len(made) - 1) :]
    ((partition, records),) = encoded(Rows(batch, NOW))
    assert partition == 0
    objects = [Record(index, *fields) for index, fields in enumerate(kept)]
    assert bytes(records.batch(**IDENTITY)) == build_batch(objects, **IDENTITY)
    assert len(records) == len(kept)
    assert records[:] == objects
    assert records[-1] == objects[-1]


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.lists(
        st.sampled_from([0, 1, 63, 64, 100, 8_191, 8_192]).map(lambda size: b"v" * size), min_size=1
    ),
    bytes_max=st.sampled_from([100, 300, 1_000, 20_000]),
    cut=st.integers(0, 3),
)
def test_values_alone_become_the_batches_that_objects_become(
    kernel: Kernels, values: list[bytes], bytes_max: int, cut: int
) -> None:
    """They have a loop of their own; a batch ends before the first record that it has no room for."""
    cut = min(cut, len(values) - 1)
    rows = Rows(pa.record_batch({"value": pa.array(values, pa.binary())}).slice(cut), NOW)
    rest = values[cut:]
    for _, records in encoded(rows, bytes_max=bytes_max):
        count = len(records)
        objects = [Record(index, NOW, None, value) for index, value in enumerate(rest[:count])]
        assert bytes(records.batch(**IDENTITY)) == build_batch(objects, **IDENTITY)
        assert records.size <= bytes_max or count == 1
        longer = [Record(index, NOW, None, value) for index, value in enumerate(rest[: count + 1])]
        assert len(rest) == count or len(build_batch(longer, **IDENTITY)) > bytes_max
        rest = rest[count:]
    assert not rest


@pytest.mark.parametrize("codec", list(Codec))
def test_batches_are_compressed(kernel: Kernels, codec: Codec) -> None:
    made = [(NOW + number, b"k%d" % number, b"v" * 100, (("h", None),)) for number in range(500)]
    ((_, records),) = encoded(Rows(table_of(made), NOW))
    records.compress(codec, None)
    objects = [Record(index, *fields) for index, fields in enumerate(made)]
    assert list(records_of(records.batch(**IDENTITY))) == objects
    again = records.batch(**IDENTITY | {"base_sequence": 9})
    assert list(records_of(again)) == objects
    assert records[2:4] == objects[2:4]
    assert records.size == len(again)
    records.drop()
    assert (len(records), records.size) == (500, 0)


def test_keys_choose_partitions_as_clients_do(kernel: Kernels) -> None:
    keys = [None if number % 7 == 0 else b"key-%d" % number for number in range(3_000)]
    rows = Rows(
        pa.record_batch({"key": pa.array(keys, pa.binary()), "value": pa.array(keys, pa.binary())}), NOW
    )
    seen: dict[int, list[bytes | None]] = {}
    for partition, records in encoded(rows, 12, 2_000):
        assert records.size <= 2_000
        seen.setdefault(partition, []).extend(record.key for record in records[:])
    expected: dict[int, list[bytes | None]] = {}
    for key in keys:
        where = ANY_PARTITION if key is None else (murmur2(key) & 0x7FFF_FFFF) % 12
        expected.setdefault(where, []).append(key)
    assert seen == expected


def test_a_partition_of_its_own_comes_before_the_key(kernel: Kernels) -> None:
    batch = pa.record_batch(
        {"key": pa.array([b"a", b"b", None, None]), "partition": pa.array([3, None, 1, None], pa.int64())}
    )
    groups, _ = Rows(batch, NOW).group(5, None, by_key=True)
    by_key = (murmur2(b"b") & 0x7FFF_FFFF) % 5
    assert sorted(group.partition for group in groups) == sorted({-1, 1, 3, by_key})
    groups, _ = Rows(batch, NOW).group(5, [0, 2, 2, 2], by_key=True)
    assert groups == [Group(1, 0, 1), Group(2, 1, 3), Group(3, 3, 4)]


def test_rows_without_a_timestamp_have_the_present_one(kernel: Kernels) -> None:
    batch = pa.record_batch(
        {"value": [b"a", b"b"], "timestamp": pa.array([5_000_999, None], pa.timestamp("us"))}
    )
    ((_, records),) = encoded(Rows(batch, NOW))
    assert [record.timestamp for record in records[:]] == [5_000, NOW]
    ((_, records),) = encoded(Rows(pa.record_batch({"value": [b"a"]}), NOW))
    assert records[0] == Record(0, NOW, None, b"a")
    ((_, records),) = encoded(Rows(pa.record_batch({"timestamp": [7], "value": ["text"]}), NOW))
    assert records[0] == Record(0, 7, None, b"text")


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.large_binary(), pa.binary(), pa.binary(3)]
)
def test_whatever_holds_bytes_is_taken(kernel: Kernels, kind: pa.DataType) -> None:
    texts = ["abc", None, "xyz"]
    plain = pa.array(texts, pa.string())
    column = plain.cast(pa.binary()).cast(kind) if pa.types.is_fixed_size_binary(kind) else plain.cast(kind)
    ((_, records),) = encoded(Rows(pa.record_batch({"value": column}), NOW))
    assert [record.value for record in records[:]] == [b"abc", None, b"xyz"]


def test_a_record_larger_than_a_batch_has_one_of_its_own(kernel: Kernels) -> None:
    sizes = [10, 500, 10, 3_000, 10, 10]
    batch = pa.record_batch({"value": [b"x" * size for size in sizes]})
    made = encoded(Rows(batch, NOW), bytes_max=600)
    assert [len(records) for _, records in made] == [2, 1, 1, 2]
    _, largest = Rows(batch, NOW).group(1, None, by_key=True)
    assert 3_000 < largest < 3_040


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"partition": [0, 3]}, "row 1: there is no such partition"),
        ({"partition": [-1, 0]}, "row 0: there is no such partition"),
        ({"timestamp": [0, -1]}, "row 1: its timestamp is before 1970"),
        ({"timestamp": [2**63 - 1, 0]}, "row 0: its timestamp"),
        ({"timestamp": ["soon", "later"]}, "'timestamp' is string"),
        ({"value": [1.5, 2.5]}, "'value' is double"),
        ({"partition": [2**40, 0]}, "'partition' is int64"),
        ({"colour": ["red", "blue"]}, "named 'colour'"),
        (
            {"headers": pa.array([[{"key": None, "value": b"1"}], None], HEADERS)},
            "row 0: a header has no key",
        ),
        ({"headers": ["a", "b"]}, "'headers' is string"),
    ],
)
def test_what_cannot_be_a_record_is_named(kernel: Kernels, columns: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidRows, match=problem):
        Rows(pa.record_batch(columns), NOW).group(3, None, by_key=True)


def test_no_rows_are_no_batches(kernel: Kernels) -> None:
    for batch in (table_of([]), table_of([(NOW, b"k", b"v", ())]).slice(1)):
        assert Rows(batch, NOW).group(3, None, by_key=True) == ([], 0)


def broken_column(rng: random.Random, rows: int) -> tuple[Any, ...]:
    """Ends and data that do not always fit each other."""
    wild = [-1, 0, 1, 5, 9, 10, 11, 2**31 - 1, -(2**31)]
    ends = sorted(rng.randrange(11) for _ in range(rows + 1))
    if rng.random() < 0.5:
        ends[rng.randrange(rows + 1)] = rng.choice(wild)
    bits = None if rng.random() < 0.5 else memoryview(rng.randbytes(4))
    raw = memoryview(b"".join(end.to_bytes(4, "little", signed=True) for end in ends)).cast("i")
    return raw, memoryview(rng.randbytes(10)), bits, rng.randrange(4)


def outcome(kernel: Any, rng: random.Random) -> tuple[int, Any]:
    """What a kernel makes of columns from the same dice; first whether it found a fault."""
    rows = rng.randint(1, 6)

    def source(count: int) -> Any:
        ends, data, bits, first = broken_column(rng, count)
        return kernel.BytesSource(ends, data, kernel.Validity(bits, first))

    columns = kernel.RowsSource(rows, NOW, source(rows), source(rows))
    if rng.random() < 0.5:
        times = [rng.choice([0, 1, NOW, NOW + 7, -1, 2**63 - 1]) for _ in range(rows)]
        raw = memoryview(b"".join(each.to_bytes(8, "little", signed=True) for each in times)).cast("q")
        columns.take_timestamps(raw, kernel.Validity(memoryview(rng.randbytes(4)), 1))
    if rng.random() < 0.5:
        ends = broken_column(rng, rows)[0]
        columns.take_headers(ends, kernel.Validity(None, 0), source(10), source(10), 10)
    partitions = memoryview(bytearray(4 * rows)).cast("i")
    named = [rng.choice([0, 1, 2, 2, 1, 3, -1]) for _ in range(rows)]
    given = memoryview(b"".join(each.to_bytes(4, "little", signed=True) for each in named)).cast("i")
    valid = kernel.Validity(memoryview(rng.randbytes(2)), 3)
    found = columns.survey(partitions, given if rng.random() < 0.5 else None, valid, 3, True)
    if found[0]:
        return found[0], found
    ends, order = memoryview(bytearray(16)).cast("i"), memoryview(bytearray(4 * rows)).cast("i")
    kernel.group(partitions, ends, order)
    room = bytearray(rng.choice([0, 20, 60, 400]))
    made = columns.encode(order, 0, rows, room, 0, rng.choice([30, 400]))
    return 0, (found, partitions.tolist(), ends.tolist(), order.tolist(), made, bytes(room))


def compare_kernels(kernels: tuple[Kernels, Kernels], seeds: range) -> set[int]:
    seen = set()
    for seed in seeds:
        fault, found = outcome(kernels[0].rows, random.Random(seed))
        assert (fault, found) == outcome(kernels[1].rows, random.Random(seed)), seed
        seen.add(fault)
    return seen


def test_both_kernels_make_the_same_of_rows(both_kernels: tuple[Kernels, Kernels]) -> None:
    assert compare_kernels(both_kernels, range(3_000)) == set(RowFault), "the fuzz must reach every fault"


@pytest.mark.slow
@pytest.mark.parametrize("round_number", range(1, 11))
def test_both_kernels_make_the_same_of_many_more(
    both_kernels: tuple[Kernels, Kernels], round_number: int
) -> None:
    compare_kernels(both_kernels, range(100_000 * round_number, 100_000 * round_number + 50_000))
