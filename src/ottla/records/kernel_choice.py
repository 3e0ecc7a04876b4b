"""Which kernel runs: the compiled one where it was built, else its source; OTTLA_KERNEL overrides.

`OTTLA_KERNEL=python` takes the source although a compiled one is there, `OTTLA_KERNEL=compiled` insists
on the compiled one. Callers look functions up at every call, so that tests can swap the modules.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING

from ottla import compiled_modules

__all__ = [
    "columns_kernel",
    "compaction_kernel",
    "header_kernel",
    "kernel_is_compiled",
    "record_kernel",
    "rows_kernel",
    "scan_kernel",
]

if TYPE_CHECKING:
    from ottla.records import kernel as record_kernel
    from ottla.records import kernel_columns as columns_kernel
    from ottla.records import kernel_compaction as compaction_kernel
    from ottla.records import kernel_header as header_kernel
    from ottla.records import kernel_rows as rows_kernel
    from ottla.records import kernel_scan as scan_kernel
else:

    def _choose(name):
        choice = os.environ.get("OTTLA_KERNEL", "")
        if choice not in ("", "python", "compiled"):
            raise ValueError(f"OTTLA_KERNEL is {choice!r}; it may be 'python' or 'compiled'")
        if choice != "python":
            try:
                return importlib.import_module(f"ottla.records._{name}")
            except ModuleNotFoundError:
                if choice == "compiled":
                    raise
        return importlib.import_module(f"ottla.records.{name}")

    record_kernel = _choose("kernel")
    header_kernel = _choose("kernel_header")
    compaction_kernel = _choose("kernel_compaction")
    scan_kernel = _choose("kernel_scan")
    columns_kernel = _choose("kernel_columns")
    rows_kernel = _choose("kernel_rows")


def kernel_is_compiled() -> bool:
    """Whether all that can be compiled is, the modules of `compiled_modules` too."""
    kernels = (record_kernel, header_kernel, compaction_kernel, scan_kernel, columns_kernel, rows_kernel)
    return compiled_modules.are_compiled() and all(kernel.is_compiled() for kernel in kernels)
