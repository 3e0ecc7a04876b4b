"""Both kernels, one after the other: what holds for one must hold for the other."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

from ottla.records import kernel_choice


def compiled_kernel() -> ModuleType:
    try:
        return importlib.import_module("ottla.records._kernel")
    except ModuleNotFoundError:
        pytest.skip("no compiled kernel was built here (no C compiler, or OTTLA_NO_KERNEL)")


def source_kernel() -> ModuleType:
    return importlib.import_module("ottla.records.kernel")


@pytest.fixture(params=["compiled", "source"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The kernel that everything in the test runs on."""
    chosen = compiled_kernel() if request.param == "compiled" else source_kernel()
    monkeypatch.setattr(kernel_choice, "active", chosen)
    return chosen


@pytest.fixture
def both_kernels() -> tuple[ModuleType, ModuleType]:
    return compiled_kernel(), source_kernel()
