"""Records as columns are the same records as objects, whatever they hold, in both kernels."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Sequence
from itertools import chain
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ottla.records import kernel_choice
from ottla.records.batch import HEADER_BYTES, read_header
from ottla.records.columns import BATCH_BYTES_MAX, COLUMNS, Columns, schema_of
from ottla.records.content import Record, build_batch
from ottla.records.findings import CorruptRecords, Lacking
from records.conftest import Kernels
from records.test_hostile_batches import mutations

NOW = 1_700_000_000_000
ORIGIN = ("orders", 7)

octets = st.none() | st.binary(max_size=200)
header = st.tuples(st.text(max_size=8), octets)
drafts = st.tuples(
    st.integers(1, 3), st.integers(-1, 1 << 48), octets, octets, st.lists(header, max_size=3).map(tuple)
)


def records_from(made: Sequence[tuple[int, int, Any, Any, Any]], base: int = 0) -> list[Record]:
    """The drafts as records; the first number of each is the gap before it, as compaction leaves them."""
    records = []
    offset = base - 1
    for gap, *fields in made:
        offset += gap
        records.append(Record(offset, *fields))
    return records


def add(columns: Columns, records: Sequence[Record], **more: Any) -> tuple[int, int]:
    base = records[0].offset
    batch = build_batch(records, base_offset=base)
    header = read_header(batch)
    return columns.add(
        memoryview(batch)[HEADER_BYTES:],
        more.pop("position", 0),
        more.pop("count", len(records)),
        origin=more.pop("origin", ORIGIN),
        base_offset=base,
        base_timestamp=header.base_timestamp,
        append_time=more.pop("append_time", None),
        timestamp_type=more.pop("timestamp_type", 0),
        **more,
    )


def as_rows(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    """What the columns hold, in the shape of records."""
    batch.validate(full=True)
    microseconds = batch["timestamp"].cast(pa.int64()).to_pylist()
    return [
        (
            row["offset"],
            microsecond // 1000,
            row["key"],
            row["value"],
            None if row["headers"] is None else tuple((h["key"], h["value"]) for h in row["headers"]),
        )
        for row, microsecond in zip(batch.drop_columns("timestamp").to_pylist(), microseconds, strict=True)
    ]


def expected(records: Sequence[Record]) -> list[tuple[Any, ...]]:
    return [(*record[:4], record.headers or None) for record in records]


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=st.lists(st.lists(drafts, min_size=1, max_size=12), min_size=1, max_size=4))
def test_columns_hold_the_same_records(kernel: Kernels, batches: list[list[Any]]) -> None:
    columns = Columns(None, 100)
    everything: list[Record] = []
    for made in batches:
        records = records_from(made, base=len(everything) * 10)
        add(columns, records)
        everything += records
    assert columns.rows == len(everything)
    assert columns.next_offset == everything[-1].offset + 1
    assert as_rows(columns.take()) == expected(everything)


def test_columns_have_the_names_and_types_of_sparks_source(kernel: Kernels) -> None:
    columns = Columns(None, 10)
    add(columns, [Record(0, NOW, b"k", b"v", (("h", b"1"),))])
    batch = columns.take()
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    assert batch.schema == pa.schema(
        {
            "key": pa.binary(),
            "value": pa.binary(),
            "topic": pa.string(),
            "partition": pa.int32(),
            "offset": pa.int64(),
            "timestamp": pa.timestamp("us", tz="UTC"),
            "timestampType": pa.int32(),
            "headers": headers,
        }
    )
    assert batch.schema.names == list(COLUMNS)


@pytest.mark.parametrize("name", COLUMNS)
def test_only_the_columns_asked_for_are_built(kernel: Kernels, name: str) -> None:
    columns = Columns([name], 10)
    add(columns, [Record(0, NOW, b"k", b"v", (("h", b"1"),)), Record(1, NOW, None, None)])
    batch = columns.take()
    assert batch.schema == schema_of([name])
    assert batch.num_rows == 2
    everything = Columns(None, 10)
    add(everything, [Record(0, NOW, b"k", b"v", (("h", b"1"),)), Record(1, NOW, None, None)])
    assert batch[name].equals(everything.take()[name])


@pytest.mark.parametrize(
    ("names", "problem"), [(["no"], "'no'"), ([], "at least one"), (["key", "key"], "once"), ("key", "list")]
)
def test_other_columns_are_named_in_the_error(names: Any, problem: str) -> None:
    with pytest.raises((ValueError, TypeError), match=problem):
        Columns(names, 10)


def test_offsets_outside_of_the_range_are_left_out(kernel: Kernels) -> None:
    records = [Record(offset, NOW, None, b"%d" % offset) for offset in (10, 12, 13, 17, 18)]
    columns = Columns(["offset"], 10)
    add(columns, records, first_offset=12, end_offset=18)
    assert columns.take()["offset"].to_pylist() == [12, 13, 17]


def test_full_columns_stop_and_go_on_in_the_next(kernel: Kernels) -> None:
    records = [Record(offset, NOW, b"k", b"%d" % offset) for offset in range(25)]
    columns = Columns(["value"], 10)
    position, left = 0, 25
    seen = []
    while left:
        position, left = add(columns, records, position=position, count=left)
        assert columns.is_full == (columns.rows == 10)
        seen.append(columns.take()["value"].to_pylist())
    assert [len(each) for each in seen] == [10, 10, 5]
    assert list(chain(*seen)) == [record.value for record in records]


def test_columns_with_as_many_rows_as_asked_for_are_full(kernel: Kernels) -> None:
    columns = Columns(["value"], 3)
    assert add(columns, [Record(offset, NOW, None, None) for offset in range(3)])[1] == 0
    assert columns.is_full
    assert columns.take().num_rows == 3
    assert not columns.is_full


def test_columns_end_a_batch_before_their_data_is_too_large(kernel: Kernels) -> None:
    value = b"x" * (BATCH_BYTES_MAX // 2 - 100)
    records = [Record(offset, NOW, None, value) for offset in range(3)]
    columns = Columns(["value"], 1000)
    position, left = add(columns, records)
    assert (left, columns.rows, columns.is_full) == (1, 2, True)
    assert columns.take().nbytes < BATCH_BYTES_MAX + 1000
    add(columns, records, position=position, count=left)
    assert columns.take()["value"].to_pylist() == [value]


def test_batches_of_few_bytes_hold_everything_however_its_size_changes(kernel: Kernels) -> None:
    sizes = [1_000] * 40 + [10] * 4_000 + [0] * 500 + [20_000] * 3
    records = [Record(offset, NOW, b"k", b"x" * size) for offset, size in enumerate(sizes)]
    columns = Columns(["key", "value", "topic", "offset"], 1_000, bytes_max=10_000)
    position, left, taken = 0, len(records), []
    while left:
        position, left = add(columns, records, position=position, count=left)
        assert columns.is_full or not left
        taken.append(columns.take())
    lengths = [len(value) for each in taken for value in each["value"].to_pylist()]
    assert lengths == sizes
    assert [offset for each in taken for offset in each["offset"].to_pylist()] == list(range(len(sizes)))
    assert {topic for each in taken for topic in each["topic"].to_pylist()} == {"orders"}
    assert all(each.num_rows <= 1_000 for each in taken)
    assert all(sum(map(len, each["value"].to_pylist())) <= 10_000 for each in taken if each.num_rows > 1)
    assert max(each.num_rows for each in taken) > 400  # small records come in large batches again


_WITHOUT_PANDAS = """
import sys
from ottla.records.columns import Columns
from ottla.records.batch import HEADER_BYTES
from ottla.records.content import Record, build_batch

