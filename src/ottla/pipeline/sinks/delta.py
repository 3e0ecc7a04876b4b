"""Rows into Delta tables; query and batch are part of each commit, so no batch enters twice.

Rows are appended, or merged by `keys`. Changes (a `cdc` step) are applied in their order per key, however
late they arrive: a second table beside ours, `…_versions`, remembers the order of each key's last change,
deleted keys included. Two tables have no common commit, so ours is written first and the versions after it,
each with the batch: a crash between them finds ours written and the versions as they were before, and only
the latter are made good. For that, one query at a time may write to a table that takes changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.pipeline.definition import DeltaTarget
from ottla.pipeline.parts import CDC_DELETE, CDC_ORDER
from ottla.pipeline.problems import PipelineError

if TYPE_CHECKING:
    import pyarrow
    from deltalake import CommitProperties, DeltaTable


class DeltaSink:
    def __init__(self, target: DeltaTarget) -> None:
        self._target = target
        self._versions_path = f"{target.path.rstrip('/')}_versions"

    def write(self, rows: pyarrow.Table, query: str, batch: int) -> bool:
        """False: this batch was there already."""
        try:
            from deltalake import CommitProperties, Transaction, write_deltalake
        except ImportError:
            raise PipelineError("Delta needs the package deltalake", "pip install deltalake") from None
        metadata = {"ottla.query": query, "ottla.batch": str(batch)}
        commit = CommitProperties(app_transactions=[Transaction(query, batch)], custom_metadata=metadata)
        if CDC_ORDER in rows.column_names:
            return self._apply(rows, query, batch, commit)
        table = self._opened(self._target.path, rows.schema, self._target.partition_by)
        if _has(table, query, batch):
            return False
        if self._target.keys:
            rows = _last_of_each(rows, self._target.keys)
            self._merge(table, rows, commit).when_matched_update_all().when_not_matched_insert_all().execute()
        else:
            write_deltalake(table, rows, mode="append", commit_properties=commit)
        return True

    def _apply(self, rows: pyarrow.Table, query: str, batch: int, commit: CommitProperties) -> bool:
        import pyarrow.compute

        keys = self._target.keys
        if not keys:
            raise PipelineError(f"changes go to {self._target.path} without a key", 'write keys = ["…"]')
        rows = rows.filter(pyarrow.compute.field(CDC_ORDER).is_valid()).sort_by(CDC_ORDER)
        rows = _last_of_each(rows, keys)
        visible = rows.drop_columns([CDC_ORDER, CDC_DELETE])
        table = self._opened(self._target.path, visible.schema, self._target.partition_by)
        orders = rows.select([*keys, CDC_ORDER])
        versions = self._opened(self._versions_path, orders.schema, ())
        is_new = not _has(table, query, batch)
        if is_new:
            merge = self._merge(table, _newer(rows, versions, keys), commit)
            values = {f"`{name}`": f"s.`{name}`" for name in visible.column_names}
            merge.when_matched_delete(f"s.{CDC_DELETE}").when_matched_update(values).when_not_matched_insert(
                values, f"NOT s.{CDC_DELETE}"
            ).execute()
        if not _has(versions, query, batch):
            merge = self._merge(versions, orders, commit)
            later = f"s.{CDC_ORDER} > t.{CDC_ORDER}"
            merge.when_matched_update_all(later).when_not_matched_insert_all().execute()
        return is_new

    def _opened(self, path: str, schema: pyarrow.Schema, partition_by: tuple[str, ...]) -> DeltaTable:
        """The table, made where it is not there."""
        from deltalake import DeltaTable

        if DeltaTable.is_deltatable(path):
            return DeltaTable(path)
        return DeltaTable.create(path, schema, partition_by=list(partition_by) or None)

    def _merge(self, table: DeltaTable, rows: pyarrow.Table, commit: CommitProperties) -> Any:
        same = " AND ".join(f"t.`{key}` = s.`{key}`" for key in self._target.keys)
        return table.merge(rows, same, "s", "t", commit_properties=commit)


def _has(table: DeltaTable, query: str, batch: int) -> bool:
    last = table.transaction_version(query)
    return last is not None and last >= batch


def _newer(rows: pyarrow.Table, versions: DeltaTable, keys: tuple[str, ...]) -> pyarrow.Table:
    """Without the changes that came too late: a later one of their key was applied before."""
    import pyarrow.compute

    concerned = pyarrow.compute.field(keys[0]).isin(rows.column(keys[0]))
    known = versions.to_pyarrow_dataset().to_table(filter=concerned).to_pylist()
    applied = {_picked(row, keys): row[CDC_ORDER] for row in known}
    wanted = [
        (key := _picked(row, keys)) not in applied or row[CDC_ORDER] > applied[key]
        for row in rows.select([*keys, CDC_ORDER]).to_pylist()
    ]
    return rows.filter(pyarrow.array(wanted, pyarrow.bool_()))


def _last_of_each(rows: pyarrow.Table, keys: tuple[str, ...]) -> pyarrow.Table:
    """Of rows with equal keys the last one: a merge takes no two."""
    places = {_picked(row, keys): number for number, row in enumerate(rows.select(keys).to_pylist())}
    return rows.take(sorted(places.values()))


def _picked(row: dict[str, Any], keys: tuple[str, ...]) -> tuple[object, ...]:
    return tuple(row[key] for key in keys)
