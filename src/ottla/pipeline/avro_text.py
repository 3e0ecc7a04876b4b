"""Avro values as JSON texts, row by row in Python: Spark's own reader of avro needs a jar.

Plain values and those in the framing of Confluent's clients (a zero byte and four bytes of a schema's
number) are told apart by that byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.pipeline.problems import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import Column

_NO_JSON = "\x00"  # becomes a corrupt record, as it is none
_FRAME_BYTES = 5


def avro_to_json(value: Column, avro_schema: str) -> Column:
    try:
        import fastavro
    except ImportError:
        raise PipelineError("avro needs the package fastavro", "pip install 'ottla[avro]'") from None
    import json

    from pyspark.sql import functions as sql

    schema = json.loads(avro_schema)
    fastavro.parse_schema(schema)

    def decode(data: bytes | None) -> str | None:
        import io

        if data is None:
            return None
        for skipped in (_FRAME_BYTES, 0) if data[:1] == b"\x00" else (0,):
            stream = io.BytesIO(data[skipped:])
            try:
                row = fastavro.schemaless_reader(stream, schema, schema)
            except Exception:
                continue  # not written so
            if not stream.read(1):
                return json.dumps(row, default=str)
        return _NO_JSON

    return sql.udf(decode, "string")(value)