columns = Columns(None, 10)
columns.add(
    memoryview(build_batch([Record(0, 0, b"k", b"v", (("h", b"1"),))], base_offset=0))[HEADER_BYTES:],
    0,
    1,
    origin=("orders", 7),
    base_offset=0,
    base_timestamp=0,
    append_time=None,
    timestamp_type=0,
)
assert columns.take().num_rows == 1
assert "pandas" not in sys.modules
"""


def test_columns_do_without_pandas() -> None:
    """Arrow imports it where it is installed, for values that need not be: a second of each process."""
    pytest.importorskip("pandas")
    subprocess.run([sys.executable, "-c", _WITHOUT_PANDAS], check=True)


def test_one_record_may_be_larger_than_a_batch_should_be(kernel: Kernels) -> None:
    value = b"x" * (BATCH_BYTES_MAX + 1)
    columns = Columns(["value"], 1000)
    assert add(columns, [Record(0, NOW, None, value)])[1] == 0
    assert columns.take()["value"][0].as_py() == value


def test_many_headers_find_room(kernel: Kernels) -> None:
    rng = random.Random(5)
    records = [
        Record(
            offset,
            NOW,
            None,
            None,
            tuple((f"name-{index}", rng.choice([None, rng.randbytes(300)])) for index in range(offset % 40)),
        )
        for offset in range(300)
    ]
    columns = Columns(None, 1000)
    add(columns, records)
    assert as_rows(columns.take()) == expected(records)


def test_names_of_headers_that_are_no_text_are_shown_as_java_does(kernel: Kernels) -> None:
    columns = Columns(["headers"], 10)
    add(
        columns,
        [Record(0, NOW, None, None, (("ü", b"1"), (b"\xffa".decode("utf-8", "surrogateescape"), b"2")))],
    )
    pairs = columns.take()["headers"].to_pylist()[0]
    assert [pair["key"] for pair in pairs] == ["ü", "\ufffda"]


def test_timestamps_of_the_broker_and_those_beyond_the_type(kernel: Kernels) -> None:
    columns = Columns(["timestamp", "timestampType", "offset"], 10)
    add(
        columns, [Record(0, NOW, None, None), Record(1, NOW + 5, None, None)], append_time=7, timestamp_type=1
    )
    add(columns, [Record(2, (1 << 63) - 2, None, None)])
    batch = columns.take()
    farthest = (2**63 - 1) // 1000 * 1000
    assert batch["timestamp"].cast(pa.int64()).to_pylist() == [7000, 7000, farthest]
    assert batch["timestampType"].to_pylist() == [1, 1, 0]


def test_one_batch_may_hold_several_partitions(kernel: Kernels) -> None:
    columns = Columns(["topic", "partition"], 10)
    for topic, partition in (("a", 0), ("a", 1), ("b", 0)):
        add(columns, [Record(0, NOW, None, None)], origin=(topic, partition))
    batch = columns.take()
    assert batch["topic"].to_pylist() == ["a", "a", "b"]
    assert batch["partition"].to_pylist() == [0, 1, 0]
    assert columns.take().num_rows == 0


def test_sound_records_before_a_broken_one_are_kept(kernel: Kernels) -> None:
    plain = bytearray(
        build_batch([Record(0, NOW, None, b"one"), Record(1, NOW, None, b"two")])[HEADER_BYTES:]
    )
    plain[-1] = 9  # headers that are not there
    columns = Columns(["value"], 10)
    given = {
        "origin": ORIGIN,
        "base_offset": 0,
        "base_timestamp": NOW,
        "append_time": None,
        "timestamp_type": 0,
    }
    position, left = columns.add(plain, 0, 2, **given)  # type: ignore[arg-type]
    assert left == 1
    for _ in range(2):
        with pytest.raises(CorruptRecords):
            columns.add(plain, position, left, **given)  # type: ignore[arg-type]
    assert columns.take()["value"].to_pylist() == [b"one"]


def outcome(
    kernel: Any,
    content: bytes,
    count: int,
    base_timestamp: int,
    position: int,
    rows_max: int,
    sizes: list[int],
) -> Any:
    """Everything that `fill` does to small rooms."""

    def room(rows: int, size: int) -> tuple[Any, list[Any]]:
        parts = [
            memoryview(bytearray(4 * (rows + 1))),
            memoryview(bytearray(b"\xff" * 8)),
            memoryview(bytearray(size)),
        ]
        return kernel.BytesRoom(parts[0].cast("i"), *parts[1:]), parts

    keys, key_parts = room(rows_max, sizes[0])
    values, value_parts = room(rows_max, sizes[1])
    header_keys, header_key_parts = room(sizes[4], sizes[2])
    header_values, header_value_parts = room(sizes[4], sizes[3])
    numbers = [memoryview(bytearray(8 * rows_max)) for _ in range(2)]
    lists = [memoryview(bytearray(4 * (rows_max + 1))), memoryview(bytearray(b"\xff" * 8))]
    columns = kernel.ColumnsRoom(rows_max, keys, values, numbers[0].cast("q"), numbers[1].cast("q"))
    columns.want_headers(lists[0].cast("i"), lists[1], header_keys, header_values, sizes[4])
    filled = columns.fill(content, position, count, 5, base_timestamp, None, 5, 2**63 - 1)
    parts = [*key_parts, *value_parts, *header_key_parts, *header_value_parts, *numbers, *lists]
    counts = [each.counts() for each in (keys, values, header_keys, header_values)]
    return filled, columns.reached(), columns.header_counts(), counts, [bytes(part) for part in parts]


def compare_kernels(kernels: tuple[Kernels, Kernels], seed: int, count: int) -> set[tuple[int, bool]]:
    rng = random.Random(seed)
    seen = set()
    compiled, source = (each.columns for each in kernels)
    for content in [*mutations(rng, count), *(rng.randbytes(rng.randint(0, 60)) for _ in range(count // 4))]:
        given = (
            content,
            rng.choice([0, 1, 2, 3, 3, 3, 4, 2**31 - 1]),
            rng.choice([NOW, -1, 0, (1 << 63) - 1, -(1 << 63)]),
            rng.choice([0, 0, 0, 1, len(content), len(content) + 1]),
            rng.choice([1, 2, 10]),
            rng.choice(
                [[100, 100, 9, 9, 9], [3, 99, 9, 9, 9], [9, 60, 9, 9, 9], [9, 99, 1, 9, 9], [9, 99, 9, 1, 1]]
            ),
        )
        found = outcome(source, *given)
        assert outcome(compiled, *given) == found, given
        seen.add((found[0][3], found[0][2] >= 0))
    return seen


def test_both_kernels_fill_the_same(both_kernels: tuple[Kernels, Kernels]) -> None:
    seen = compare_kernels(both_kernels, 11, 3_000)
    assert seen >= {(lacking, False) for lacking in Lacking} - {(Lacking.HEADER_VALUES, False)}
    assert (Lacking.NOTHING, True) in seen


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 220))
def test_both_kernels_fill_the_same_in_many_more(both_kernels: tuple[Kernels, Kernels], seed: int) -> None:
    compare_kernels(both_kernels, seed, 20_000)


def test_the_choice_of_kernels_knows_columns() -> None:
    assert kernel_choice.columns_kernel.is_compiled() == kernel_choice.record_kernel.is_compiled()
