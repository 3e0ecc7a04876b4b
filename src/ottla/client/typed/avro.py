"""`avro(schema)`: plain Avro, or in the framing of a schema registry (magic 0, the schema's id, then Avro).

Topic("orders", value=avro(SCHEMA, kind=Order))                          plain, both sides know the schema
Topic("orders", value=avro(SCHEMA, registry="http://localhost:8081"))    as Confluent's clients write it
Topic("orders", value=avro(registry="http://localhost:8081"))            only read: by the writers' schemas
"""

from __future__ import annotations

import dataclasses
import io
import json
import struct
from collections.abc import Mapping
from typing import Any

from ottla.client.errors import InvalidSetting
from ottla.client.typed.fields import WrongField, built, plain
from ottla.client.typed.registry import Registry

_FRAME = struct.Struct(">bI")  # magic, schema id
_MAGIC = 0


def avro(schema: Any = None, *, kind: Any = None, registry: str | None = None, register: bool = True) -> Avro:
    """`schema`: parsed JSON, or its text. `kind`: a dataclass for its records (else they are dictionaries).

    With `registry` (an address) values are framed; `register` says whether a new schema is put there.
    """
    return Avro(schema, kind, registry, register)


class Avro:
    def __init__(self, schema: Any, kind: Any, registry: str | None, register: bool) -> None:
        if schema is None and registry is None:
            raise InvalidSetting(
                "Avro needs a schema", 'give avro(SCHEMA), or avro(registry="http://HOST:PORT") to read'
            )
        if kind is not None and not dataclasses.is_dataclass(kind):
            raise InvalidSetting(f"{kind!r} is no dataclass", "leave kind out to have dictionaries")
        self._fastavro = _fastavro()
        self._json = json.loads(schema) if isinstance(schema, str) else schema
        self._schema = None if schema is None else self._fastavro.parse_schema(self._json)
        self._kind = kind
        self._registry = None if registry is None else Registry(registry)
        self._register = register
        self._parsed: dict[int, Any] = {}  # writers' schemas by their id
        self._side = "value"

    def configure(self, configs: Mapping[str, object], is_key: bool) -> None:
        self._side = "key" if is_key else "value"

    # -- writing -------------------------------------------------------------------------------------------

    def serialize(self, topic: str, data: Any) -> bytes | None:
        if data is None:
            return None
        if self._schema is None:
            raise InvalidSetting(
                "this codec only reads: it has a registry, but no schema to write by",
                "give avro(SCHEMA, registry=…)",
            )
        out = io.BytesIO()
        if self._registry is not None:
            subject = f"{topic}-{self._side}"
            schema_id = self._registry.id_of(subject, self._json, register=self._register)
            out.write(_FRAME.pack(_MAGIC, schema_id))
        value = plain(data) if self._kind is not None else data
        self._fastavro.schemaless_writer(out, self._schema, value)
        return out.getvalue()

    # -- reading -------------------------------------------------------------------------------------------

    def deserialize(self, topic: str, data: bytes | None) -> Any:
        if data is None:
            return None
        value = self._plain(data) if self._registry is None else self._framed(data, self._registry)
        return value if self._kind is None else built(self._kind, value)

    def _plain(self, data: bytes) -> Any:
        stream = io.BytesIO(data)
        try:
            value = self._fastavro.schemaless_reader(stream, self._schema, None)
        except Exception as error:
            raise WrongField("", f"no Avro of this schema: {error}{_hint(data)}") from error
        left = len(data) - stream.tell()
        if left:
            raise WrongField("", f"{left} bytes are left behind the Avro value{_hint(data)}")
        return value

    def _framed(self, data: bytes, registry: Registry) -> Any:
        if len(data) < _FRAME.size or data[0] != _MAGIC:
            raise WrongField(
                "", "not in a registry's framing (magic 0, schema id); leave registry out to read plain Avro"
            )
        _, schema_id = _FRAME.unpack_from(data)
        if schema_id not in self._parsed:
            self._parsed[schema_id] = self._fastavro.parse_schema(registry.schema(schema_id))
        stream = io.BytesIO(data[_FRAME.size :])
        try:
            return self._fastavro.schemaless_reader(stream, self._parsed[schema_id], self._schema)
        except Exception as error:
            raise WrongField("", f"no Avro of schema {schema_id}: {error}") from error


def _hint(data: bytes) -> str:
    """Plain Avro may begin with 0 too, so that this is only said when it could not be read."""
    if len(data) < _FRAME.size or data[0] != _MAGIC:
        return ""
    _, schema_id = _FRAME.unpack_from(data)
    return (
        f"; it looks like a registry's framing (magic 0, schema id {schema_id}): "
        'give avro(…, registry="http://HOST:PORT")'
    )


def _fastavro() -> Any:
    try:
        import fastavro
    except ImportError as error:
        raise InvalidSetting("Avro needs the package fastavro", "pip install 'ottla[avro]'") from error
    return fastavro
