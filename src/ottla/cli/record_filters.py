"""`--filter`: which records are shown. FIELD=TEXT, FIELD!=TEXT or FIELD~REGEX; several must all hold.

FIELD is `key`, `value`, `header.NAME`, or `value.a.b` for a field of a value that is JSON.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.client.fetched import ConsumedRecord

Filter = Callable[["ConsumedRecord"], bool]
Field = Callable[["ConsumedRecord"], str | None]
"""The text of a field; None when the record has none."""

_FORM = re.compile(
    r"(?P<field>key|value(?:\.[^=~!]+)?|header\.[^=~!]+)(?P<test>!=|=|~)(?P<text>.*)", re.DOTALL
)


def record_filter(text: str) -> Filter:
    """For argparse."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no filter, expected key=TEXT, value~REGEX, header.NAME!=TEXT or value.FIELD=TEXT"
        )
    field, test, wanted = _field(found["field"]), found["test"], found["text"]
    if test == "=":
        return lambda record: field(record) == wanted
    if test == "!=":
        return lambda record: field(record) != wanted
    try:
        pattern = re.compile(wanted)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{wanted!r} is no regular expression: {error}") from None
    return lambda record: (content := field(record)) is not None and pattern.search(content) is not None


def _field(name: str) -> Field:
    if name == "key":
        return lambda record: _text(record.key)
    if name == "value":
        return lambda record: _text(record.value)
    kind, _, rest = name.partition(".")
    if kind == "header":
        return lambda record: _header(record, rest)
    return lambda record: _json_field(record.value, rest.split("."))


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode(errors="replace")


def _header(record: ConsumedRecord, name: str) -> str | None:
    """The last one of that name, which is the one that counts in Kafka."""
    for header, content in reversed(record.headers):
        if header == name:
            return _text(content)
    return None


def _json_field(value: bytes | None, path: list[str]) -> str | None:
    try:
        place = json.loads(value or b"null")
    except ValueError:
        return None
    for name in path:
        if not isinstance(place, dict) or name not in place:
            return None
        place = place[name]
    return place if isinstance(place, str) else json.dumps(place, ensure_ascii=False)
