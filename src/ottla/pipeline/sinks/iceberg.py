"""Rows appended to Iceberg tables; a snapshot tells its query and batch, so no batch enters twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.pipeline.definition import IcebergTarget
from ottla.pipeline.parts import CDC_ORDER
from ottla.pipeline.problems import PipelineError

if TYPE_CHECKING:
    import pyarrow

_QUERY = "ottla.query"
_BATCH = "ottla.batch"


class IcebergSink:
    def __init__(self, target: IcebergTarget) -> None:
        self._target = target

    def write(self, rows: pyarrow.Table, query: str, batch: int) -> bool:
        try:
            from pyiceberg.catalog import load_catalog
        except ImportError:
            raise PipelineError(
                "Iceberg needs the package pyiceberg", "pip install 'pyiceberg[sql-sqlite]'"
            ) from None
        if CDC_ORDER in rows.column_names:
            raise PipelineError(
                "Iceberg tables take no changes of a cdc step", "use sqlite, postgresql or delta"
            )
        catalog = load_catalog(**{"name": "default", **self._target.catalog})
        namespace = self._target.table.rpartition(".")[0]
        catalog.create_namespace_if_not_exists(namespace)
        table = catalog.create_table_if_not_exists(self._target.table, schema=rows.schema)
        if _last_batch(table, query) >= batch:
            return False
        table.append(rows, snapshot_properties={_QUERY: query, _BATCH: str(batch)})
        return True


def _last_batch(table: Any, query: str) -> int:
    batches = [
        int(snapshot.summary[_BATCH])
        for snapshot in table.snapshots()
        if snapshot.summary is not None and snapshot.summary.get(_QUERY) == query
    ]
    return max(batches, default=-1)
