"""What rows are expected to be, and what happens to those that are not: warn, drop, quarantine, fail.

Every expectation counts its rows, so that a run shows how many failed; a check that gives NULL has failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.pipeline.decoding import PROBLEM
from ottla.pipeline.definition import Expectation, ExpectStep

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def kept(rows: DataFrame, step: ExpectStep) -> DataFrame:
    """Rows that go on. One that is expected not to be there at all fails the query when it comes."""
    from pyspark.sql import functions as sql

    counts = [sql.count(sql.lit(1)).alias("rows")]
    for number, each in enumerate(step.expectations):
        counts.append(sql.count(sql.when(~_holds(each), 1)).alias(f"failed_{number}"))
    if rows.isStreaming:
        rows = rows.observe(step.name, *counts)
    for each in step.expectations:
        if each.action in ("drop", "quarantine"):
            rows = rows.filter(_holds(each))
        elif each.action == "fail":
            text = sql.lit(f"expectation {each.name!r} of step {step.name} does not hold: {each.check}")
            rows = rows.filter(sql.when(_holds(each), True).otherwise(sql.raise_error(text).cast("boolean")))
    return rows


def quarantined(rows: DataFrame, step: ExpectStep) -> DataFrame | None:
    """Rows for the dead letters, with the name of the first expectation that they do not meet."""
    from pyspark.sql import functions as sql

    problem = None
    for each in step.expectations:
        if each.action == "quarantine":
            broken = ~_holds(each)
            reason = f"expectation {each.name!r} does not hold: {each.check}"
            problem = sql.when(broken, reason) if problem is None else problem.when(broken, reason)
    if problem is None:
        return None
    return rows.withColumn(PROBLEM, problem).filter(sql.col(PROBLEM).isNotNull())


def _holds(expectation: Expectation) -> Column:
    from pyspark.sql import functions as sql

    return sql.coalesce(sql.expr(expectation.check), sql.lit(False))
