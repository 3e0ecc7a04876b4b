"""A batch enters a database once, whole or not at all, and changes of a key are applied in their order."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.pipeline.definition import DatabaseTarget
from ottla.pipeline.problems import PipelineError
from ottla.pipeline.sinks.database import DatabaseSink


def sink(path: Path, keys: tuple[str, ...] = (), unique: tuple[str, ...] = ()) -> DatabaseSink:
    return DatabaseSink(DatabaseTarget("sqlite", str(path / "out.db"), "rows", keys, unique))


def stored(path: Path, sql: str = "SELECT * FROM rows ORDER BY 1") -> list[tuple[object, ...]]:
    with sqlite3.connect(path / "out.db") as connection:
        return connection.execute(sql).fetchall()


def rows(*values: tuple[object, ...], names: tuple[str, ...] = ("id", "name")) -> pyarrow.Table:
    return pyarrow.Table.from_pylist([dict(zip(names, each, strict=True)) for each in values])


def test_a_batch_that_comes_again_changes_nothing(tmp_path: Path) -> None:
    out = sink(tmp_path)
    assert out.write(rows((1, "a"), (2, "b")), "q", 0)
    assert not out.write(rows((1, "a"), (2, "b")), "q", 0)
    assert out.write(rows((3, "c")), "q", 1)
    assert stored(tmp_path) == [(1, "a"), (2, "b"), (3, "c")]


def test_queries_do_not_hide_each_others_batches(tmp_path: Path) -> None:
    out = sink(tmp_path)
    assert out.write(rows((1, "a")), "one", 5)
    assert out.write(rows((2, "b")), "two", 0)
    assert len(stored(tmp_path)) == 2


def test_a_batch_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    out = sink(tmp_path)
    out.write(rows((1, "a")), "q", 0)
    with pytest.raises(sqlite3.OperationalError):
        out.write(rows((2, "b"), names=("id", "other")), "q", 1)
    assert stored(tmp_path) == [(1, "a")]
    assert out.write(rows((2, "b")), "q", 1)


def test_a_row_replaces_that_of_the_same_key(tmp_path: Path) -> None:
    out = sink(tmp_path, keys=("id",))
    out.write(rows((1, "a"), (2, "b"), (1, "c")), "q", 0)
    out.write(rows((2, "d")), "q", 1)
    assert stored(tmp_path) == [(1, "c"), (2, "d")]


def test_a_ledger_remembers_ids_for_good(tmp_path: Path) -> None:
    out = sink(tmp_path, unique=("id",))
    out.write(rows((1, "first"), (1, "again"), (2, "b")), "q", 0)
    out.write(rows((1, "much later"), (3, "c")), "q", 1)
    assert stored(tmp_path) == [(1, "first"), (2, "b"), (3, "c")]


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="nobody is no column"):
        sink(tmp_path, keys=("nobody",)).write(rows((1, "a")), "q", 0)


def changes(*values: tuple[int, str, int, bool]) -> pyarrow.Table:
    return rows(*values, names=("id", "name", "_cdc_order", "_cdc_delete"))


def test_a_late_update_does_not_bring_a_deleted_row_back(tmp_path: Path) -> None:
    out = sink(tmp_path, keys=("id",))
    out.write(changes((1, "a", 1, False)), "q", 0)
    out.write(changes((1, "", 3, True)), "q", 1)
    out.write(changes((1, "late", 2, False)), "q", 2)
    assert stored(tmp_path) == []
    out.write(changes((1, "anew", 4, False)), "q", 3)
    assert stored(tmp_path) == [(1, "anew")]


def test_changes_without_a_key_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="without a key"):
        sink(tmp_path).write(changes((1, "a", 1, False)), "q", 0)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 60))
def test_changes_in_any_order_and_any_batches_end_as_if_they_came_in_order(
    tmp_path_factory: pytest.TempPathFactory, seed: int, count: int
) -> None:
    rng = random.Random(seed)
    path = tmp_path_factory.mktemp("cdc")
    history = [(rng.randrange(5), f"v{order}", order, rng.random() < 0.3) for order in range(count)]
    expected: dict[int, str] = {}
    for key, name, _, deleted in history:
        if deleted:
            expected.pop(key, None)
        else:
            expected[key] = name
    rng.shuffle(history)
    out = sink(path, keys=("id",))
    batch = 0
    while history:
        size = rng.randrange(1, 10)
        portion, history = history[:size], history[size:]
        out.write(changes(*portion), "q", batch)
        if rng.random() < 0.3:
            out.write(changes(*portion), "q", batch)
        batch += 1
    assert dict(stored(path)) == expected
