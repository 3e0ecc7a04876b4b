"""Rows into a table of SQLite or PostgreSQL, each batch in one transaction that also notes the batch.

A batch that was written before is recognised by that note, so a crash at any moment neither loses nor
doubles rows. With `keys` rows replace those of the same keys. Changes (a `cdc` step) are applied in their
order per key, however late they arrive: a table beside ours remembers the order of each key's last change,
deleted keys included. With `unique` a ledger remembers ids for good, and rows of known ids are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from ottla.pipeline.definition import DatabaseTarget
from ottla.pipeline.parts import CDC_DELETE, CDC_ORDER
from ottla.pipeline.problems import PipelineError
from ottla.pipeline.sinks.dialects import DIALECTS, Dialect, kind_of

if TYPE_CHECKING:
    import pyarrow

BATCHES = "ottla_batches"  # the last batch of each query that wrote to this database
_INCOMING = "ottla_incoming"


class DatabaseSink:
    def __init__(self, target: DatabaseTarget) -> None:
        self._target = target
        self._dialect = DIALECTS[target.kind]
        self._versions = f"{target.table}_versions"
        self._ledger = f"{target.table}_ledger"

    def write(self, rows: pyarrow.Table, query: str, batch: int) -> bool:
        """False: this batch was there already."""
        with closing(self._dialect.connect(self._target.address)) as connection:
            run = _Statements(connection, self._dialect)
            with run.transaction(BATCHES):
                run(f"CREATE TABLE IF NOT EXISTS {BATCHES} (query TEXT PRIMARY KEY, batch BIGINT NOT NULL)")
            with run.transaction(self._target.table):
                is_new = _note(run, query, batch)
                if is_new and rows.num_rows:
                    self._apply(run, rows)
                return is_new

    def _apply(self, run: _Statements, rows: pyarrow.Table) -> None:
        is_cdc = CDC_ORDER in rows.column_names
        columns = [name for name in rows.column_names if name not in (CDC_ORDER, CDC_DELETE)]
        self._check_columns(columns, is_cdc)
        self._make_tables(run, rows, columns, is_cdc)
        self._load(run, rows)
        if self._target.unique:
            self._leave_out_known(run)
        if is_cdc:
            self._leave_out_outdated(run)
        if self._target.keys:
            self._remove_replaced(run)
        listed = _listed(columns)
        wanted = " WHERE NOT _cdc_delete" if is_cdc else ""
        run(f"INSERT INTO {self._target.table} ({listed}) SELECT {listed} FROM {_INCOMING}{wanted}")
        run(f"DROP TABLE {_INCOMING}")

    def _check_columns(self, columns: Sequence[str], is_cdc: bool) -> None:
        target = self._target
        for name in (*target.keys, *target.unique):
            if name not in columns:
                raise PipelineError(f"{name} is no column of what goes to {target.table}", ", ".join(columns))
        if is_cdc and not target.keys:
            raise PipelineError(
                f"changes go to {target.table} without a key", 'write keys = ["…"] in its sink'
            )

    def _make_tables(
        self, run: _Statements, rows: pyarrow.Table, columns: Sequence[str], is_cdc: bool
    ) -> None:
        target = self._target
        types = {field.name: self._dialect.types[kind_of(field.type)] for field in rows.schema}
        declared = [f'"{name}" {types[name]}' for name in columns]
        primary = [f"PRIMARY KEY ({_listed(target.keys)})"] if target.keys else []
        run(f"CREATE TABLE IF NOT EXISTS {target.table} ({', '.join(declared + primary)})")
        if target.unique:
            ids = [f'"{name}" {types[name]}' for name in target.unique]
            primary = [f"PRIMARY KEY ({_listed(target.unique)})"]
            run(f"CREATE TABLE IF NOT EXISTS {self._ledger} ({', '.join(ids + primary)})")
        if is_cdc:
            keys = [f'"{name}" {types[name]}' for name in target.keys]
            rest = [f"version {types[CDC_ORDER]} NOT NULL", f"PRIMARY KEY ({_listed(target.keys)})"]
            run(f"CREATE TABLE IF NOT EXISTS {self._versions} ({', '.join(keys + rest)})")
        everything = [f'"{field.name}" {types[field.name]}' for field in rows.schema]
        run(f"{self._dialect.temporary} {_INCOMING} ({', '.join(everything)})")

    def _load(self, run: _Statements, rows: pyarrow.Table) -> None:
        """One row for each id and key: the first of an id, the last change of a key."""
        wanted = rows.to_pylist()
        target = self._target
        if target.unique:
            wanted = list({_picked(row, target.unique): row for row in reversed(wanted)}.values())[::-1]
        if target.keys:
            if CDC_ORDER in rows.column_names:
                wanted = [row for row in wanted if row[CDC_ORDER] is not None]
                wanted.sort(key=lambda row: row[CDC_ORDER])
            wanted = list({_picked(row, target.keys): row for row in wanted}.values())
        value = self._dialect.value
        places = ", ".join("?" * len(rows.column_names))
        run.many(
            f"INSERT INTO {_INCOMING} VALUES ({places})",
            [tuple(value(row[name]) for name in rows.column_names) for row in wanted],
        )

    def _leave_out_known(self, run: _Statements) -> None:
        ids = _listed(self._target.unique)
        same = _same(_INCOMING, self._ledger, self._target.unique)
        run(f"DELETE FROM {_INCOMING} WHERE EXISTS (SELECT 1 FROM {self._ledger} WHERE {same})")
        run(f"INSERT INTO {self._ledger} ({ids}) SELECT {ids} FROM {_INCOMING}")

    def _leave_out_outdated(self, run: _Statements) -> None:
        keys = _listed(self._target.keys)
        same = _same(_INCOMING, self._versions, self._target.keys)
        newer = f"{self._versions}.version >= {_INCOMING}.{CDC_ORDER}"
        run(f"DELETE FROM {_INCOMING} WHERE EXISTS (SELECT 1 FROM {self._versions} WHERE {same} AND {newer})")
        run(f"DELETE FROM {self._versions} WHERE EXISTS (SELECT 1 FROM {_INCOMING} WHERE {same})")
        run(f"INSERT INTO {self._versions} ({keys}, version) SELECT {keys}, {CDC_ORDER} FROM {_INCOMING}")

    def _remove_replaced(self, run: _Statements) -> None:
        table = self._target.table
        same = _same(_INCOMING, table, self._target.keys)
        run(f"DELETE FROM {table} WHERE EXISTS (SELECT 1 FROM {_INCOMING} WHERE {same})")


class _Statements:
    """Runs SQL that is written with ? as the placeholder."""

    def __init__(self, connection: Any, dialect: Dialect) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self._begin = dialect.begin
        self._placeholder = dialect.placeholder

    @contextmanager
    def transaction(self, table: str) -> Iterator[None]:
        """Sinks that write to this table wait for each other; what fails within leaves nothing behind."""
        self._begin(self._cursor, table)
        yield
        self._connection.commit()

    def __call__(self, sql: str, values: Sequence[object] = ()) -> Any:
        self._cursor.execute(sql.replace("?", self._placeholder), values)
        return self._cursor

    def many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        self._cursor.executemany(sql.replace("?", self._placeholder), rows)


def _note(run: _Statements, query: str, batch: int) -> bool:
    """Before anything else in the transaction. False: a batch as late as this one is noted already."""
    noted = run(
        f"INSERT INTO {BATCHES} VALUES (?, ?) ON CONFLICT (query) DO UPDATE SET batch = excluded.batch "
        f"WHERE {BATCHES}.batch < excluded.batch",
        (query, batch),
    )
    return bool(noted.rowcount)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _same(left: str, right: str, names: Sequence[str]) -> str:
    return " AND ".join(f'{left}."{name}" = {right}."{name}"' for name in names)


def _picked(row: dict[str, Any], names: Sequence[str]) -> tuple[object, ...]:
    return tuple(row[name] for name in names)
