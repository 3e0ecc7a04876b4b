"""SQL over the DB-API connection that the user has, SQLite's or PostgreSQL's, in the driver's own style."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ottla.client.errors import InvalidSetting

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?")
_MARKS = {"qmark": "?", "format": "%s", "pyformat": "%s"}


def table_name(name: str) -> str:
    """It becomes part of statements, so that only plain names are taken."""
    if not _NAME.fullmatch(name):
        raise InvalidSetting(f"{name!r} is no name of a table", "use letters, digits and underscores")
    return name


def execute(connection: Any, statement: str, values: Sequence[Any] = ()) -> Any:
    """Runs a statement written with `?` in the connection's current transaction; returns the cursor."""
    mark = _mark(connection)
    cursor = connection.cursor()
    cursor.execute(statement if mark == "?" else statement.replace("?", mark), tuple(values))
    return cursor


def is_sqlite(connection: Any) -> bool:
    return type(connection).__module__.partition(".")[0] == "sqlite3"


def _mark(connection: Any) -> str:
    driver = type(connection).__module__.partition(".")[0]
    style = getattr(import_module(driver), "paramstyle", None)
    if style not in _MARKS:
        raise InvalidSetting(
            f"the driver {driver} has the parameter style {style}", f"known are {', '.join(_MARKS)}"
        )
    return _MARKS[style]
