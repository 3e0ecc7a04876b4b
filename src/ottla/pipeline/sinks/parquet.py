"""Rows into a folder of Parquet files that any reader takes as it is.

Spark writes a batch into a folder of its own below `_staging`, which readers pass over; then its files are
moved to their places under names that tell query and batch, and a marker is left. A batch that is written
again after a crash first removes what an earlier attempt had moved. A reader may see a part of a batch while
its files are being moved; after the batch, exactly its rows are there. The folder must be on a filesystem
that driver and executors share.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.pipeline.definition import ParquetTarget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_STAGING = "_staging"
_BATCHES = "_batches"


class ParquetSink:
    def __init__(self, target: ParquetTarget) -> None:
        self._root = target.path
        self._partition_by = target.partition_by

    def write(self, rows: DataFrame, query: str, batch: int) -> bool:
        """False: this batch was there already."""
        marker = self._root / _BATCHES / f"{query}-{batch}"
        if marker.exists():
            return False
        staging = self._root / _STAGING / f"{query}-{batch}"
        shutil.rmtree(staging, ignore_errors=True)
        writer = rows.write
        if self._partition_by:
            writer = writer.partitionBy(*self._partition_by)
        writer.parquet(str(staging))
        prefix = f"part-{query}-{batch:06d}-"
        for left in self._root.rglob(f"{prefix}*.parquet"):
            left.unlink()
        for number, written in enumerate(sorted(staging.rglob("*.parquet"))):
            place = self._root / written.relative_to(staging).parent / f"{prefix}{number:04d}.parquet"
            place.parent.mkdir(parents=True, exist_ok=True)
            _move(written, place)
        shutil.rmtree(staging)
        marker.parent.mkdir(exist_ok=True)
        marker.touch()
        _sync_directory(marker.parent)
        self._forget_earlier(query, batch)
        return True

    def _forget_earlier(self, query: str, batch: int) -> None:
        """Only the last batch can come again."""
        (self._root / _BATCHES / f"{query}-{batch - 1}").unlink(missing_ok=True)


def _move(source: Path, place: Path) -> None:
    with source.open("rb") as written:
        os.fsync(written.fileno())
    source.rename(place)
    _sync_directory(place.parent)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
