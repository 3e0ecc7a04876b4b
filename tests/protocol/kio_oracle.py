"""Our messages as those of kio and back: an implementation of the protocol that no one here wrote."""

from __future__ import annotations

import dataclasses
import datetime
import io
import types
import typing
import uuid
from functools import cache
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from ottla.protocol.apis import APIS
from ottla.protocol.fields import Array, Message, Struct, fields_of

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MILLISECOND = datetime.timedelta(milliseconds=1)
RENAMED = {"enable2_pc": "enable_2pc"}


def kio_type(message_type: type[Message], version: int) -> type[Any]:
    for api in APIS.values():
        if message_type is api.request:
            return load_request_schema(api.key, version)
        if message_type is api.response:
            return load_response_schema(api.key, version)
    raise AssertionError(message_type)


def kio_bytes(message: Message, version: int) -> bytes:
    entity_type = kio_type(type(message), version)
    buffer = io.BytesIO()
    entity_writer(entity_type)(buffer, _to_kio(message, entity_type))
    return buffer.getvalue()


def kio_message(message_type: type[Message], version: int, data: bytes) -> Message:
    """What kio reads from `data`, as our message."""
    entity, size = entity_reader(kio_type(message_type, version))(data, 0)
    assert size == len(data)
    return _from_kio(entity, message_type)


@cache
def _kio_fields(entity_type: type[Any]) -> tuple[tuple[dataclasses.Field[Any], Any], ...]:
    hints = typing.get_type_hints(entity_type)
    return tuple((field, hints[field.name]) for field in dataclasses.fields(entity_type))


def _our_name(kio_name: str, message_type: type[Message]) -> str:
    """kio drops the unit of times, because it has types for them."""
    names = {field.name for field in fields_of(message_type)}
    for name in (kio_name, kio_name + "_ms", RENAMED.get(kio_name, "")):
        if name in names:
            return name
    raise AssertionError(f"{message_type.__name__} has no field for kio's {kio_name}")


def _to_kio(message: Message, entity_type: type[Any]) -> Any:
    values = {}
    for field, hint in _kio_fields(entity_type):
        value = getattr(message, _our_name(field.name, type(message)))
        values[field.name] = _value_to_kio(value, hint, field.metadata.get("kafka_type"))
    return entity_type(**values)


def _value_to_kio(value: Any, hint: Any, kafka_type: str | None) -> Any:
    if value is None:
        return None
    if isinstance(value, tuple):
        return tuple(_value_to_kio(element, _element_hint(hint), kafka_type) for element in value)
    if isinstance(value, Message):
        return _to_kio(value, next(part for part in _parts(hint) if dataclasses.is_dataclass(part)))
    match kafka_type:
        case "uuid":
            return uuid.UUID(bytes=value) if value != bytes(16) else None
        case "error_code":
            return ErrorCode(value)
        case "timedelta_i32" | "timedelta_i64":
            return datetime.timedelta(milliseconds=value)
        case "datetime_i64":
            return EPOCH + value * MILLISECOND if value != -1 else None
    return value


def _parts(hint: Any) -> tuple[Any, ...]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return typing.get_args(hint)
    return (hint,)


def _element_hint(hint: Any) -> Any:
    array = next(part for part in _parts(hint) if typing.get_origin(part) is tuple)
    return typing.get_args(array)[0]


def _from_kio(entity: Any, message_type: type[Message]) -> Message:
    wires = {field.name: field.wire for field in fields_of(message_type)}
    values = {}
    for field, _ in _kio_fields(type(entity)):
        name = _our_name(field.name, message_type)
        kafka_type = field.metadata.get("kafka_type")
        values[name] = _value_from_kio(getattr(entity, field.name), wires[name], kafka_type)
    return message_type(**values)


def _value_from_kio(value: Any, wire: Any, kafka_type: str | None) -> Any:
    if isinstance(wire, Array) and value is not None:
        return tuple(_value_from_kio(element, wire.element, kafka_type) for element in value)
    if isinstance(wire, Struct) and value is not None:
        return _from_kio(value, wire.type)
    match kafka_type:
        case "uuid":
            return value.bytes if value is not None else bytes(16)
        case "error_code":
            return value.value
        case "timedelta_i32" | "timedelta_i64":
            return value // MILLISECOND
        case "datetime_i64":
            return (value - EPOCH) // MILLISECOND if value is not None else -1
    return value
