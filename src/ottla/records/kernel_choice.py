"""Which kernel runs: the compiled one where it was built, else its source; OTTLA_KERNEL overrides.

`OTTLA_KERNEL=python` takes the source although a compiled one is there, `OTTLA_KERNEL=compiled` insists
on the compiled one. Callers look functions up in `active` at every call, so that tests can swap it.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING

__all__ = ["active", "kernel_is_compiled"]

if TYPE_CHECKING:
    from ottla.records import kernel as active
else:

    def _choose():
        choice = os.environ.get("OTTLA_KERNEL", "")
        if choice not in ("", "python", "compiled"):
            raise ValueError(f"OTTLA_KERNEL is {choice!r}; it may be 'python' or 'compiled'")
        if choice != "python":
            try:
                return importlib.import_module("ottla.records._kernel")
            except ModuleNotFoundError:
                if choice == "compiled":
                    raise
        return importlib.import_module("ottla.records.kernel")

    active = _choose()


def kernel_is_compiled() -> bool:
    return active.is_compiled()
