"""A pipeline at work: a streaming query for each sink, and one for the dead letters.

Queries fail and stop alone; the run ends when one of them fails for good, when all are done (`once`), or when
it is told to stop. What a batch was doing at that moment is done again at the next start, and counts once.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.client.access import Access
from ottla.pipeline import dead_letters, records
from ottla.pipeline.definition import Pipeline, Sink, TopicTarget
from ottla.pipeline.failure_reasons import reason
from ottla.pipeline.parts import Parts, problem_of
from ottla.pipeline.problems import DefinitionError, PipelineError
from ottla.pipeline.progress import Progress, progress_of
from ottla.pipeline.query_ids import query_id
from ottla.pipeline.sinks.tables import write_batch
from ottla.pipeline.sinks.topic import delivery, topic_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

DEAD_LETTERS = "dead_letters"
_LOOK_SECONDS = 0.2
# Spark gives its Python workers ten seconds to start, and no setting changes that: on a busy machine they may
# need more. Whatever fails with these words is started again.
_PASSING = "Python worker failed to connect back"
_RESTARTS_MAX = 10

_Start = Callable[[], "StreamingQuery | None"]


@dataclass(frozen=True, slots=True)
class Failure:
    sink: str
    text: str


class Run:
    def __init__(self, pipeline: Pipeline, spark: SparkSession, access: Access, *, once: bool) -> None:
        self._pipeline = pipeline
        self._spark = spark
        self._access = access
        self._once = once
        self._is_stopping = False
        self._starters: dict[str, tuple[int, _Start]] = {  # by query: its line in the definition
            sink.name: (sink.line, partial(self._start_sink, sink)) for sink in pipeline.sinks.values()
        }
        self._starters[DEAD_LETTERS] = (0, self._start_dead_letters)
        self._restarts: Counter[str] = Counter()
        self.queries: dict[str, StreamingQuery] = {}

    def start(self) -> None:
        """Raises DefinitionError when Spark does not take a query."""
        for name in self._starters:
            if not self._is_stopping:
                self._start(name)

    def stop(self) -> None:
        """From a signal handler too: the run ends soon."""
        self._is_stopping = True

    def watch(self, look: Callable[[list[Progress]], None]) -> Failure | None:
        """Waits for the end, showing progress on the way; what made the run fail, if something did."""
        try:
            while not self._is_stopping:
                look(self.progress())
                # Asked before the errors: a query that fails in between is looked at once more.
                is_active = any(query.isActive for query in self.queries.values())
                for name, query in list(self.queries.items()):
                    error = query.exception()
                    if error is not None:
                        if not self._may_start_again(name, error):
                            return Failure(name, reason(error))
                        self._start(name)
                        is_active = True
                if not is_active:
                    break
                time.sleep(_LOOK_SECONDS)
            return None
        finally:
            for query in self.queries.values():
                query.stop()
            look(self.progress())

    def progress(self) -> list[Progress]:
        return [progress_of(name, query) for name, query in self.queries.items()]

    # -- starting ------------------------------------------------------------------------------------------

    def _parts(self, name: str) -> Parts:
        """Each query reads the topics for itself, and mirrors its progress as a group of its own."""
        group = f"{self._pipeline.name}.{name}"
        return Parts(
            self._pipeline,
            self._spark,
            records.streams(self._pipeline, self._spark, self._access, group),
        )

    def _start_sink(self, sink: Sink) -> StreamingQuery:
        rows = self._parts(sink.name).frames[sink.input]
        target = sink.target
        if isinstance(target, TopicTarget):
            writer = self._topic_writer(topic_rows(rows, target), target.topic, delivery(target))
            return self._begin(sink.name, writer.outputMode(sink.mode), sink.every)
        query = query_id(self._checkpoint(sink.name))

        def write(batch: DataFrame, number: int) -> None:
            write_batch(batch, target, query, number)

        return self._begin(sink.name, rows.writeStream.foreachBatch(write).outputMode(sink.mode), sink.every)

    def _start_dead_letters(self) -> StreamingQuery | None:
        rejected = self._parts(DEAD_LETTERS).rejected
        if not rejected:
            return None
        rows = dead_letters.as_records(self._pipeline.name, rejected)
        writer = self._topic_writer(rows, self._pipeline.dead_letters, "exactly-once")
        return self._begin(DEAD_LETTERS, writer.option("includeHeaders", "true"), "1 second")

    def _topic_writer(self, rows: DataFrame, topic: str, guarantee: str) -> DataStreamWriter:
        return (
            rows.writeStream.format("ottla")
            .options(**records.broker_options(self._access))
            .option("topic", topic)
            .option("delivery", guarantee)
        )

    def _begin(self, name: str, writer: DataStreamWriter, every: str) -> StreamingQuery:
        writer = writer.queryName(f"{self._pipeline.name}.{name}").option(
            "checkpointLocation", str(self._checkpoint(name))
        )
        if self._once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=every).start()

    def _checkpoint(self, name: str) -> Path:
        return self._pipeline.state.absolute() / "checkpoints" / name

    def _start(self, name: str) -> None:
        from pyspark.errors import PySparkException

        line, start = self._starters[name]
        while True:
            try:
                query = start()
            except PySparkException as error:
                if self._may_start_again(name, error):
                    continue
                self._stop_all()
                raise DefinitionError([problem_of(error, self._pipeline.file, line)]) from None
            except PipelineError:
                self._stop_all()
                raise
            if query is not None:
                self.queries[name] = query
            return

    def _may_start_again(self, name: str, error: Exception) -> bool:
        self._restarts[name] += _PASSING in str(error)
        return _PASSING in str(error) and self._restarts[name] <= _RESTARTS_MAX

    def _stop_all(self) -> None:
        for query in self.queries.values():
            query.stop()
