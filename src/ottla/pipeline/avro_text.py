"""Avro values as JSON texts, row by row in Python: Spark's own reader of avro needs a jar.

Plain values and those in the framing of Confluent's clients (a zero byte and four bytes of a schema's
number) are told apart by that byte.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ottla.pipeline.problems import DefinitionError, PipelineError, Problem

if TYPE_CHECKING:
    from pyspark.sql import Column

_NO_JSON = "\x00"  # becomes a corrupt record, as it is none
_FRAME_BYTES = 5


def avro_to_json(value: Column, schema_file: Path) -> Column:
    try:
        import fastavro
    except ImportError:
        raise PipelineError("avro needs the package fastavro", "pip install 'ottla[avro]'") from None
    import json

    from pyspark.sql import functions as sql

    try:
        schema = json.loads(schema_file.read_text(encoding="utf-8"))
        fastavro.parse_schema(schema)
    except json.JSONDecodeError as error:
        raise DefinitionError([Problem(str(schema_file), error.lineno, f"no JSON: {error.msg}")]) from None
    except Exception as error:  # fastavro has many
        text = f"no schema of Avro: {type(error).__name__}: {error}"
        raise DefinitionError([Problem(str(schema_file), 0, text)]) from None

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

    return sql.udf(decode, "string", useArrow=False)(value)  # else Spark guesses by the types, and warns
