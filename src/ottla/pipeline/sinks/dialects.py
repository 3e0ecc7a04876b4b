"""What differs between the databases that a sink can write to: connecting, types, placeholders."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ottla.pipeline.problems import PipelineError

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True, slots=True)
class Dialect:
    connect: Callable[[str], Any]  # a connection of the DB-API
    begin: Callable[[Any, str], None]  # with a cursor: a transaction that alone writes to a table of ours
    placeholder: str
    types: Mapping[str, str]  # by kind of Arrow type
    value: Callable[[Any], Any]  # a Python value as the driver takes it
    temporary: str  # how a table for this connection alone begins


def _connect_sqlite(path: str) -> Any:
    import sqlite3

    connection = sqlite3.connect(path, timeout=60, isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _begin_sqlite(cursor: Any, _table: str) -> None:
    cursor.execute("BEGIN IMMEDIATE")  # readers go on; another writer waits, and then sees our batch


def _connect_postgresql(address: str) -> Any:
    try:
        import psycopg
    except ImportError:
        raise PipelineError("PostgreSQL needs the package psycopg", "pip install 'psycopg[binary]'") from None
    return psycopg.connect(address)


def _begin_postgresql(cursor: Any, table: str) -> None:
    """Only sinks heed this lock; readers, and writers of other tables, go on."""
    cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (f"ottla {table}",))


def _sqlite_value(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    return json.dumps(value, default=str) if isinstance(value, list | dict) else value


def _postgresql_value(value: Any) -> Any:
    return json.dumps(value, default=str) if isinstance(value, list | dict) else value


SQLITE = Dialect(
    _connect_sqlite,
    _begin_sqlite,
    "?",
    {
        "boolean": "INTEGER",
        "integer": "INTEGER",
        "floating": "REAL",
        "decimal": "TEXT",
        "binary": "BLOB",
        "date": "TEXT",
        "timestamp": "TEXT",
        "nested": "TEXT",
        "text": "TEXT",
    },
    _sqlite_value,
    "CREATE TEMP TABLE",
)
POSTGRESQL = Dialect(
    _connect_postgresql,
    _begin_postgresql,
    "%s",
    {
        "boolean": "BOOLEAN",
        "integer": "BIGINT",
        "floating": "DOUBLE PRECISION",
        "decimal": "NUMERIC",
        "binary": "BYTEA",
        "date": "DATE",
        "timestamp": "TIMESTAMPTZ",
        "nested": "JSONB",
        "text": "TEXT",
    },
    _postgresql_value,
    "CREATE TEMP TABLE",
)
DIALECTS = {"sqlite": SQLITE, "postgresql": POSTGRESQL}


def kind_of(kind: pyarrow.DataType) -> str:
    from pyarrow import types

    tests = {
        "boolean": types.is_boolean,
        "integer": types.is_integer,
        "floating": types.is_floating,
        "decimal": types.is_decimal,
        "binary": types.is_binary,
        "date": types.is_date,
        "timestamp": types.is_timestamp,
        "nested": types.is_nested,
    }
    return next((name for name, test in tests.items() if test(kind)), "text")
