"""Rows on their way into a topic."""

from __future__ import annotations

import pyarrow

from ottla.spark.rows import RowShape


def _rows(start: int, count: int, size: int) -> pyarrow.RecordBatch:
    numbers = range(start, start + count)
    return pyarrow.record_batch(
        {"value": [b"%d" % number + b"." * size for number in numbers], "left out": list(numbers)}
    )


def test_small_pieces_are_gathered_and_none_is_lost() -> None:
    pieces = [_rows(start, 1000, 100) for start in range(0, 60_000, 1000)]
    gathered = list(RowShape(("value",), "topic").gathered([_rows(0, 0, 0), *pieces, _rows(0, 0, 0)]))
    assert 1 < len(gathered) < 5
    assert [each.schema.names for each in gathered] == [["value"]] * len(gathered)
    values = [value for each in gathered for value in each.column("value").to_pylist()]
    assert values == [value for each in pieces for value in each.column("value").to_pylist()]


def test_large_pieces_go_as_they_are() -> None:
    pieces = [_rows(start, 10, 500_000) for start in (0, 10)]
    assert [each.num_rows for each in RowShape(("value",), "topic").gathered(pieces)] == [10, 10]


def test_nothing_stays_nothing() -> None:
    assert list(RowShape(("value",), "topic").gathered(iter([_rows(0, 0, 0)]))) == []
