"""A batch is in an Iceberg table once, however often it is written."""

from __future__ import annotations

from pathlib import Path

import pyarrow
import pytest

from ottla.pipeline.definition import IcebergTarget
from ottla.pipeline.problems import PipelineError
from ottla.pipeline.sinks.iceberg import IcebergSink

ROWS = pyarrow.table({"id": [1, 2], "name": ["a", "b"]})
MORE = pyarrow.table({"id": [2, 3], "name": ["c", "d"]})


def test_a_batch_enters_an_iceberg_table_once(tmp_path: Path) -> None:
    from pyiceberg.catalog import load_catalog

    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"file://{tmp_path}/lake"}
    sink = IcebergSink(IcebergTarget("shop.orders", catalog))
    assert sink.write(ROWS, "q", 0)
    assert not sink.write(ROWS, "q", 0)
    assert sink.write(MORE, "q", 1)
    found = load_catalog("default", **catalog).load_table("shop.orders").scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["name"]) for row in found) == [(1, "a"), (2, "b"), (2, "c"), (3, "d")]


def test_changes_are_refused_where_they_could_not_be_kept_in_order() -> None:
    changes = ROWS.append_column("_cdc_order", [[1, 2]])
    with pytest.raises(PipelineError, match="sqlite, postgresql or delta"):
        IcebergSink(IcebergTarget("shop.orders", {})).write(changes, "q", 0)
