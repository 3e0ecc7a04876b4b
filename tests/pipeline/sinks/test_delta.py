"""A batch is in a Delta table once, however often it is written, and changes are applied in their order."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow
import pytest
from deltalake import DeltaTable

from ottla.pipeline.definition import DeltaTarget
from ottla.pipeline.problems import PipelineError
from ottla.pipeline.sinks import delta
from ottla.pipeline.sinks.delta import DeltaSink

ROWS = pyarrow.table({"id": [1, 2], "name": ["a", "b"]})
MORE = pyarrow.table({"id": [2, 3], "name": ["c", "d"]})


def sink(path: Path, *keys: str) -> DeltaSink:
    return DeltaSink(DeltaTarget(str(path / "t"), (), keys))


def stored(path: Path) -> list[tuple[int, str]]:
    table = DeltaTable(str(path / "t")).to_pyarrow_table()
    return sorted((row["id"], row["name"]) for row in table.to_pylist())


def changes(*values: tuple[int, str, int, bool]) -> pyarrow.Table:
    names = ("id", "name", "_cdc_order", "_cdc_delete")
    return pyarrow.Table.from_pylist([dict(zip(names, each, strict=True)) for each in values])


def test_a_batch_enters_once(tmp_path: Path) -> None:
    out = sink(tmp_path)
    assert out.write(ROWS, "q", 0)
    assert not out.write(ROWS, "q", 0)
    assert out.write(MORE, "q", 1)
    assert not out.write(MORE, "q", 1)
    assert out.write(MORE, "another", 0)
    assert stored(tmp_path) == [(1, "a"), (2, "b"), (2, "c"), (2, "c"), (3, "d"), (3, "d")]


def test_keys_merge_from_the_first_batch_on(tmp_path: Path) -> None:
    out = sink(tmp_path, "id")
    out.write(pyarrow.concat_tables([ROWS, pyarrow.table({"id": [1], "name": ["later"]})]), "q", 0)
    assert stored(tmp_path) == [(1, "later"), (2, "b")]
    assert out.write(pyarrow.concat_tables([MORE, pyarrow.table({"id": [3], "name": ["e"]})]), "q", 1)
    assert not out.write(MORE, "q", 1)
    assert stored(tmp_path) == [(1, "later"), (2, "c"), (3, "e")]


def test_a_late_update_does_not_bring_a_deleted_row_back(tmp_path: Path) -> None:
    out = sink(tmp_path, "id")
    out.write(changes((1, "a", 1, False), (2, "b", 1, False)), "q", 0)
    out.write(changes((1, "", 3, True)), "q", 1)
    out.write(changes((1, "late", 2, False)), "q", 2)
    assert stored(tmp_path) == [(2, "b")]
    out.write(changes((1, "anew", 4, False)), "q", 3)
    assert stored(tmp_path) == [(1, "anew"), (2, "b")]


def test_changes_without_a_key_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="without a key"):
        sink(tmp_path).write(changes((1, "a", 1, False)), "q", 0)


@pytest.mark.parametrize("seed", range(3))
def test_changes_in_any_order_end_as_if_they_came_in_order_through_crashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """A crash between the two commits of a batch leaves the table written and its versions behind."""
    rng = random.Random(seed)
    history = [(rng.randrange(5), f"v{order}", order, rng.random() < 0.3) for order in range(40)]
    expected: dict[int, str] = {}
    for key, name, _, deleted in history:
        if deleted:
            expected.pop(key, None)
        else:
            expected[key] = name
    rng.shuffle(history)
    out = sink(tmp_path, "id")
    for batch, start in enumerate(range(0, len(history), 8)):
        portion = changes(*history[start : start + 8])
        if rng.random() < 0.5:
            with monkeypatch.context() as crashing:
                crashing.setattr(delta, "_has", crash_at_the_versions)
                with pytest.raises(KeyboardInterrupt):
                    out.write(portion, "q", batch)
        out.write(portion, "q", batch)
    assert dict(stored(tmp_path)) == expected


def crash_at_the_versions(table: DeltaTable, query: str, batch: int) -> bool:
    if table.table_uri.rstrip("/").endswith("_versions"):
        raise KeyboardInterrupt
    last = table.transaction_version(query)
    return last is not None and last >= batch
