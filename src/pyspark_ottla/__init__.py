"""Makes `.format("ottla")` known to Spark: it imports every top-level module named pyspark_* and registers
its `DefaultSource`. Nothing else belongs here.
"""

from __future__ import annotations

from ottla.spark.source import TopicSource as DefaultSource

__all__ = ["DefaultSource"]
