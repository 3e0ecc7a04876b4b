"""Topics as a Spark data source: `.format("ottla")`, with the options and columns of Spark's own Kafka
connector. Batch reads are in `reader`, streams in `stream`, writing in `sink`.

Spark asks for the schema alone in a process of its own, each time that a job names the source: clients and
whatever else reads and writes are imported when a reader or writer is wanted.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from ottla.spark.columns import check_types, ddl
from ottla.spark.options import check_chosen, read_columns, read_options, refuse_secrets, write_options

if TYPE_CHECKING:
    from ottla.spark.reader import TopicReader
    from ottla.spark.sink import StreamSink, TopicSink
    from ottla.spark.stream import TopicStreamReader

_PUSHING_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"


class TopicSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ottla"

    def schema(self) -> str:
        refuse_secrets(self.options)
        return ddl(read_columns(self.options))

    def reader(self, schema: StructType) -> TopicReader:
        from ottla.spark.reader import FilteringTopicReader, TopicReader

        options = replace(read_options(self.options, streaming=False), columns=self._columns(schema))
        return FilteringTopicReader(options) if _filters_are_pushed() else TopicReader(options)

    def streamReader(self, schema: StructType) -> TopicStreamReader:  # noqa: N802  # Spark's name
        from ottla.spark.stream import TopicStreamReader

        options = replace(read_options(self.options, streaming=True), columns=self._columns(schema))
        return TopicStreamReader(options)

    def writer(self, schema: StructType, overwrite: bool) -> TopicSink:
        from ottla.spark.sink import TopicSink

        return TopicSink(write_options(self.options, streaming=False), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamSink:  # noqa: N802
        from ottla.spark.sink import StreamSink

        return StreamSink(write_options(self.options, streaming=True), schema)

    def _columns(self, schema: StructType) -> tuple[str, ...]:
        columns = check_types((field.name, field.dataType.simpleString()) for field in schema.fields)
        check_chosen(self.options, columns)
        return columns


def _filters_are_pushed() -> bool:
    """Whether this is the process that pushes filters: no other one has its module."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _PUSHING_WORKER in sys.modules or getattr(spec, "name", "") == _PUSHING_WORKER
