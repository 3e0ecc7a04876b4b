"""What a reading or a poll gives as Arrow columns (see `records.columns`), and for the libraries above Arrow.

Everything here needs pyarrow, and asks for it only when it is called.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from ottla.client.errors import ClientError
from ottla.records.columns import Columns, arrow

if TYPE_CHECKING:
    import pyarrow

ROWS_MAX = 50_000
"""Rows of one record batch: enough to forget the cost of a batch, few enough to stay in the cache."""

_POLL_SECONDS = 1.0


class LibraryMissing(ClientError, ImportError):
    """What a call converts to is not installed."""


class Source(Protocol):
    """What columns are filled from."""

    @property
    def is_over(self) -> bool: ...

    @property
    def is_endless(self) -> bool: ...

    def poll_into(self, columns: Columns, timeout: float) -> int: ...


def record_batches(source: Source, columns: Columns) -> Iterator[pyarrow.RecordBatch]:
    """As full as they get; of an endless source whatever has come."""
    while not source.is_over:
        while not columns.is_full and not source.is_over:
            if source.poll_into(columns, _POLL_SECONDS) and source.is_endless:
                break
        if columns.rows:
            yield columns.take()


def as_table(batches: Sequence[pyarrow.RecordBatch], columns: Columns) -> pyarrow.Table:
    return arrow().Table.from_batches(batches, schema=columns.schema)


def as_pandas(table: pyarrow.Table) -> Any:
    _needed("pandas", "to_pandas")
    return table.to_pandas()


def as_polars(table: pyarrow.Table) -> Any:
    return _needed("polars", "to_polars").from_arrow(table)


def _needed(library: str, call: str) -> Any:
    try:
        return import_module(library)
    except ModuleNotFoundError as error:
        raise LibraryMissing(f"{call} needs {library}", f"pip install {library}") from error
