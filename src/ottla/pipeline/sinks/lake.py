"""Rows into Delta and Iceberg tables; query and batch are part of each commit, so no batch enters twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.pipeline.definition import DeltaTarget, IcebergTarget
from ottla.pipeline.parts import CDC_DELETE, CDC_ORDER
from ottla.pipeline.problems import PipelineError

if TYPE_CHECKING:
    import pyarrow

_QUERY = "ottla.query"
_BATCH = "ottla.batch"


class DeltaSink:
    """Appends, or with `keys` merges; Delta's own transaction identifiers recognise a batch."""

    def __init__(self, target: DeltaTarget) -> None:
        self._target = target

    def write(self, rows: pyarrow.Table, query: str, batch: int) -> bool:
        try:
            from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
        except ImportError:
            raise PipelineError("Delta needs the package deltalake", "pip install deltalake") from None
        target = self._target
        if CDC_ORDER in rows.column_names or CDC_DELETE in rows.column_names:
            raise PipelineError("Delta tables take no changes of a cdc step", "use sqlite or postgresql")
        properties = CommitProperties(
            app_transactions=[Transaction(query, batch)], custom_metadata={_QUERY: query, _BATCH: str(batch)}
        )
        if not DeltaTable.is_deltatable(target.path):
            write_deltalake(
                target.path,
                rows,
                partition_by=list(target.partition_by) or None,
                commit_properties=properties,
            )
            return True
        table = DeltaTable(target.path)
        last = table.transaction_version(query)
        if last is not None and last >= batch:
            return False
        if target.keys:
            same = " AND ".join(f't."{key}" = s."{key}"' for key in target.keys)
            merge = table.merge(
                _last_of_each(rows, target.keys), same, "s", "t", commit_properties=properties
            )
            merge.when_matched_update_all().when_not_matched_insert_all().execute()
        else:
            write_deltalake(table, rows, mode="append", commit_properties=properties)
        return True


class IcebergSink:
    """Appends; the summary of a snapshot tells its query and batch."""

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
            raise PipelineError("Iceberg tables take no changes of a cdc step", "use sqlite or postgresql")
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


def _last_of_each(rows: pyarrow.Table, keys: tuple[str, ...]) -> pyarrow.Table:
    """Of rows with equal keys the last one: a merge takes no two."""
    columns = [rows.column(key).to_pylist() for key in keys]
    places = {key: number for number, key in enumerate(zip(*columns, strict=True))}
    return rows.take(sorted(places.values()))
