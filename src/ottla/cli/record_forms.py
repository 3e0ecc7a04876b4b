"""How `ottla consume` writes a record: its value, a format of the user's, JSON, or CSV.

%t topic   %p partition   %o offset   %T timestamp (ms)   %D timestamp (ISO)
%k key     %v value (also %s)         %h headers          %K and %S lengths of key and value
%% percent, and \\n \\t \\r \\0 \\\\ as usual
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ottla.cli.msgpack import decode_msgpack
from ottla.cli.record_json import field_json, headers_json

if TYPE_CHECKING:
    from ottla.client.fetched import ConsumedRecord

Form = Callable[["ConsumedRecord"], bytes]
Decode = Callable[[bytes], Any]

DECODERS: dict[str, Decode] = {"json": json.loads, "msgpack": decode_msgpack}
_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}
_TOKEN = re.compile(r"%(.)|\\(.)|([^%\\]+)|(.)", re.DOTALL)
CSV_COLUMNS = ("topic", "partition", "offset", "timestamp_ms", "key", "value")


def _iso(timestamp_ms: int) -> str:
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")


_FIELDS: dict[str, Form] = {
    "t": lambda record: record.topic.encode(),
    "p": lambda record: b"%d" % record.partition,
    "o": lambda record: b"%d" % record.offset,
    "T": lambda record: b"%d" % record.timestamp_ms,
    "D": lambda record: _iso(record.timestamp_ms).encode(),
    "k": lambda record: record.key or b"",
    "v": lambda record: record.value or b"",
    "s": lambda record: record.value or b"",
    "h": lambda record: b",".join(name.encode() + b"=" + (value or b"") for name, value in record.headers),
    "K": lambda record: b"%d" % (-1 if record.key is None else len(record.key)),
    "S": lambda record: b"%d" % (-1 if record.value is None else len(record.value)),
    "%": lambda record: b"%",
}


def text_form(template: str) -> Form:
    """For argparse: a format with the letters above."""
    parts: list[Form | bytes] = []
    for letter, escape, plain, odd in _TOKEN.findall(template):
        if letter:
            if letter not in _FIELDS:
                known = " ".join(f"%{each}" for each in _FIELDS)
                raise argparse.ArgumentTypeError(f"%{letter} is not known in a format, expected {known}")
            parts.append(_FIELDS[letter])
        else:
            parts.append(_ESCAPES.get(escape, b"\\" + escape.encode()) if escape else (plain or odd).encode())
    return lambda record: b"".join(part if isinstance(part, bytes) else part(record) for part in parts)


def value_form(decode: Decode | None) -> Form:
    """The value on a line of its own; decoded, as JSON that people can read."""
    if decode is None:
        return lambda record: (record.value or b"") + b"\n"

    def form(record: ConsumedRecord) -> bytes:
        decoded = _decoded(record.value, decode)
        if decoded is None:
            return (record.value or b"") + b"\n"
        return json.dumps(decoded["value"], ensure_ascii=False).encode() + b"\n"

    return form


def json_form(decode: Decode | None) -> Form:
    def form(record: ConsumedRecord) -> bytes:
        fields = {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp_ms": record.timestamp_ms,
            **field_json("key", record.key),
            **(_decoded(record.value, decode) or field_json("value", record.value)),
        }
        if record.headers:
            fields["headers"] = headers_json(record.headers)
        return json.dumps(fields, ensure_ascii=False).encode() + b"\n"

    return form


def csv_form() -> Form:
    def form(record: ConsumedRecord) -> bytes:
        line = io.StringIO()
        texts = [
            None if content is None else content.decode(errors="replace")
            for content in (record.key, record.value)
        ]
        csv.writer(line, lineterminator="\n").writerow(
            (record.topic, record.partition, record.offset, record.timestamp_ms, *texts)
        )
        return line.getvalue().encode()

    return form


def _decoded(value: bytes | None, decode: Decode | None) -> dict[str, Any] | None:
    """None when there is nothing to decode, or it is something else than was said: then it is shown raw."""
    if decode is None or value is None:
        return None
    try:
        return {"value": decode(value)}
    except ValueError:
        return None
