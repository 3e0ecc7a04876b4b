"""A record as one line of JSON, without loss: `ottla consume -o json | ottla produce` copies every byte.

Bytes that are UTF-8 stand as text under `key` and `value`; others in base64 under `key_base64` and
`value_base64`. Headers are a list, because their order and repetition mean something.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any

from ottla.cli.failures import CommandFailed, ExitCode
from ottla.model.values import NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]
_KNOWN = frozenset(
    ("topic", "partition", "offset", "timestamp_ms", "key", "key_base64", "value", "value_base64", "headers")
)


class Record(NamedTuple):
    """What a producer is given."""

    topic: str | None
    partition: int | None
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None
    headers: Headers


def field_json(name: str, content: bytes | None) -> dict[str, str | None]:
    if content is None:
        return {name: None}
    try:
        return {name: content.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(content).decode()}


def headers_json(headers: Headers) -> list[dict[str, str | None]]:
    return [{"name": name, **field_json("value", content)} for name, content in headers]


def read_record(line: bytes | str, number: int) -> Record:
    """From a line of JSON; `number` is its place, for the error. Raises CommandFailed."""
    try:
        fields = json.loads(line)
        if not isinstance(fields, dict):
            raise TypeError("expected an object")
        unknown = fields.keys() - _KNOWN
        if unknown:
            raise ValueError(f"{sorted(unknown)[0]!r} is no field of a record")
        return Record(
            topic=_typed(fields, "topic", str),
            partition=_typed(fields, "partition", int),
            timestamp_ms=_typed(fields, "timestamp_ms", int),
            key=_content(fields, "key"),
            value=_content(fields, "value"),
            headers=tuple(
                (str(header["name"]), _content(header, "value")) for header in fields.get("headers") or ()
            ),
        )
    except (ValueError, TypeError, KeyError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise CommandFailed(
            f"line {number} of the input is no record: {reason}",
            'expected JSON such as {"topic": "orders", "key": "k", "value": "v"}',
            ExitCode.WRONG_USE,
        ) from error


def _typed(fields: dict[str, Any], name: str, kind: type) -> Any:
    value = fields.get(name)
    if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
        raise TypeError(f"{name} is {value!r}, expected {'a text' if kind is str else 'a number'}")
    return value


def _content(fields: dict[str, Any], name: str) -> bytes | None:
    """Text as it is, anything else of JSON as JSON."""
    encoded = fields.get(f"{name}_base64")
    if encoded is not None:
        return b64decode(encoded, validate=True)
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
