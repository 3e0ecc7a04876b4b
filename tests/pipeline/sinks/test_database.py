"""A batch enters a database once, whole or not at all, and changes of a key are applied in their order."""

from __future__ import annotations

import random
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import psycopg
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.patterns.databases import postgres_server
from ottla.pipeline.definition import DatabaseTarget
from ottla.pipeline.problems import PipelineError
from ottla.pipeline.sinks.database import DatabaseSink
from ottla.pipeline.sinks.dialects import DIALECTS


@dataclass(frozen=True)
class Place:
    """An empty database."""

    kind: str
    address: str

    def sink(self, keys: tuple[str, ...] = (), unique: tuple[str, ...] = ()) -> DatabaseSink:
        return DatabaseSink(DatabaseTarget(self.kind, self.address, "rows", keys, unique))

    def stored(self, sql: str = "SELECT * FROM rows ORDER BY 1") -> list[tuple[Any, ...]]:
        with closing(DIALECTS[self.kind].connect(self.address)) as connection:
            found: list[tuple[Any, ...]] = connection.execute(sql).fetchall()
            return found


NewPlace = Callable[[], Place]


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def new_place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewPlace]:
    if request.param == "sqlite":
        yield lambda: Place("sqlite", str(tmp_path_factory.mktemp("database") / "out.db"))
        return
    with postgres_server() as address:

        def make() -> Place:
            name = f"place_{uuid.uuid4().hex}"
            with psycopg.connect(address) as connection:
                connection.execute(f"CREATE SCHEMA {name}")
            return Place("postgresql", f"{address} options='-c search_path={name}'")

        yield make


@pytest.fixture
def place(new_place: NewPlace) -> Place:
    return new_place()


def rows(*values: tuple[object, ...], names: tuple[str, ...] = ("id", "name")) -> pyarrow.Table:
    return pyarrow.Table.from_pylist([dict(zip(names, each, strict=True)) for each in values])


def test_a_batch_that_comes_again_changes_nothing(place: Place) -> None:
    out = place.sink()
    assert out.write(rows((1, "a"), (2, "b")), "q", 0)
    assert not out.write(rows((1, "a"), (2, "b")), "q", 0)
    assert out.write(rows((3, "c")), "q", 1)
    assert place.stored() == [(1, "a"), (2, "b"), (3, "c")]


def test_queries_do_not_hide_each_others_batches(place: Place) -> None:
    out = place.sink()
    assert out.write(rows((1, "a")), "one", 5)
    assert out.write(rows((2, "b")), "two", 0)
    assert len(place.stored()) == 2


def test_a_batch_that_fails_leaves_nothing_behind(place: Place) -> None:
    out = place.sink()
    out.write(rows((1, "a")), "q", 0)
    with pytest.raises((sqlite3.OperationalError, psycopg.errors.UndefinedColumn)):
        out.write(rows((2, "b"), names=("id", "other")), "q", 1)
    assert place.stored() == [(1, "a")]
    assert out.write(rows((2, "b")), "q", 1)


def test_of_two_runs_that_write_a_batch_at_once_one_does(place: Place) -> None:
    """A driver that everybody took for dead may wake up while its successor writes the same batch."""
    written: list[bool] = []

    def write() -> None:
        written.extend(place.sink().write(rows((batch, "a")), "q", batch) for batch in range(8))

    runs = [threading.Thread(target=write) for _ in range(3)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert sorted(written) == [False] * 16 + [True] * 8
    assert [number for number, _ in place.stored()] == list(range(8))


def test_a_row_replaces_that_of_the_same_key(place: Place) -> None:
    out = place.sink(keys=("id",))
    out.write(rows((1, "a"), (2, "b"), (1, "c")), "q", 0)
    out.write(rows((2, "d")), "q", 1)
    assert place.stored() == [(1, "c"), (2, "d")]


def test_a_ledger_remembers_ids_for_good(place: Place) -> None:
    out = place.sink(unique=("id",))
    out.write(rows((1, "first"), (1, "again"), (2, "b")), "q", 0)
    out.write(rows((1, "much later"), (3, "c")), "q", 1)
    assert place.stored() == [(1, "first"), (2, "b"), (3, "c")]


def test_a_missing_key_is_named(place: Place) -> None:
    with pytest.raises(PipelineError, match="nobody is no column"):
        place.sink(keys=("nobody",)).write(rows((1, "a")), "q", 0)


def changes(*values: tuple[int, str, int, bool]) -> pyarrow.Table:
    return rows(*values, names=("id", "name", "_cdc_order", "_cdc_delete"))


def test_a_late_update_does_not_bring_a_deleted_row_back(place: Place) -> None:
    out = place.sink(keys=("id",))
    out.write(changes((1, "a", 1, False)), "q", 0)
    out.write(changes((1, "", 3, True)), "q", 1)
    out.write(changes((1, "late", 2, False)), "q", 2)
    assert place.stored() == []
    out.write(changes((1, "anew", 4, False)), "q", 3)
    assert place.stored() == [(1, "anew")]


def test_changes_without_a_key_are_refused(place: Place) -> None:
    with pytest.raises(PipelineError, match="without a key"):
        place.sink().write(changes((1, "a", 1, False)), "q", 0)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 60))
def test_changes_in_any_order_and_any_batches_end_as_if_they_came_in_order(
    new_place: NewPlace, seed: int, count: int
) -> None:
    rng = random.Random(seed)
    place = new_place()
    history = [(rng.randrange(5), f"v{order}", order, rng.random() < 0.3) for order in range(count)]
    expected: dict[int, str] = {}
    for key, name, _, deleted in history:
        if deleted:
            expected.pop(key, None)
        else:
            expected[key] = name
    rng.shuffle(history)
    out = place.sink(keys=("id",))
    batch = 0
    while history:
        size = rng.randrange(1, 10)
        portion, history = history[:size], history[size:]
        out.write(changes(*portion), "q", batch)
        if rng.random() < 0.3:
            out.write(changes(*portion), "q", batch)
        batch += 1
    assert dict(place.stored()) == expected
