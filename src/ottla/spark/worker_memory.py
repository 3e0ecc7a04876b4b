"""Keeps the garbage collections of Spark's workers short.

Spark has each worker collect after each task. That walks through all that was ever imported, tens of
milliseconds of processor time: more than a small range takes to be read.
"""

from __future__ import annotations

import gc
import sys

_WORKERS = ("pyspark.daemon", "ottla.spark.worker_daemon")


def set_aside_what_stays() -> None:
    """Modules and clients last as long as their process: collections need not look at them again."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if getattr(spec, "name", "") in _WORKERS:  # nobody else's garbage is our business
        gc.collect()
        gc.freeze()
