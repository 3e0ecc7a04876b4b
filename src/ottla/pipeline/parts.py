"""Every source, table and step of a pipeline as a DataFrame; the same code for streams and batches.

Nothing runs here. What Spark does not accept becomes a problem with file and line.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING

from ottla.pipeline.decoding import ORIGIN, bad, decoded, good, with_watermark
from ottla.pipeline.definition import (
    CdcStep,
    DeduplicateStep,
    ExpectStep,
    Pipeline,
    PythonStep,
    SqlStep,
    Step,
    Table,
)
from ottla.pipeline.expectations import kept, quarantined
from ottla.pipeline.graph import inputs_of, steps_in_order
from ottla.pipeline.problems import DefinitionError, PipelineError, Problem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CDC_ORDER = "_cdc_order"
CDC_DELETE = "_cdc_delete"
HIDDEN = (ORIGIN, CDC_ORDER, CDC_DELETE)

_PLACE = re.compile(r"[;(] ?line (\d+),? pos \d+")
_CONDITION = re.compile(r"\[[A-Z_.]+\] ")


class Parts:
    """`frames`: by name. `rejected`: what goes to the dead letters, with `_problem` and `_part`."""

    def __init__(self, pipeline: Pipeline, spark: SparkSession, records: Mapping[str, DataFrame]) -> None:
        """`records` has the raw rows of each source, in a stream or in a batch."""
        self.frames: dict[str, DataFrame] = {}
        self.rejected: list[DataFrame] = []
        self._pipeline = pipeline
        self._spark = spark
        for source in pipeline.sources.values():
            rows = self._checked(pipeline.file, source.line, partial(decoded, records[source.name], source))
            if source.format != "raw":
                self._reject(source.name, bad(rows))
            self._add(source.name, good(rows))
        for table in pipeline.tables.values():
            self._add(table.name, self._checked(pipeline.file, table.line, partial(self._table, table)))
        for step in steps_in_order(pipeline):
            file = step.file if isinstance(step, SqlStep) else pipeline.file
            self._add(step.name, self._checked(file, step.line, partial(self._step, step)))

    def _add(self, name: str, frame: DataFrame) -> None:
        self.frames[name] = frame
        frame.createOrReplaceTempView(name)

    def _reject(self, part: str, rows: DataFrame) -> None:
        from pyspark.sql import functions as sql

        self.rejected.append(rows.withColumn("_part", sql.lit(part)))

    def _table(self, table: Table) -> DataFrame:
        reader = self._spark.read.format(table.format)
        if table.schema:
            reader = reader.schema(table.schema)
        elif table.format == "csv":
            reader = reader.option("header", True).option("inferSchema", True)
        return reader.load(str(table.path.absolute()))

    def _step(self, step: Step) -> DataFrame:
        inputs = [self.frames[name] for name in inputs_of(self._pipeline, step)]
        match step:
            case SqlStep():
                rows = self._spark.sql(step.sql)
                mark = step.watermark
                return rows if mark is None else with_watermark(rows, mark)
            case DeduplicateStep():
                return _deduplicated(inputs[0], step)
            case ExpectStep():
                for each in step.expectations:
                    self._checked(self._pipeline.file, each.line, partial(inputs[0].filter, each.check))
                rejected = quarantined(inputs[0], step)
                if rejected is not None:
                    self._reject(step.name, rejected)
                return kept(inputs[0], step)
            case CdcStep():
                return _marked(inputs[0], step)
            case PythonStep():
                return _called(step, inputs)

    def _checked(self, file: str, line: int, make: Callable[[], DataFrame]) -> DataFrame:
        from pyspark.errors import PySparkException

        try:
            frame = make()
            frame.schema  # noqa: B018  # has Spark analyse it
        except PySparkException as error:
            raise DefinitionError([problem_of(error, file, line)]) from None
        except DefinitionError:
            raise
        except PipelineError as error:
            raise DefinitionError([Problem(file, line, error.text, error.cure)]) from None
        return frame


def problem_of(error: Exception, file: str, line: int) -> Problem:
    """What Spark says about a text that begins at `line`, without its plans."""
    text = str(error).strip()
    place = _PLACE.search(text)
    said = _CONDITION.sub("", text.splitlines()[0], count=1)
    said = said.split(" SQLSTATE:")[0].split(";")[0].strip()
    return Problem(file, line + int(place[1]) - 1 if place else line, said)


def _deduplicated(rows: DataFrame, step: DeduplicateStep) -> DataFrame:
    keys = list(step.keys)
    return rows.dropDuplicatesWithinWatermark(keys) if rows.isStreaming else rows.dropDuplicates(keys)


def _marked(rows: DataFrame, step: CdcStep) -> DataFrame:
    from pyspark.sql import functions as sql

    delete = sql.coalesce(sql.expr(step.delete_when or "false"), sql.lit(False))
    return rows.withColumns({CDC_ORDER: sql.expr(step.order_by), CDC_DELETE: delete})


def _called(step: PythonStep, inputs: list[DataFrame]) -> DataFrame:
    from pyspark.sql import DataFrame

    where = f"{step.file}:{step.function}"
    spec = importlib.util.spec_from_file_location(f"ottla_step_{step.name}", step.file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        function = getattr(module, step.function, None)
        if function is not None:
            result = function(*inputs)
    except Exception as error:  # anything may happen in a user's code, and has its line there
        raise DefinitionError([_problem_within(error, str(step.file))]) from error
    if function is None:
        there = ", ".join(_functions(module)) or "none"
        text = f"there is no function {step.function}"
        raise DefinitionError([Problem(str(step.file), 0, text, f"there are {there}")])
    if not isinstance(result, DataFrame):
        given = type(result).__name__
        raise DefinitionError([Problem(where, 0, f"the function gave {given}", "return a DataFrame")])
    return result


def _functions(module: ModuleType) -> list[str]:
    own = module.__name__
    return [name for name, each in vars(module).items() if getattr(each, "__module__", None) == own]


def _problem_within(error: Exception, file: str) -> Problem:
    from pyspark.errors import PySparkException

    if isinstance(error, SyntaxError):
        return Problem(file, error.lineno or 0, f"SyntaxError: {error.msg}")
    line = _last_line(error, file)
    if isinstance(error, PySparkException):
        return Problem(file, line, problem_of(error, file, line).text)
    return Problem(file, line, f"{type(error).__name__}: {error}")


def _last_line(error: BaseException, file: str) -> int:
    import traceback

    lines = [
        frame.lineno or 0 for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file
    ]
    return lines[-1] if lines else 0
