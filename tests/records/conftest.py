"""Both kernels, one after the other: what holds for one must hold for the other."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import NamedTuple

import pytest

from ottla.records import kernel_choice


class Kernels(NamedTuple):
    records: ModuleType
    header: ModuleType
    compaction: ModuleType
    scan: ModuleType
    columns: ModuleType
    rows: ModuleType


def compiled_kernels() -> Kernels:
    try:
        return Kernels(
            importlib.import_module("ottla.records._kernel"),
            importlib.import_module("ottla.records._kernel_header"),
            importlib.import_module("ottla.records._kernel_compaction"),
            importlib.import_module("ottla.records._kernel_scan"),
            importlib.import_module("ottla.records._kernel_columns"),
            importlib.import_module("ottla.records._kernel_rows"),
        )
    except ModuleNotFoundError:
        pytest.skip("no compiled kernel was built here (no C compiler, or OTTLA_NO_KERNEL)")


def source_kernels() -> Kernels:
    return Kernels(
        importlib.import_module("ottla.records.kernel"),
        importlib.import_module("ottla.records.kernel_header"),
        importlib.import_module("ottla.records.kernel_compaction"),
        importlib.import_module("ottla.records.kernel_scan"),
        importlib.import_module("ottla.records.kernel_columns"),
        importlib.import_module("ottla.records.kernel_rows"),
    )


@pytest.fixture(params=["compiled", "source"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Kernels:
    """The kernels that everything in the test runs on."""
    chosen = compiled_kernels() if request.param == "compiled" else source_kernels()
    monkeypatch.setattr(kernel_choice, "record_kernel", chosen.records)
    monkeypatch.setattr(kernel_choice, "header_kernel", chosen.header)
    monkeypatch.setattr(kernel_choice, "compaction_kernel", chosen.compaction)
    monkeypatch.setattr(kernel_choice, "scan_kernel", chosen.scan)
    monkeypatch.setattr(kernel_choice, "columns_kernel", chosen.columns)
    monkeypatch.setattr(kernel_choice, "rows_kernel", chosen.rows)
    return chosen


@pytest.fixture
def both_kernels() -> tuple[Kernels, Kernels]:
    """Compiled and source."""
    return compiled_kernels(), source_kernels()
